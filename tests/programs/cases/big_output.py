import sys

for number in range(3000):
    print(f"{number:08d} 0123456789")
sys.stdout.flush()
sys.stderr.write("e" * 2000)
sys.exit(17)
