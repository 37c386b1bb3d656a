import ssl

context = ssl.create_default_context()
print(context.verify_mode, context.check_hostname, context.minimum_version >= ssl.TLSVersion.TLSv1_2)
print("certificates", len(context.get_ca_certs()) > 0 or len(context.cert_store_stats()) == 3)
print(ssl.OPENSSL_VERSION.split()[0], len(context.get_ciphers()) > 5)
ours, theirs = ssl.MemoryBIO(), ssl.MemoryBIO()
connection = context.wrap_bio(theirs, ours, server_hostname="localhost")
try:
    connection.do_handshake()
except ssl.SSLWantReadError:
    print("said hello in", ours.pending > 100, "bytes")
