"""Leaves a text where neighbours might look, or looks: MODE TEXT [KEY]"""
import ctypes, glob, os, socket, sys, time

mode, text = sys.argv[1], sys.argv[2][::-1] if sys.argv[1] == "look" else sys.argv[2]
key = int(sys.argv[3])
name = f"\0wall-test-{key}"
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
places = [f"/tmp/wall-test-{key}", f"/dev/shm/wall-test-{key}", f"/var/tmp/wall-test-{key}"]
if mode == "leave":
    for path in places:
        try:
            with open(path, "w") as file:
                file.write(text)
        except OSError:
            places.remove(path)
    segment = libc.shmget(key, 4096, 0o1666)
    if segment >= 0:
        ctypes.memmove(libc.shmat(segment, None, 0), text.encode(), len(text))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(name)
        listener.listen()
        listener.settimeout(0.1)
        print("left", flush=True)
        end = time.monotonic() + float(sys.argv[4])
        while time.monotonic() < end:
            try:
                listener.accept()[0].sendall(text.encode())
            except OSError:
                pass
    for path in places:
        os.path.exists(path) and os.unlink(path)
    libc.shmctl(segment, 0, None)
else:
    for path in places:
        try:
            print("FOUND", open(path).read(), "at", path)
        except OSError:
            pass
    segment = libc.shmget(key, 4096, 0)
    if segment >= 0:
        print("FOUND", ctypes.string_at(libc.shmat(segment, None, 0), len(text)).decode(), "in shm")
    try:
        with socket.socket(socket.AF_UNIX) as caller:
            caller.settimeout(2)
            caller.connect(name)
            print("FOUND", caller.recv(4096).decode(), "at a socket")
    except OSError:
        pass
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            if path != f"/proc/{os.getpid()}/cmdline" and text.encode() in open(path, "rb").read():
                print("FOUND", text, "in", path)
        except OSError:
            pass
    print("looked")
