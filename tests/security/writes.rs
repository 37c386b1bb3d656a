//! Writing outside the private places: nothing on the host changes.

use std::path::Path;

use tests::{Attack, Sandbox, scratch, trials, unique};

trials! { new_files_outside, existing_files, kernel_settings, own_places_are_writable, program_behind_the_sandbox }

fn new_files_outside() {
    let folder = scratch();
    let name = unique("written");
    let here = folder.path().to_str().expect("a plain path").to_owned();
    let control = Attack::new("write_paths.py").args(&[&name, &here]).on_host();
    assert!(control.text().contains("WROTE"), "{control:?}");
    assert!(folder.path().join(&name).exists());

    // Everything but the private places, with the host's real directories.
    let name = unique("written");
    let mut places = vec![here.as_str()];
    places.extend([
        "/",
        "/usr",
        "/usr/bin",
        "/usr/lib",
        "/usr/local",
        "/usr/local/bin",
        "/usr/share",
        "/etc",
        "/etc/ssl",
        "/bin",
        "/sbin",
        "/lib",
        "/lib64",
        "/opt",
        "/root",
        "/home",
        "/var",
        "/run",
        "/srv",
        "/sys",
        "/proc",
        "/proc/self",
        "/proc/sys/kernel",
        "/dev",
        "/dev/pts",
        "/boot",
        "/mnt",
    ]);
    let mut arguments = vec![name.as_str()];
    arguments.extend(&places);
    let ran = Attack::new("write_paths.py").args(&arguments).in_sandbox();
    for place in &places {
        for suffix in ["", ".d", ".l", ".p"] {
            let path = format!("{place}/{name}{suffix}");
            assert!(std::fs::symlink_metadata(&path).is_err(), "{path} is on the host");
        }
    }
    assert!(!ran.stdout().contains("WROTE"), "{}", ran.stdout());
    assert!(!ran.stdout().contains("CHANGED"), "{}", ran.stdout());
    assert!(ran.stdout().contains("/etc/") && ran.stdout().contains("Read-only file system"));
}

/// What a file is, without the time it was last read.
fn state(path: &Path) -> (Vec<u8>, u32, i64, u64) {
    use std::os::unix::fs::MetadataExt as _;
    let known = std::fs::metadata(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    // As an ordinary user some cannot be read; their change times tell.
    let contents = std::fs::read(path).unwrap_or_default();
    (contents, known.mode(), known.ctime_nsec(), known.nlink())
}

fn existing_files() {
    let folder = scratch();
    let victim = folder.path().join("victim");
    std::fs::write(&victim, "whole").expect("a file");
    let before = state(&victim);
    let path = victim.to_str().expect("a plain path");
    let control = Attack::new("damage_files.py").args(&[path]).on_host();
    assert!(control.text().contains("DAMAGED append"), "{control:?}");
    assert!(!victim.exists() || state(&victim) != before);

    let victims = [
        "/usr/bin/env",
        "/bin/sh",
        "/etc/passwd",
        "/etc/hosts",
        "/etc/ld.so.cache",
        "/etc/resolv.conf",
        "/usr/lib/os-release",
        "/etc/group",
        "/etc/nsswitch.conf",
    ];
    let victims: Vec<&str> = victims.into_iter().filter(|path| Path::new(path).is_file()).collect();
    let before: Vec<_> = victims.iter().map(|path| state(Path::new(path))).collect();
    let ran = Attack::new("damage_files.py").args(&victims).in_sandbox();
    let after: Vec<_> = victims.iter().map(|path| state(Path::new(path))).collect();
    assert_eq!(before, after, "{}", ran.stdout());
    assert!(!ran.stdout().contains("DAMAGED"), "{}", ran.stdout());
}

fn kernel_settings() {
    let attack = Attack::new("kernel_settings.py");
    if tests::is_root() {
        let control = attack.on_host();
        assert!(control.text().contains("OPENED /proc/sys/kernel/core_pattern"));
    } else {
        tests::skip_control("kernel_settings.py", "only root may change the host's settings");
    }
    let ran = attack.in_sandbox();
    assert!(ran.stdout().contains("tried"), "{ran:?}");
    assert!(!ran.stdout().contains("OPENED"), "{}", ran.stdout());
}

fn own_places_are_writable() {
    let name = unique("written");
    let places = [name.as_str(), "/tmp", "/home/user", "/dev/shm"];
    let ran = Attack::new("write_paths.py").args(&places).in_sandbox();
    assert_eq!(ran.stdout().matches("WROTE").count(), 3, "{}", ran.stdout());
    for place in &places[1..] {
        let path = format!("{place}/{name}");
        assert!(!Path::new(&path).exists(), "{path} is on the host");
    }
}

/// CVE-2019-5736: a container's program overwrote the runtime through
/// `/proc/PID/exe`.
fn program_behind_the_sandbox() {
    let folder = scratch();
    let planted = folder.path().join("planted");
    std::fs::write(&planted, "whole").expect("a file");
    let path = planted.to_str().expect("a plain path");
    Attack::new("overwrite_program.py").args(&["x", path]).on_host();
    assert_ne!(std::fs::read(&planted).expect("still a file"), b"whole");

    let copy = tests::private_copy(folder.path());
    let before = std::fs::read(&copy).expect("the copy");
    let attack = Attack::new("overwrite_program.py").args(&["x", "/proc/self/exe"]);
    let ran = attack.run_in(Sandbox::new().binary(&copy));
    assert!(std::fs::read(&copy).expect("the copy") == before, "overwritten: {ran:?}");
    assert!(!ran.stdout().contains("OVERWROTE"), "{}", ran.stdout());
}
