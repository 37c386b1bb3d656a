"""Makes something at PATH that whoever collects it will regret: KIND PATH [TARGET]"""
import os, sys

kind, path = sys.argv[1:3]
target = sys.argv[3] if len(sys.argv) > 3 else None
if os.path.lexists(path):
    os.unlink(path)
if kind == "symlink":
    os.symlink(target, path)
elif kind == "parent":  # a directory in the path is a symlink
    os.symlink(os.path.dirname(target), path)
elif kind == "hardlink":
    try:
        os.link(target, path)
    except OSError as error:
        print("refused", error)
elif kind == "fifo":
    os.mkfifo(path)
elif kind == "socket":
    import socket
    socket.socket(socket.AF_UNIX).bind(path)
elif kind == "directory":
    os.mkdir(path)
elif kind == "sparse":
    with open(path, "wb") as file:
        file.truncate(1 << 40)
elif kind == "swap":  # a file that keeps turning into a symlink and back
    import time
    if os.fork() == 0:
        os.setsid()
        end = time.monotonic() + 20
        while time.monotonic() < end:
            with open(path + ".new", "w") as file:
                file.write("harmless")
            os.rename(path + ".new", path)
            os.symlink(target, path + ".new")
            os.rename(path + ".new", path)
    time.sleep(0.2)
print("made", kind)
