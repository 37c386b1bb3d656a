"""Uses all the processor time it gets, in COUNT processes: COUNT SECONDS MARKER."""
import os, sys, time

count, seconds = int(sys.argv[1]), float(sys.argv[2])
end = time.monotonic() + seconds
for _ in range(count - 1):
    if os.fork() == 0:
        break
number = 1
while time.monotonic() < end:
    for _ in range(10000):
        number = number * 1103515245 % 4294967291
