"""Outlives its welcome: MODE MARKER [SECONDS]. The marker is for the test to find it by."""
import os, signal, sys, time

mode = sys.argv[1]
seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 600


def linger():
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(0.2)


def detach():
    """A grandchild in a session of its own, which nobody waits for."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            return True
        os._exit(0)
    os.wait()
    return False


if mode == "plain":
    print("begun", flush=True)
    linger()
elif mode == "deaf":
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGALRM):
        signal.signal(number, signal.SIG_IGN)
    print("begun", flush=True)
    linger()
elif mode == "grandchild":  # keeps stdout and stderr open after the main process has ended
    if detach():
        linger()
    else:
        print("main ends", flush=True)
elif mode == "daemon":  # has closed all that its parents had
    if detach():
        for descriptor in range(64):
            try:
                os.close(descriptor)
            except OSError:
                pass
        linger()
    else:
        time.sleep(0.3)
        print("main ends", flush=True)
elif mode == "stopped":  # cannot run the handler of any signal
    print("begun", flush=True)
    os.kill(os.getpid(), signal.SIGSTOP)
    linger()
