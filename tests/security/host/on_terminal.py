"""Runs a command on a new terminal: prints what it showed and what lies unread in the
terminal's input queue afterwards, as JSON. COMMAND..."""
import fcntl, json, os, pty, select, struct, sys, termios, time, tty

master, slave = pty.openpty()
child = os.fork()
if child == 0:
    os.close(master)
    os.login_tty(slave) if hasattr(os, "login_tty") else None
    if not hasattr(os, "login_tty"):
        os.setsid()
        fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
        for descriptor in range(3):
            os.dup2(slave, descriptor)
    os.execvp(sys.argv[1], sys.argv[1:])
shown, status, end = b"", None, time.monotonic() + 30
while time.monotonic() < end:
    if select.select([master], [], [], 0.05)[0]:
        shown += os.read(master, 65536)
    elif status is not None:
        break
    if status is None:
        done, code = os.waitpid(child, os.WNOHANG)
        status = code if done else None
if status is None:
    os.kill(child, 9)
tty.setraw(slave, termios.TCSANOW)
queued = struct.unpack("i", fcntl.ioctl(slave, termios.FIONREAD, b"\0\0\0\0"))[0]
print(json.dumps({"shown": shown.decode(errors="replace"), "queued": queued, "status": status}))
