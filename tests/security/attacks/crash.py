"""Crashes with a core dump if it may: raises its limit first. [DIRECTORY]"""
import os, resource, sys

hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
print("hard limit", hard, flush=True)
child = os.fork()
if child == 0:
    os.abort()
status = os.waitpid(child, 0)[1]
print("dumped" if os.WCOREDUMP(status) else "not dumped")
print("files", sorted(name for name in os.listdir(".") if "core" in name))
