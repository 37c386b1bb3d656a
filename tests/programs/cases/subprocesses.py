import subprocess, sys

print(subprocess.run(["sh", "-c", "echo out; echo err >&2; exit 3"], capture_output=True, text=True))
print(subprocess.check_output([sys.executable, "-c", "print(input()[::-1])"], input="abc\n", text=True))
pipe = subprocess.Popen(["sort", "-r"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
print(pipe.communicate("a\nc\nb\n")[0].split())
with subprocess.Popen(["seq", "5"], stdout=subprocess.PIPE) as seq:
    print(subprocess.check_output(["paste", "-sd+"], stdin=seq.stdout, text=True).strip())
try:
    subprocess.run(["sleep", "10"], timeout=0.1)
except subprocess.TimeoutExpired as expired:
    print("expired", expired.cmd)
try:
    subprocess.run(["no-such-program"])
except FileNotFoundError as error:
    print(error)
print(subprocess.run("kill -TERM $$", shell=True).returncode)
