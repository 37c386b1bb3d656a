"""Lists the network as it is seen from here, and tries to change it."""
import fcntl, os, socket, struct

print("interfaces", " ".join(sorted(line.split(":")[0].strip()
      for line in open("/proc/net/dev").read().split("\n")[2:] if ":" in line)))
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
    try:  # another address for the loopback interface
        request = struct.pack("16sH2s4s8s", b"lo", socket.AF_INET, b"\0\0",
                              socket.inet_aton("127.9.9.9"), b"\0" * 8)
        fcntl.ioctl(any_socket, 0x8916, request)
        print("changed")
    except OSError as error:
        print("unchanged", error)
