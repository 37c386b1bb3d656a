"""Writes much output: WHERE BYTES, where is stdout, stderr or both."""
import os, sys

where, left = sys.argv[1], int(sys.argv[2])
targets = {"stdout": [1], "stderr": [2], "both": [1, 2]}[where]
block = b"0123456789abcde\n" * 512
while left > 0:
    for target in targets:
        os.write(target, block[:left] if left < len(block) else block)
    left -= len(block)
