"""Holds MEBIBYTES of memory in one of several ways: HOW MEBIBYTES DIRECTORY MARKER."""
import mmap, os, sys, time

how, size, directory = sys.argv[1], int(sys.argv[2]), sys.argv[3]
MIB = 1 << 20


def fill(mebibytes):
    held = []
    for _ in range(mebibytes):
        held.append(bytearray(os.urandom(4096) * 256))
    return held


if how == "bytes":
    kept = fill(size)
elif how == "processes":
    readers = []
    for _ in range(8):
        reader, writer = os.pipe()
        if os.fork() == 0:
            kept = fill(size // 8)
            os.write(writer, b"x")
            time.sleep(5)
            os._exit(0)
        os.close(writer)
        readers.append(reader)
    if not all(os.read(reader, 1) for reader in readers):
        sys.exit("a process was lost")
elif how == "shared":
    kept = mmap.mmap(-1, size * MIB)
    for offset in range(0, size * MIB, 4096):
        kept[offset] = 1
elif how == "memfd":  # files without a name, of 16 MiB each
    for _ in range(size // 16):
        descriptor = os.memfd_create("x")
        for _ in range(16):
            os.write(descriptor, b"x" * MIB)
elif how == "sysv":  # segments that no process has mapped
    import ctypes
    libc = ctypes.CDLL(None)
    libc.shmat.restype = ctypes.c_void_p
    for number in range(size // 16):
        segment = libc.shmget(0, 16 * MIB, 0o1600)
        address = ctypes.c_void_p(libc.shmat(segment, None, 0))
        if segment < 0 or address.value == 2**64 - 1:
            sys.exit("refused")
        ctypes.memset(address, 1, 16 * MIB)
        libc.shmdt(address)
        if directory != "/tmp":  # on the host nothing may stay
            libc.shmctl(segment, 0, None)
elif how == "files":
    with open(os.path.join(directory, "big"), "wb") as file:
        for _ in range(size):
            file.write(b"x" * MIB)
        file.flush()
elif how == "sockets":  # kernel memory: what was sent and not received
    import resource, socket
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    kept, pairs = 0, []
    while kept < size * MIB:
        pairs.append(socket.socketpair())
        for end in pairs[-1]:
            end.setblocking(False)
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 24)
            try:
                while True:
                    kept += end.send(b"x" * 65536)
            except BlockingIOError:
                pass
elif how == "pipes":  # kernel memory: each pipe holds up to a mebibyte
    import fcntl, resource
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    kept = 0
    while kept < size * MIB:
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        try:
            while True:
                kept += os.write(writer, b"x" * 65536)
        except BlockingIOError:
            pass
time.sleep(2)
print("held", size, flush=True)
