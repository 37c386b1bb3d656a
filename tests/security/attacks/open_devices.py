"""Opens device nodes: prints those that open. DEVICE..."""
import os, stat, sys

for path in sys.argv[1:]:
    for mode in (os.O_RDONLY, os.O_RDWR, os.O_WRONLY):
        try:
            descriptor = os.open(path, mode | os.O_NONBLOCK | os.O_NOCTTY)
        except OSError:
            continue
        kind = os.fstat(descriptor)
        if stat.S_ISCHR(kind.st_mode) or stat.S_ISBLK(kind.st_mode):
            print(path, "ok")
        os.close(descriptor)
        break
