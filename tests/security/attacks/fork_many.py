"""Makes COUNT processes that stay, in each process that it has: COUNT MARKER SECONDS."""
import os, sys, time

count, seconds = int(sys.argv[1]), float(sys.argv[3])
end = time.monotonic() + seconds
made = 0
for _ in range(count):
    try:
        if os.fork() == 0:
            time.sleep(max(0, end - time.monotonic()))
            os._exit(0)
        made += 1
    except OSError:
        time.sleep(0.01)
    if time.monotonic() > end:
        break
print("made", made, flush=True)
time.sleep(max(0, end - time.monotonic()))
