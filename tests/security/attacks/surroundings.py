"""Describes where it is, as JSON."""
import json, os, socket


def entries(path):
    try:
        return sorted(os.listdir(path))
    except OSError as error:
        return error.strerror


def text(path):
    try:
        return open(path).read()
    except OSError as error:
        return error.strerror


print(json.dumps({
    "hostname": socket.gethostname(),
    "environment": dict(os.environ),
    "ids": [os.getuid(), os.geteuid(), os.getgid(), os.getegid(), os.getgroups()],
    "directory": os.getcwd(),
    "session": [os.getsid(0), os.getpgid(0), os.getpid()],
    "status": dict(line.split(":\t", 1) for line in text("/proc/self/status").split("\n") if ":\t" in line),
    "entries": {path: entries(path) for path in (
        "/", "/home", "/home/user", "/root", "/opt", "/var", "/run", "/sys", "/srv", "/mnt",
        "/media", "/boot", "/tmp", "/dev", "/etc", "/dev/shm", "/dev/pts")},
    "mounts": text("/proc/self/mountinfo"),
    "cgroup": text("/proc/self/cgroup"),
    "passwd": text("/etc/passwd"),
    "descriptors": entries("/proc/self/fd"),
    "tty": entries("/dev/tty") if not os.path.exists("/dev/tty") else "exists",
}))
