import sys

lines = sys.stdin.read().splitlines()
print(len(lines), sys.stdin.isatty(), sys.stdout.isatty(), max(lines, key=len)[:40])
print(sum(int(line.split()[0]) for line in lines))
