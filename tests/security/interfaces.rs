//! Kernel interfaces: privileged calls, those that many attacks begin with,
//! and other ways of making calls.

use std::time::Duration;

use tests::{Attack, Report, Sandbox, marked_pids, trials, unique, wait_until};

trials! { attack_surface, nothing_is_held_open, privileged_calls, privileged_calls_with_effect, other_abis, host_wide_aio_contexts }

/// All that succeeds on the host must be refused inside.
fn attack_surface() {
    let Some(attack) = Attack::maybe("interfaces.c") else { return };
    let control = Report::read(&attack.on_host().text());
    let ran = attack.in_sandbox();
    let inside = Report::read(ran.stdout());
    for (name, result) in control.iter() {
        if result != "ok" {
            tests::skip_control(
                &format!("interfaces.c {name}"),
                &format!("the host says {result}"),
            );
        }
        let got = inside.of(name);
        assert!(matches!(got, "EPERM" | "ENOSYS"), "{name}: {got}");
    }
    assert_eq!(inside.of("userfaultfd"), "EPERM", "known and refused");
}

/// The same, seen from outside: which kernel objects the process has open.
fn nothing_is_held_open() {
    let Some(attack) = Attack::maybe("interfaces.c") else { return };
    let objects = |marker: &str| {
        let mut found = Vec::new();
        for pid in marked_pids(marker) {
            let Ok(entries) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { continue };
            let links = entries.flatten().filter_map(|entry| std::fs::read_link(entry.path()).ok());
            found.extend(links.map(|link| link.display().to_string()));
        }
        found
    };
    let dangerous = |link: &String| {
        ["io_uring", "bpf", "perf_event", "userfaultfd", "fanotify", "secretmem"]
            .iter()
            .any(|kind| link.contains(kind))
    };

    let marker = unique("held");
    let mut control = std::process::Command::new(&attack.host_argv()[0])
        .args(["hold", &marker])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("the control starts");
    let held = wait_until(Duration::from_secs(5), || objects(&marker).iter().any(dangerous));
    drop(control.stdin.take());
    let _ = control.wait();
    assert!(held, "on the host it holds such objects");

    let marker = unique("held");
    let live = attack.args(&["hold", &marker]).start_in(Sandbox::new());
    let begun = wait_until(Duration::from_secs(5), || marked_pids(&marker).len() > 1);
    std::thread::sleep(Duration::from_millis(300));
    // `casemate` itself may well use such a thing; what runs inside may not.
    let inside: Vec<u32> =
        marked_pids(&marker).into_iter().filter(|&pid| pid != live.pid()).collect();
    let mut found = Vec::new();
    for pid in &inside {
        let is_casemate = std::fs::read_link(format!("/proc/{pid}/exe"))
            .is_ok_and(|exe| exe.ends_with("casemate"));
        let Ok(entries) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { continue };
        if is_casemate {
            continue;
        }
        let links = entries.flatten().filter_map(|entry| std::fs::read_link(entry.path()).ok());
        found.extend(links.map(|link| link.display().to_string()).filter(dangerous));
    }
    let ran = live.wait();
    assert!(begun, "the attack is seen from outside: {ran:?}");
    assert!(found.is_empty(), "{found:?}");
}

fn privileged_calls() {
    let Some(attack) = Attack::maybe("privileged.c") else { return };
    let control = Report::read(&attack.on_host().text());
    let ran = attack.in_sandbox();
    let inside = Report::read(ran.stdout());
    if !tests::is_root() {
        tests::skip_control("privileged.c", "most of it needs root on the host");
    }
    for (name, result) in control.iter() {
        if result != "ok" && tests::is_root() {
            tests::skip_control(
                &format!("privileged.c {name}"),
                &format!("the host says {result}"),
            );
        }
        let got = inside.of(name);
        let refused = matches!(got, "EPERM" | "ENOSYS" | "EACCES" | "EINVAL");
        // A device node without any device behind it is a marker that overlay
        // file systems use; making one needs no privilege.
        assert!(refused || name == "whiteout", "{name}: {got}");
        assert!(got != "EINVAL" || name.starts_with("set") || name == "capset", "{name}: {got}");
    }
}

fn privileged_calls_with_effect() {
    let Some(attack) = Attack::maybe("privileged.c") else { return };
    tests::skip_control("privileged.c inside", "it would restart this host");
    let hostname = || std::fs::read_to_string("/proc/sys/kernel/hostname").expect("a hostname");
    let before = hostname();
    let ran = attack.args(&["inside"]).in_sandbox();
    let inside = Report::read(ran.stdout());
    for name in ["vhangup", "reboot-restart", "sethostname-really", "syslog-clear"] {
        assert!(matches!(inside.of(name), "EPERM" | "ENOSYS"), "{name}: {}", inside.of(name));
    }
    assert_eq!(hostname(), before);
}

fn other_abis() {
    let Some(attack) = Attack::maybe("other_abis.c") else { return };
    if !cfg!(target_arch = "x86_64") {
        tests::skip_attack("other_abis.c", "only x86-64 has more than one");
        return;
    }
    let control = Report::read(&attack.on_host().text());
    for name in ["int80-getpid", "x32-getpid"] {
        if control.of(name) != "ok" {
            tests::skip_control(&format!("other_abis.c {name}"), "this kernel is without it");
        }
    }
    let ran = attack.run_in(Sandbox::new());
    let inside = Report::read(ran.stdout());
    for (name, result) in inside.iter() {
        if name.starts_with("int80") || name.starts_with("x32") {
            let stopped = matches!(result, "ENOSYS" | "EPERM") || result.starts_with("killed-by");
            assert!(stopped, "{name}: {result}");
        } else if name.starts_with("unknown") && name != "unknown-wide" {
            assert_eq!(result, "ENOSYS", "{name}");
        } else if name.starts_with("old") {
            assert!(matches!(result, "ENOSYS" | "EPERM"), "{name}: {result}");
        }
    }
}

/// `/proc/sys/fs/aio-max-nr` bounds all users of the host together.
fn host_wide_aio_contexts() {
    let taken = || -> u64 {
        let text = std::fs::read_to_string("/proc/sys/fs/aio-nr").unwrap_or_default();
        text.trim().parse().unwrap_or(0)
    };
    let before = taken();
    let attack = Attack::new("host_wide_aio.py").args(&["10"]);
    let mut control = std::process::Command::new(tests::system_python())
        .args(&attack.host_argv()[1..])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("the control starts");
    let works = wait_until(Duration::from_secs(5), || taken() >= before + 5000);
    drop(control.stdin.take());
    let _ = control.wait();
    assert!(works, "on the host it takes contexts of all");
    assert!(wait_until(Duration::from_secs(5), || taken() < before + 5000));

    let live = Attack::new("host_wide_aio.py").args(&["100"]).start_in(Sandbox::new());
    let took = wait_until(Duration::from_secs(2), || taken() >= before + 5000);
    let ran = live.wait();
    assert!(!took, "a sandbox takes what the host has of them: {ran:?}");
}
