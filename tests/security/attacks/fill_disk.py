"""Writes much to disk, says how much there was room for: HOW AMOUNT DIRECTORY..."""
import os, sys

how, amount, directories = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
written = 0
error = "none"
try:
    for directory in directories:
        if not os.path.isdir(directory):
            continue
        try:
            if how == "big":  # AMOUNT bytes in each directory
                with open(os.path.join(directory, f"big{directory.replace('/', '-')}"), "wb", buffering=0) as file:
                    here = 0
                    while here < amount:
                        here += file.write(b"x" * 65536)
                        written = written + 65536
            elif how == "many":  # AMOUNT empty files
                for number in range(amount):
                    os.close(os.open(os.path.join(directory, f"f{number}"), os.O_CREAT))
                    written += 1
            elif how == "deep":  # AMOUNT directories
                at = directory
                for number in range(amount):
                    os.mkdir("d")
                    os.chdir("d")
                    written += 1
            elif how == "sparse":  # one page in each mebibyte of AMOUNT bytes
                with open(os.path.join(directory, "sparse"), "wb", buffering=0) as file:
                    file.truncate(amount)
                    for offset in range(0, amount, 1 << 20):
                        file.seek(offset)
                        file.write(b"x" * 4096)
                        written += 4096
            elif how == "allocate":
                descriptor = os.open(os.path.join(directory, "a"), os.O_CREAT | os.O_RDWR)
                os.posix_fallocate(descriptor, 0, amount)
                written += amount
        except OSError as problem:
            error = problem.strerror
finally:
    print("written", written, error, flush=True)
