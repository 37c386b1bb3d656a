"""Tries to change and remove existing files: PATH..."""
import os, sys

for path in sys.argv[1:]:
    attempts = {
        "append": lambda: open(path, "ab").write(b"damage\n"),
        "update": lambda: open(path, "r+b").write(b"damage\n"),
        "truncate": lambda: os.truncate(path, 0),
        "mode": lambda: os.chmod(path, 0o666),
        "owner": lambda: os.chown(path, os.getuid(), os.getgid()),
        "time": lambda: os.utime(path, (1, 1)),
        "attribute": lambda: os.setxattr(path, "user.damage", b"1"),
        "rename": lambda: os.rename(path, path + ".renamed"),
        "link": lambda: os.link(path, path + ".linked"),
        "remove": lambda: os.unlink(path),
    }
    for name, attempt in attempts.items():
        try:
            attempt()
            print("DAMAGED", name, path)
        except OSError as error:
            print(name, path, error.strerror)
