import base64, binascii, bz2, gzip, hashlib, hmac, io, lzma, secrets, tarfile, zipfile, zlib

data = bytes(range(256)) * 400
for name, module in (("zlib", zlib), ("gzip", gzip), ("bz2", bz2), ("lzma", lzma)):
    packed = module.compress(data)
    print(name, len(packed) < len(data), module.decompress(packed) == data)
print(zlib.crc32(data), zlib.adler32(data), binascii.crc_hqx(data, 0))
for name in ("md5", "sha1", "sha256", "sha512", "sha3_256", "blake2b"):
    print(name, hashlib.new(name, data).hexdigest()[:32])
print(hmac.new(b"key", data, "sha256").hexdigest())
print(hashlib.pbkdf2_hmac("sha256", b"password", b"salt", 1000).hex())
print(hashlib.scrypt(b"password", salt=b"salt", n=1024, r=8, p=1).hex()[:32])
print(base64.b85encode(b"hello"), len(secrets.token_bytes(32)))
buffer = io.BytesIO()
with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
    archive.writestr("a/b.txt", "text")
print(zipfile.ZipFile(buffer).namelist())
buffer = io.BytesIO()
with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
    archive.addfile(tarfile.TarInfo("empty"))
print(tarfile.open(fileobj=io.BytesIO(buffer.getvalue())).getnames())
