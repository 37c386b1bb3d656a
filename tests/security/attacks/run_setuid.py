"""Runs programs that change the user they run as: PROGRAM..."""
import os, subprocess, sys

for program in sys.argv[1:]:
    if os.path.exists(program):
        done = subprocess.run([program], capture_output=True, stdin=subprocess.DEVNULL)
        print(program, done.returncode, done.stdout.decode(errors="replace"))
