"""Tries to make, append to, rename and remove in each directory: NAME DIRECTORY..."""
import os, sys

name = sys.argv[1]
for directory in sys.argv[2:]:
    path = os.path.join(directory, name)
    try:
        with open(path, "w") as file:
            file.write("written by the attack\n")
        print("WROTE", path)
    except OSError as error:
        print(path, error.strerror)
    for attempt in (lambda: os.mkdir(path + ".d"), lambda: os.symlink("/", path + ".l"),
                    lambda: os.mkfifo(path + ".p"), lambda: os.chmod(directory, 0o777),
                    lambda: os.utime(directory, (1, 1))):
        try:
            attempt()
            print("CHANGED", directory)
        except OSError:
            pass
