#!/bin/bash
# Tries the jail's cgroup v2 code in an emulated machine with a Debian kernel.
#
#   tests/vm/cgroup-v2.sh [plain] [systemd]     both stages if none is named
#
# plain:   only a shell as init, cgroup v2 mounted by hand: as root, as a user
#          without a cgroup, with a delegated one, with one without cpu
# systemd: Debian's systemd: a logged-in user, whose launcher starts in a scope,
#          and a service with Delegate=yes
#
# Needs root, for mmdebstrap and its file modes, and the Debian packages
# qemu-system-x86, mmdebstrap and e2fsprogs; exits with 77 where one is absent.
# Uses no KVM, so it runs anywhere. The first run fetches a Debian system (about
# 2 minutes), kept in the target directory; a stage takes a few minutes more.
# SUITE names another Debian release than bookworm.

set -euo pipefail

suite=${SUITE:-bookworm}
stages=("${@:-plain}")
(($# > 0)) || stages=(plain systemd)
here=$(cd "$(dirname "$0")" && pwd)
repo=$(cd "$here/../.." && pwd)

skip() { echo "skipped: $1" >&2 && exit 77; }
((EUID == 0)) || skip "only root can do this"
for need in qemu-system-x86_64:qemu-system-x86 mmdebstrap:mmdebstrap mke2fs:e2fsprogs; do
    command -v "${need%%:*}" >/dev/null || skip "install ${need##*:}"
done

cd "$repo"
target=${CARGO_TARGET_DIR:-$repo/target}
work=$target/vm/$suite
mkdir -p "$work"

echo "building"
cargo build --quiet --package casemate
tests=$(cargo test --package walls --test interface --no-run 2>&1 |
    sed -n 's/.*Executable.*(\(.*\))$/\1/p')

if [[ ! -e $work/disk.img ]]; then
    echo "fetching Debian $suite"
    trap 'rm -rf "$work/root" "$work/disk.part"' EXIT
    mmdebstrap --quiet --variant=minbase \
        --include=dbus-user-session,kmod,libpam-systemd,linux-image-cloud-amd64,procps,python3-minimal,python3,systemd-sysv,util-linux \
        --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
        "$suite" "$work/root"
    cat >"$work/root/sbin/init-plain" <<'INIT'
#!/bin/bash
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mountpoint -q /proc || mount -t proc proc /proc
mountpoint -q /sys || mount -t sysfs sys /sys
mount -t tmpfs run /run
mount -t tmpfs -o mode=1777 tmp /tmp
mkdir -p /dev/pts /dev/shm && mount -t devpts devpts /dev/pts && mount -t tmpfs shm /dev/shm
mount -t cgroup2 cgroup2 /sys/fs/cgroup
echo "+cpu +memory +pids" >/sys/fs/cgroup/cgroup.subtree_control
modprobe overlay
mkdir /opt/checks && tar xf /dev/vdb -C /opt/checks
bash /opt/checks/guest.sh plain
sync
echo o >/proc/sysrq-trigger
sleep 60
INIT
    cat >"$work/root/etc/systemd/system/checks.service" <<'UNIT'
[Unit]
After=multi-user.target systemd-logind.service
[Service]
Type=oneshot
ExecStart=/bin/bash -c 'modprobe overlay; mkdir /opt/checks && tar xf /dev/vdb -C /opt/checks && exec bash /opt/checks/guest.sh systemd'
ExecStopPost=/bin/systemctl poweroff --no-block
StandardOutput=tty
TTYPath=/dev/ttyS0
UNIT
    chmod +x "$work/root/sbin/init-plain"
    cp "$work/root/vmlinuz" "$work/root/initrd.img" "$work/"
    truncate --size=1500M "$work/disk.part"
    mke2fs -q -F -t ext4 -d "$work/root" "$work/disk.part"
    mv "$work/disk.part" "$work/disk.img"
fi

run=$(mktemp --directory "$work/run.XXXXXX")
trap 'rm -rf "$work/root" "$run"' EXIT
strip --strip-debug -o "$run/interface" "$tests"
strip --strip-debug -o "$run/casemate" "$target/debug/casemate"
cp "$here/guest.sh" "$run/"
tar --create --file="$run/checks.tar" --directory="$run" guest.sh interface casemate

failed=0
for stage in "${stages[@]}"; do
    case $stage in
    plain) how=init=/sbin/init-plain ;;
    systemd) how="systemd.unit=checks.service systemd.wants=multi-user.target systemd.mask=serial-getty@ttyS0.service systemd.unified_cgroup_hierarchy=1" ;;
    *) echo "unknown stage $stage" >&2 && exit 2 ;;
    esac
    echo "== $stage"
    # -snapshot: the disk stays as it was made.
    timeout --foreground 20m nice -n 5 qemu-system-x86_64 \
        -accel tcg,thread=multi -machine q35 -cpu max -m 2G -smp 2 -nographic -no-reboot -nic none -snapshot \
        -kernel "$work/vmlinuz" -initrd "$work/initrd.img" \
        -append "root=/dev/vda rw console=ttyS0 quiet panic=-1 mitigations=off $how" \
        -drive "file=$work/disk.img,format=raw,if=virtio" \
        -drive "file=$run/checks.tar,format=raw,if=virtio,readonly=on" </dev/null |
        tr -d '\r' | tee "$work/$stage.log" | grep --line-buffered -aE '^(PASS|FAIL|SKIP|GUEST|    )' || true
    if ! grep -aq "^GUEST $stage: done" "$work/$stage.log"; then
        echo "FAIL $stage: the machine did not get to the end; see $work/$stage.log" | tee -a "$work/$stage.log"
    fi
done

echo "== summary"
for stage in "${stages[@]}"; do
    count() { grep -acE "^$1 $stage" "$work/$stage.log" || true; }
    echo "$stage: $(count PASS) passed, $(count FAIL) failed, $(count SKIP) skipped"
    (($(count FAIL) == 0)) || failed=1
done
((failed == 0)) && echo PASS || { echo FAIL && exit 1; }
