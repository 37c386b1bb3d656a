#!/bin/bash
# The checks of cgroup-v2.sh that run inside the machine, as root.
#
# Usage: guest.sh plain|systemd. Each check prints a line that starts with
# PASS, FAIL or SKIP.

set -u
cd "$(dirname "$0")"
here=$PWD
stage=$1
user=tester
cgroups=/sys/fs/cgroup
# Emulation is slow.
export CASEMATE_TEST_PATIENCE=5

pass() { echo "PASS $stage: $1"; }
fail() { echo "FAIL $stage: $1${2:+ ($2)}"; }
check() { if [[ $2 == "$3" ]]; then pass "$1"; else fail "$1" "got '$2', want '$3'"; fi; }
like() { if [[ $2 =~ $3 ]]; then pass "$1"; else fail "$1" "got '$2', want '$3'"; fi; }
between() { if (($2 >= $3 && $2 <= $4)); then pass "$1 ($2)"; else fail "$1" "got $2, want $3 to $4"; fi; }

# A value of the JSON that `casemate run --json` prints.
field() {
    python3 -c '
import json, sys
result = json.load(open(sys.argv[1]))
controls = {c["name"]: c["state"] + ": " + c["detail"] for c in result["controls"]}
value = controls.get("resources") if sys.argv[2] == "resources" else result.get(sys.argv[2])
if value is None:
    value = (result.get("usage") or {}).get(sys.argv[2])
print(int(value) if isinstance(value, float) else value)' "$1" "$2"
}

# Runs a command as the user, in a cgroup if one is given.
as_user() {
    local cgroup=$1
    shift
    (
        [[ -n $cgroup ]] && echo "$BASHPID" >"$cgroup/cgroup.procs"
        exec setpriv --reuid "$user" --regid "$user" --clear-groups \
            env -i PATH="$PATH" HOME="/home/$user" \
            CASEMATE_TEST_PATIENCE="$CASEMATE_TEST_PATIENCE" "$@"
    )
}

interface() {
    local name=$1
    shift
    local begun=$SECONDS
    if "$@" "$here/interface" --test-threads 2 --color never >/tmp/interface.out 2>&1; then
        pass "interface tests, $name ($(grep -c '\.\.\. ok' /tmp/interface.out) in $((SECONDS - begun)) s)"
    else
        fail "interface tests, $name"
        sed 's/^/    /' /tmp/interface.out
    fi
    grep "not wholly in force" /tmp/interface.out | sed 's/^/    /'
}

# Cgroups of Casemate's.
left() { find "$cgroups" -type d -name 'casemate-*' 2>/dev/null; }

until_true() {
    for _ in $(seq 200); do
        "$@" && return 0
        sleep 0.1
    done
    return 1
}

has_sandbox() { [[ -n $(sandbox) ]]; }
# The directory of the only sandbox that runs a program: init and another.
sandbox() {
    local dir
    for dir in $(find "$cgroups" -type d -path '*/casemate-*-*/*' 2>/dev/null); do
        [[ $(wc -l <"$dir/cgroup.procs") -ge 2 ]] && echo "$dir"
    done
}

limits_from_outside() {
    "$here/casemate" run --memory 64M --pids 10 --cpus 0.25 --timeout 60s -- sleep 30 &
    local run=$! dir
    until_true has_sandbox
    dir=$(sandbox)
    check "memory.max" "$(cat "$dir/memory.max")" 67108864
    if [[ -e $dir/memory.swap.max ]]; then
        check "memory.swap.max" "$(cat "$dir/memory.swap.max")" 0
    else
        echo "SKIP $stage: memory.swap.max, which this kernel lacks"
    fi
    check "memory.oom.group" "$(cat "$dir/memory.oom.group")" 1
    check "pids.max" "$(cat "$dir/pids.max")" 11
    check "cpu.max" "$(cat "$dir/cpu.max")" "25000 100000"
    kill "$run"
    wait "$run" 2>/dev/null
    check "no cgroup is left after SIGTERM" "$(left)" ""
}

