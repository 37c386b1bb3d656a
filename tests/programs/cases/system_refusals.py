import ctypes, os

attempts = {
    "write to /usr": lambda: open("/usr/bin/mine", "w"),
    "write to /etc": lambda: open("/etc/mine", "w"),
    "chroot": lambda: os.chroot("/"),
    "become root": lambda: os.setuid(0),
    "raise priority": lambda: os.nice(-5),
    "read the password hashes": lambda: open("/etc/shadow").read(),
    "signal init": lambda: print("signals to init are ignored:", os.kill(1, 9)),
}
for name, attempt in attempts.items():
    try:
        attempt()
        print("done:", name)
    except OSError as error:
        print(f"{name}: {error.strerror}")
print("mount:", ctypes.CDLL(None, use_errno=True).mount(b"none", b"/tmp", b"tmpfs", 0, None), ctypes.get_errno())
