"""Watches and locks the system's own files, says who opened what: DIRECTORY FILE SECONDS"""
import ctypes, fcntl, os, select, struct, sys, time

directory, locked, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
libc = ctypes.CDLL(None)
watcher = libc.inotify_init()
libc.inotify_add_watch(watcher, directory.encode(), 0x21)
file = open(locked)
fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
print("begun", flush=True)
end, seen = time.monotonic() + seconds, set()
while time.monotonic() < end:
    if watcher >= 0 and select.select([watcher], [], [], 0.1)[0]:
        events, at = os.read(watcher, 65536), 0
        while at < len(events):
            length = struct.unpack_from("I", events, at + 12)[0]
            seen.add(events[at + 16:at + 16 + length].rstrip(b"\0").decode())
            at += 16 + length
for name in sorted(seen):
    print("SEEN", name)
