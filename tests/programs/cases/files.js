const fs = require("fs"), os = require("os"), path = require("path");
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "case-"));
const file = path.join(folder, "a.txt");
fs.writeFileSync(file, "hello\n".repeat(3));
fs.symlinkSync("a.txt", path.join(folder, "link"));
fs.mkdirSync(path.join(folder, "x/y/z"), { recursive: true });
console.log(fs.readdirSync(folder).sort(), fs.readFileSync(path.join(folder, "link"), "utf8").length);
(async () => {
  const watcher = fs.watch(folder, (event, name) => { console.log("changed", name); watcher.close(); });
  await new Promise(resolve => setTimeout(resolve, 50));
  await fs.promises.appendFile(file, "more");
  await new Promise(resolve => setTimeout(resolve, 100));
  console.log((await fs.promises.stat(file)).size, fs.existsSync("/no/such"));
  await fs.promises.rm(folder, { recursive: true });
  console.log(fs.existsSync(folder));
})();
