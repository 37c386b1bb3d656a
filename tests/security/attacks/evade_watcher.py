"""Uses more than its share in ways that a watcher who reads /proc may not see: HOW MARKER"""
import ctypes, mmap, os, signal, sys, time

how = sys.argv[1]
set_name = lambda name: ctypes.CDLL(None).prctl(15, name, 0, 0, 0)
end = time.monotonic() + 4


def hold(mebibytes):
    return [bytearray(os.urandom(4096) * 256) for _ in range(mebibytes)]


def burn(seconds):
    while time.process_time() < seconds:
        pass


if how == "name-memory":  # a name that is no text
    set_name(b"\xff\xfe\xff")
    kept = hold(200)
    time.sleep(1)
    print("held 200")
elif how == "file-memory":  # a mapped file whose name is no text, beside shared memory
    file = os.open(os.path.join(os.environ["HOME"].encode(), b"\xff\xff"), os.O_CREAT | os.O_RDWR)
    os.ftruncate(file, 4096)
    view = mmap.mmap(file, 4096)
    kept = mmap.mmap(-1, 200 << 20)
    for offset in range(0, 200 << 20, 4096):
        kept[offset] = 1
    time.sleep(1)
    print("held 200")
elif how == "name-processor":
    set_name(b") R 0 0 0 \xff")
    while time.monotonic() < end:
        pass
elif how == "waited-children":  # each process uses little
    while time.monotonic() < end:
        child = os.fork()
        if child == 0:
            burn(0.03)
            os._exit(0)
        os.waitpid(child, 0)
elif how in ("ignored-children", "short-children"):  # the time of a child that nobody waits for is nobody's
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while time.monotonic() < end:
        child = os.fork()
        if child == 0:
            burn(0.03 if how == "ignored-children" else 0.006)
            os._exit(0)
        try:
            os.waitpid(child, 0)
        except ChildProcessError:
            pass
elif how == "orphans":
    while time.monotonic() < end:
        child = os.fork()
        if child == 0:
            if os.fork() == 0:
                burn(0.03)
                os._exit(0)
            os._exit(0)
        os.waitpid(child, 0)
        time.sleep(0.03)
elif how == "threads":
    import threading
    for _ in range(4):
        threading.Thread(target=lambda: [hash(n) for n in iter(time.monotonic, None) if n < end or os._exit(0)], daemon=True).start()
    time.sleep(6)
