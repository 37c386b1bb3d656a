"""Sends a text to Unix sockets: TEXT NAME..., a name that begins with @ is an abstract one."""
import socket, sys

text = sys.argv[1]
for name in sys.argv[2:]:
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET):
        with socket.socket(socket.AF_UNIX, kind) as sender:
            sender.settimeout(3)
            try:
                sender.connect("\0" + name[1:] if name.startswith("@") else name)
                sender.sendall(text.encode())
                print("sent to", name)
            except OSError as error:
                print(name, error)
