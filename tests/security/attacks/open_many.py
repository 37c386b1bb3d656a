"""Opens COUNT files at once, having raised what limit it may."""
import os, resource, sys

hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
for above in (1 << 20, hard * 2):
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (above, above))
        break
    except (OSError, ValueError):
        pass
opened = 0
try:
    for _ in range(int(sys.argv[1])):
        os.open("/dev/null", os.O_RDONLY)
        opened += 1
except OSError:
    pass
print("opened", opened)