named_limits() {
    "$here/casemate" run --json --timeout 60s -- python3 -c 'bytearray(10**9)' >/tmp/r.json
    check "too much memory is named" "$(field /tmp/r.json limit_hit)" memory
    "$here/casemate" run --json --timeout 60s --pids 8 -- \
        bash -c 'for i in 1 2 3 4 5 6 7 8 9 10; do sleep 5 & done; wait' >/tmp/r.json
    check "too many processes are named" "$(field /tmp/r.json limit_hit)" processes
    "$here/casemate" run --json --timeout 60s -- \
        python3 -c 'x = bytearray(b"x") * (50 << 20)' >/tmp/r.json
    between "peak memory of a program that fills 50 MiB" \
        "$(field /tmp/r.json peak_memory_bytes)" $((50 << 20)) $((100 << 20))
    check "no cgroup is left after limits" "$(left)" ""
}

# A busy loop for six seconds at a fifth of a CPU; $1... runs casemate.
cpu_share() {
    local name=$1
    shift
    "$@" "$here/casemate" run --json --timeout 6s --cpus 0.2 -- \
        bash -c 'while :; do :; done' >/tmp/r.json &
    local run=$! dir throttled=
    until_true has_sandbox
    sleep 3
    dir=$(sandbox)
    throttled=$(sed -n 's/^nr_throttled //p' "$dir/cpu.stat")
    wait "$run"
    between "CPU time in ms of 6 s at 0.2, $name" "$(field /tmp/r.json cpu_time_ms)" 600 2000
    if [[ -n $throttled ]]; then between "cpu.stat's nr_throttled" "$throttled" 5 100; fi
}

# Kills the supervisor and the launcher, then starts again.
killed() {
    "$here/casemate" run --timeout 600s -- sleep 600.75 &
    local run=$! launcher
    until_true has_sandbox
    launcher=$(pgrep -P "$run" -f __jail-launcher)
    kill -STOP "$launcher"
    kill -9 "$run" "$launcher"
    wait "$run" 2>/dev/null
    until_true eval '! pgrep -f "sleep 600.75" >/dev/null'
    check "a sandbox ends with its launcher" "$(pgrep -fc 'sleep 600.75')" 0
    between "cgroups are left after kill -9" "$(left | wc -l)" 1 5
    "$here/casemate" run -- true
    check "the next start removes them" "$(left)" ""
}

plain() {
    "$here/casemate" run --json --timeout 60s -- true >/tmp/r.json
    like "root has cgroup v2" "$(field /tmp/r.json resources)" "^in_force: cgroup v2"
    between "CPU time in ms of \`true\`" "$(field /tmp/r.json cpu_time_ms)" 1 5000
    limits_from_outside
    named_limits
    cpu_share "root"
    killed
    interface "root"
    check "no cgroup is left after the tests" "$(left)" ""

    as_user "" "$here/casemate" run --json --timeout 60s -- true >/tmp/r.json
    like "a user without a cgroup has rlimits, and is told why" \
        "$(field /tmp/r.json resources)" "^partial: rlimits.*not delegated"
    interface "user without a cgroup" as_user ""

    delegate "$cgroups/delegated"
    as_user "$cgroups/delegated" "$here/casemate" run --json --timeout 60s -- true >/tmp/r.json
    like "a user in a delegated cgroup has cgroup v2" \
        "$(field /tmp/r.json resources)" "^in_force: cgroup v2 \($cgroups/delegated/casemate"
    interface "user in a delegated cgroup" as_user "$cgroups/delegated"
    check "no cgroup is left in the delegated one" "$(left)" ""
    as_user "$cgroups/delegated" bash -c "$here/casemate run --json --timeout 60s -- true; true" \
        >/tmp/r.json
    like "a cgroup with other processes in it is left alone, and why is told" \
        "$(field /tmp/r.json resources)" "^partial: rlimits.*has other processes in it"

    mkdir "$cgroups/nocpu"
    echo "+memory +pids" >"$cgroups/nocpu/cgroup.subtree_control"
    delegate "$cgroups/nocpu/delegated"
    local run=(as_user "$cgroups/nocpu/delegated")
    "${run[@]}" "$here/casemate" run --json --timeout 60s -- true >/tmp/r.json
    like "without the cpu controller the rest is used" \
        "$(field /tmp/r.json resources)" "^partial: cgroup v2.*watcher keeps the CPU share"
    cpu_share "kept by the watcher" "${run[@]}"
    "${run[@]}" "$here/casemate" run --json --timeout 60s -- python3 -c 'bytearray(10**9)' \
        >/tmp/r.json
    check "too much memory is named without the cpu controller" \
        "$(field /tmp/r.json limit_hit)" memory
    check "no cgroup is left at the end" "$(left)" ""
}

# Makes a cgroup and gives it to the user.
delegate() {
    mkdir -p "$1"
    chown "$user:$user" "$1" "$1"/cgroup.{procs,threads,subtree_control}
}

