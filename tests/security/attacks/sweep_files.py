"""Looks for a text in every file below some directories: REVERSED-TEXT DIRECTORY..."""
import os, sys

wanted = sys.argv[1][::-1].encode()
seen = 0
for root in sys.argv[2:]:
    for directory, folders, files in os.walk(root):
        if directory == "/":
            folders[:] = [name for name in folders if name not in ("proc", "usr", "dev")]
        for name in files:
            path = os.path.join(directory, name)
            try:
                if not os.path.isfile(path) or os.path.getsize(path) > 1 << 20:
                    continue
                with open(path, "rb") as file:
                    seen += 1
                    if wanted in file.read():
                        print("FOUND", wanted.decode(), path)
            except OSError:
                pass
print("seen", seen)
