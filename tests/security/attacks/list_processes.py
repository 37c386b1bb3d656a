"""Lists all processes that it can see, as `pid command`."""
import os

for name in sorted((name for name in os.listdir("/proc") if name.isdigit()), key=int):
    try:
        with open(f"/proc/{name}/cmdline", "rb") as file:
            print(name, file.read().replace(b"\0", b" ").decode(errors="replace"))
    except OSError:
        print(name, "unreadable")
# Where /proc hides them, a signal that is none still tells.
for pid in range(1, 66000):
    try:
        os.kill(pid, 0)
        print("EXISTS", pid)
    except ProcessLookupError:
        pass
    except PermissionError:
        print("EXISTS", pid)
