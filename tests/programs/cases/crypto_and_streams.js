const crypto = require("crypto"), zlib = require("zlib"), { pipeline, Readable, Transform } = require("stream");
console.log(crypto.createHash("sha256").update("hello").digest("hex"));
console.log(crypto.pbkdf2Sync("password", "salt", 1000, 16, "sha256").toString("hex"), crypto.randomBytes(16).length);
const { publicKey, privateKey } = crypto.generateKeyPairSync("ed25519");
console.log(crypto.verify(null, Buffer.from("text"), publicKey, crypto.sign(null, Buffer.from("text"), privateKey)));
let total = 0;
pipeline(
  Readable.from((function* () { for (let n = 0; n < 1000; n++) yield `line ${n}\n`; })()),
  zlib.createGzip(), zlib.createGunzip(),
  new Transform({ transform(chunk, _, done) { total += chunk.length; done(); } }),
  error => console.log(error, total));
