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
elif how == "memfd":
    descriptor = os.memfd_create("x")
    for _ in range(size):
        os.write(descriptor, b"x" * MIB)
elif how == "files":
    with open(os.path.join(directory, "big"), "wb") as file:
        for _ in range(size):
            file.write(b"x" * MIB)
        file.flush()
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
print("held", size, flush=True)
