"""Takes what the whole host has of contexts for asynchronous I/O: COUNT, waits for its stdin's end."""
import ctypes, sys

libc = ctypes.CDLL(None, use_errno=True)
made = 0
for _ in range(int(sys.argv[1])):
    if libc.syscall(206, 500, ctypes.byref(ctypes.c_ulong(0))) != 0:
        break
    made += 1
print("made", made, flush=True)
sys.stdin.read()