# Runs a command as a user who has logged in.
logged_in() { runuser -l "$user" -w CASEMATE_TEST_PATIENCE -c "exec $*"; }

scopes() { find "$cgroups/user.slice" -type d -name 'run-*.scope'; }

systemd() {
    loginctl enable-linger "$user"
    until_true test -S "/run/user/$(id -u "$user")/systemd/private"
    until_true eval '[[ $(systemctl is-active "user@$(id -u "$user")") == active ]]'
    systemctl --version | head -1

    logged_in "$here/casemate run --json --timeout 60s -- true" >/tmp/r.json
    like "a user has cgroup v2 in a scope" "$(field /tmp/r.json resources)" \
        "^in_force: cgroup v2 \(.*/run-.*\.scope/casemate"
    until_true eval '[[ -z $(scopes) ]]'
    check "the scope is gone" "$(scopes)" ""

    SECRET=leaked runuser -l "$user" -w SECRET -c \
        "exec 9</etc/hostname; exec $here/casemate run --timeout 100s -- sleep 600.25" &
    local run=$! launcher
    until_true has_sandbox
    # The oldest: a sandbox's init has the same command line.
    launcher=$(pgrep -o -u "$user" -f __jail-launcher)
    like "the launcher is in a scope" "$(cat "/proc/$launcher/cgroup")" "run-.*\.scope"
    check "the launcher has no environment" "$(tr '\0' ' ' <"/proc/$launcher/environ")" ""
    # stdin and its copy are the connection; each sandbox has a pidfd and a cgroup.
    like "the supervisor inherited a descriptor" "$(readlink "/proc/$(pgrep -o -u "$user" -x casemate)/fd/9")" hostname
    check "the launcher's descriptors" \
        "$(readlink "/proc/$launcher"/fd/* | sed 's/:.*//' | sort | tr '\n' ' ')" \
        "$(printf '%s ' "/dev/null" "$(sandbox)" anon_inode pipe socket socket)"
    check "memory.max in the scope" "$(cat "$(sandbox)/memory.max")" 134217728
    check "cpu.max in the scope" "$(cat "$(sandbox)/cpu.max")" "50000 100000"
    pkill -9 -u "$user" -x casemate
    wait "$run" 2>/dev/null
    until_true eval '[[ -z $(scopes) ]]'
    check "the scope is gone after kill -9 of all" "$(scopes) $(pgrep -fc 'sleep 600.25')" " 0"

    runuser -l "$user" -c "
        unset DBUS_SESSION_BUS_ADDRESS
        mkdir -p /tmp/broken/systemd; touch /tmp/broken/systemd/private
        XDG_RUNTIME_DIR=/tmp/broken exec $here/casemate run --json --timeout 60s -- true" \
        >/tmp/r.json 2>/tmp/r.err
    like "where systemd-run fails, rlimits hold and why is told" \
        "$(field /tmp/r.json resources)" "^partial: rlimits.*scope: "
    echo "    $(field /tmp/r.json resources)"
    sed 's/^/    stderr: /' /tmp/r.err

    echo "    start of \`true\`, three times, in a scope and with rlimits, in s:"
    local rlimits="env -u XDG_RUNTIME_DIR -u DBUS_SESSION_BUS_ADDRESS"
    logged_in "bash -c 'TIMEFORMAT=%R; for with in \"\" \"$rlimits\"; do for i in 1 2 3; do
        time \$with $here/casemate run --timeout 60s -- true; done; done'" 2>&1 | sed 's/^/    /'

    interface "logged-in user" logged_in
    until_true eval '[[ -z $(scopes) ]]'
    check "no scope is left after the tests" "$(scopes)" ""

    local unit=(systemd-run --quiet --pipe --wait --property=Delegate=yes --property=User="$user")
    "${unit[@]}" "$here/casemate" run --json --timeout 60s -- true >/tmp/r.json
    like "a service with Delegate=yes has cgroup v2" "$(field /tmp/r.json resources)" \
        "^in_force: cgroup v2 \(.*\.service/casemate"
}

echo "GUEST $stage: $(uname -r), up $(cut -d' ' -f1 /proc/uptime) s"
id "$user" >/dev/null 2>&1 || useradd --create-home --shell /bin/bash "$user"
"$stage"
echo "GUEST $stage: done, up $(cut -d' ' -f1 /proc/uptime) s"
