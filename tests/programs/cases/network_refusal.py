import socket, urllib.error, urllib.request

for address in ("http://192.0.2.1/", "http://[2001:db8::1]/", "http://name.invalid/"):
    try:
        urllib.request.urlopen(address, timeout=5)
        print("reached", address)
    except (urllib.error.URLError, OSError) as error:
        print("refused", address)
try:
    socket.create_connection(("192.0.2.1", 80), timeout=5)
except OSError as error:
    print(type(error).__name__, error.errno)
