//! Mounts, roots and namespaces.

use tests::{Attack, Report, Sandbox, scratch, trials, unique};

trials! { mounting, chroot_escape, namespaces, host_mounts_are_unchanged }

fn mounting() {
    let Some(attack) = Attack::maybe("mounts.c") else { return };
    let control = attack.in_namespaces();
    let control = Report::read(&control.text());
    for name in ["tmpfs", "bind", "chroot", "fsopen", "open_tree", "propagation"] {
        assert_eq!(control.of(name), "ok", "{name} within bare namespaces: {control:?}");
    }
    let ran = attack.in_sandbox();
    let inside = Report::read(ran.stdout());
    for name in control.names() {
        let got = inside.of(name);
        assert!(matches!(got, "EPERM" | "ENOSYS"), "{name}: {got}");
    }
}

fn chroot_escape() {
    let Some(attack) = Attack::maybe("chroot_escape.c") else { return };
    let folder = scratch();
    let secret = unique("secret");
    let file = folder.path().join("file");
    std::fs::write(&file, &secret).expect("a file");
    let attack = attack.args(&[file.to_str().expect("a plain path")]);
    let control = attack.in_namespaces();
    assert!(control.text().contains(&secret), "{control:?}");
    let ran = attack.in_sandbox();
    assert!(!ran.stdout().contains(&secret), "{ran:?}");
}

fn namespaces() {
    let Some(attack) = Attack::maybe("namespaces.c") else { return };
    let control = Report::read(&attack.on_host().text());
    assert_eq!(control.of("unshare-user"), "ok", "the host allows it: {control:?}");
    assert_eq!(control.of("clone3-user"), "ok", "{control:?}");
    let ran = attack.in_sandbox();
    let inside = Report::read(ran.stdout());
    let made: Vec<_> = inside.iter().filter(|&(_, result)| result == "ok").collect();
    // The C library's clone has always ignored the high half of its flags.
    assert!(made.is_empty(), "{made:?}");
    for (name, result) in inside.iter().filter(|(name, _)| name.starts_with("unshare-user")) {
        assert_eq!(result, "EPERM", "{name}");
    }
    assert_eq!(inside.of("clone3-user"), "ENOSYS", "so that the C library falls back");
}

fn host_mounts_are_unchanged() {
    let mounts = || std::fs::read_to_string("/proc/self/mountinfo").expect("a mount table");
    let before = mounts();
    let live = Attack::new("wait.py").args(&[&unique("mounts")]).start_in(Sandbox::new());
    std::thread::sleep(std::time::Duration::from_millis(400));
    let meanwhile = mounts();
    let ran = live.wait();
    assert_eq!(ran.stdout(), "begun\n");
    let fresh: Vec<&str> = meanwhile.lines().filter(|line| !before.contains(line)).collect();
    let ours: Vec<_> = fresh.iter().filter(|line| line.contains("casemate")).collect();
    assert!(ours.is_empty(), "the host sees {ours:?}");
}
