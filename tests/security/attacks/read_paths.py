"""Reads each file that it can, also by way of every /proc/PID/root and cwd: PATH..."""
import glob, os, sys

for path in sys.argv[1:]:
    ways = [path, os.path.relpath(path)]
    for link in glob.glob("/proc/[0-9]*/root") + glob.glob("/proc/[0-9]*/cwd"):
        ways += [link + path, link + "/../../../../../../../.." + path]
    ways += ["../" * 40 + path[1:], "/dev/fd/../root" + path]
    for way in ways:
        try:
            with open(way, "rb") as file:
                print("READ", way, file.read(4096))
        except OSError:
            pass
