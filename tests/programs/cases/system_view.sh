echo $(( $(nproc) > 0 )) "$(uname -s)" "$(uname -m)"
tty; test -w /dev/null && echo null; head -c 4 /dev/zero | od -An -tx1; head -c 16 /dev/urandom | wc -c | tr -d ' '
test -r /etc/passwd && test -d /proc/self && echo here; ulimit -c > /dev/null && echo limits
ps -o comm= -p $$ ; readlink /proc/self/exe; locale charmap; getconf PAGE_SIZE
df -k . > /dev/null && free > /dev/null && uptime > /dev/null && echo "tools run"; umask
