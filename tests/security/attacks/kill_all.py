"""Kills everything that it can reach. Never run on the host."""
import os, signal

if os.getpid() > 100:
    raise SystemExit("this is no sandbox")
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for target, number in ((1, 9), (1, 15), (1, 19), (-1, 15), (-1, 1), (0, 18)):
    try:
        os.kill(target, number)
    except OSError:
        pass
print("still here", flush=True)
os.kill(-1, 9)
print("and still", flush=True)
