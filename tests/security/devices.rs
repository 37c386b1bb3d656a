//! Device nodes, and core dumps.

use std::os::unix::fs::FileTypeExt as _;
use std::time::Duration;

use tests::{Attack, HostRun, Sandbox, marked_pids, trials, unique, wait_until};

trials! { opening, core_dump, core_limit_seen_from_outside }

/// All device nodes of the host, two levels deep.
fn host_devices() -> Vec<String> {
    let mut found = Vec::new();
    for folder in
        ["/dev", "/dev/net", "/dev/input", "/dev/dri", "/dev/snd", "/dev/mapper", "/dev/vfio"]
    {
        let Ok(entries) = std::fs::read_dir(folder) else { continue };
        for entry in entries.flatten() {
            let device =
                entry.file_type().is_ok_and(|kind| kind.is_char_device() || kind.is_block_device());
            if device {
                found.push(entry.path().display().to_string());
            }
        }
    }
    found
}

fn opening() {
    let harmless = [
        "/dev/null",
        "/dev/zero",
        "/dev/full",
        "/dev/random",
        "/dev/urandom",
        "/dev/tty",
        "/dev/ptmx",
    ];
    // Opening these does nothing; opening each of the host's might.
    let safe =
        ["/dev/kvm", "/dev/vda", "/dev/sda", "/dev/nvme0n1", "/dev/kmsg", "/dev/fuse", "/dev/mem"];
    let control = Attack::new("open_devices.py").args(&safe).on_host();
    if !control.text().contains(" ok") {
        tests::skip_control("open_devices.py", "this user may open none on the host either");
    }
    let mut all = host_devices();
    all.extend(safe.map(str::to_owned));
    all.extend(
        ["/dev/net/tun", "/dev/port", "/dev/vsock", "/dev/vhost-net", "/dev/loop-control"]
            .map(str::to_owned),
    );
    all.extend(["/dev/fd/0", "/dev/pts/0", "/dev/pts/1", "/dev/pts/2"].map(str::to_owned));
    let ran = Attack::new("open_devices.py").args(&all).in_sandbox();
    let opened: Vec<&str> =
        ran.stdout().lines().filter_map(|line| line.strip_suffix(" ok")).collect();
    let others: Vec<_> =
        opened.iter().filter(|path| !harmless.contains(path) && **path != "/dev/fd/0").collect();
    assert!(others.is_empty(), "{others:?}");
    for needed in &harmless[..5] {
        assert!(opened.contains(needed), "{needed} is there: {opened:?}");
    }
}

fn core_dump() {
    let attack = Attack::new("crash.py");
    let pattern = std::fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap_or_default();
    let control = attack.on_host();
    if !control.text().contains("\ndumped") {
        tests::skip_control("crash.py", &format!("the host makes no dump to `{}`", pattern.trim()));
    }
    let ran = attack.in_sandbox();
    assert!(ran.stdout().contains("hard limit 1\n"), "{ran:?}");
    assert!(ran.stdout().contains("not dumped"), "{ran:?}");
    assert!(ran.stdout().contains("files []"), "{ran:?}");
}

/// A dump piped to a helper of the host's is made even where the limit is 0;
/// the kernel runs no helper for a limit of 1, which is too small for a file.
fn core_limit_seen_from_outside() {
    let marker = unique("core");
    let read = |pid: u32| std::fs::read_to_string(format!("/proc/{pid}/limits")).ok();
    let core = |text: &str| {
        let line = text.lines().find(|line| line.starts_with("Max core file size"));
        line.map(|line| line["Max core file size".len()..].trim().to_owned())
    };
    let control = HostRun::new(&["sh", "-c", "ulimit -Hc"]).run().text();
    if control.trim() == "0" {
        tests::skip_control("core limit", "the host's own hard limit is 0");
    }
    let live = Attack::new("wait.py").args(&[&marker]).start_in(Sandbox::new());
    let inside = || {
        marked_pids(&marker).into_iter().find(|&pid| {
            std::fs::read_link(format!("/proc/{pid}/exe"))
                .is_ok_and(|exe| exe.to_string_lossy().contains("python"))
        })
    };
    assert!(wait_until(Duration::from_secs(5), || inside().is_some()), "it is seen from outside");
    let limits = inside().and_then(read).expect("limits");
    let numbers = core(&limits).unwrap_or_default();
    let numbers: Vec<&str> = numbers.split_whitespace().take(2).collect();
    assert_eq!(numbers, ["1", "1"], "{limits}");
    drop(live.wait());
}
