"""Opens every kernel setting for writing, without writing: prints those that open."""
import os, sys

roots = sys.argv[1:] or ["/proc/sys", "/sys"]
single = ["/proc/sysrq-trigger", "/proc/self/oom_score_adj_", "/proc/irq/default_smp_affinity",
          "/proc/mtrr", "/proc/acpi/wakeup", "/proc/bus/pci", "/proc/fs", "/proc/timer_stats",
          "/proc/latency_stats", "/proc/sched_debug"]
paths = list(single)
for root in roots:
    for directory, _, files in os.walk(root):
        paths += [os.path.join(directory, name) for name in files]
for path in paths:
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
        print("OPENED", path)
    except OSError:
        pass
print("tried", len(paths))
