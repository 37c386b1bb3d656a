"""Uses every descriptor it has, and everybody's in /proc: [FILE-TO-FIND-BELOW-A-DIRECTORY]"""
import glob, os, sys

for descriptor in range(3, 4096):
    try:
        print("INHERITED", descriptor, os.readlink(f"/proc/self/fd/{descriptor}"))
    except OSError:
        continue
    try:
        print("READ", os.pread(descriptor, 4096, 0))
    except OSError:
        pass
    for name in sys.argv[1:]:
        try:
            print("READ", os.read(os.open(name, os.O_RDONLY, dir_fd=descriptor), 4096))
        except OSError:
            pass
for path in glob.glob("/proc/[0-9]*/fd/*"):
    if path.startswith(f"/proc/{os.getpid()}/") or path.rsplit("/", 1)[1] in ("0", "1", "2"):
        continue
    try:
        target = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        continue
    print("REOPENED", path, os.readlink(path))
    try:
        print("READ", os.pread(target, 4096, 0))
    except OSError:
        pass
print("done")
