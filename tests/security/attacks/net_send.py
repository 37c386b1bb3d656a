"""Sends a text to an address: PROTOCOL ADDRESS PORT TEXT."""
import socket, sys

protocol, address, port, text = sys.argv[1:5]
family = socket.AF_INET6 if ":" in address else socket.AF_INET
kind = socket.SOCK_DGRAM if protocol == "udp" else socket.SOCK_STREAM
with socket.socket(family, kind) as sender:
    sender.settimeout(3)
    sender.connect((address, int(port)))
    sender.sendall(text.encode())
    print("sent")
