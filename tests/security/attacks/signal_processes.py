"""Signals processes by pid, every way there is: HOW PID..."""
import ctypes, os, signal, sys

how, pids = sys.argv[1], [int(pid) for pid in sys.argv[2:]]
libc = ctypes.CDLL(None, use_errno=True)
STOP = signal.SIGSTOP


def pidfd(pid):
    signal.pidfd_send_signal(os.pidfd_open(pid), STOP)


def raw(number, *arguments):
    if libc.syscall(number, *arguments) != 0:
        raise OSError(ctypes.get_errno(), "refused")


def queue(pid):
    information = ctypes.create_string_buffer(128)
    ctypes.memmove(information, bytes([STOP, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF]), 12)
    raw(129, pid, STOP, information)


ways = {
    "kill": lambda pid: os.kill(pid, STOP),
    "group": lambda pid: os.killpg(os.getpgid(pid), STOP),
    "tgkill": lambda pid: raw(234, pid, pid, STOP),
    "tkill": lambda pid: raw(200, pid, STOP),
    "queue": queue,
    "pidfd": pidfd,
    "ptrace": lambda pid: libc.ptrace(16, pid, None, None) == 0 or os.kill(-99999, 0),
    "priority": lambda pid: os.setpriority(os.PRIO_PROCESS, pid, 19),
    "affinity": lambda pid: os.sched_setaffinity(pid, {0}),
    "limit": lambda pid: __import__("resource").prlimit(pid, 7, (64, 64)),
}
for pid in pids:
    try:
        ways[how](pid)
        print("DONE", how, pid)
    except OSError as error:
        print(how, pid, error)
