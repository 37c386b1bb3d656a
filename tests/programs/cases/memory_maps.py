import mmap, os, tempfile

with tempfile.TemporaryFile() as file:
    file.truncate(1 << 20)
    with mmap.mmap(file.fileno(), 0) as view:
        view[:5] = b"hello"
        view.flush()
        print(view.find(b"llo"), os.pread(file.fileno(), 5, 0))
    with mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE) as view:
        view[:5] = b"apart"
        print(os.pread(file.fileno(), 5, 0))
shared = mmap.mmap(-1, 4096)
if os.fork() == 0:
    shared[:3] = b"kid"
    os._exit(0)
os.wait()
print(shared[:3])
big = mmap.mmap(-1, 1 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_NORESERVE)
big[1 << 29] = 7
print(len(big), big[1 << 29], big[5])
