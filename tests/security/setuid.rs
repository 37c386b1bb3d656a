//! Programs that run as another user than whoever starts them.

use std::os::unix::fs::PermissionsExt as _;

use tests::{HostRun, Sandbox, scratch, trials};

trials! { programs_of_the_host, planted_in_a_root }

fn programs_of_the_host() {
    let programs = [
        "/usr/bin/su",
        "/usr/bin/passwd",
        "/usr/bin/mount",
        "/usr/bin/sudo",
        "/usr/bin/pkexec",
        "/usr/bin/newuidmap",
    ];
    let present: Vec<&str> = programs
        .into_iter()
        .filter(|path| std::fs::metadata(path).is_ok_and(|m| m.permissions().mode() & 0o4000 != 0))
        .collect();
    if present.is_empty() {
        tests::skip_attack("set-user-id programs", "the host has none");
        return;
    }
    // While one runs, its effective user as the host sees it would tell.
    let code = format!(
        "import subprocess\nfor p in {present:?}:\n c=subprocess.Popen([p],stdin=subprocess.PIPE,stdout=subprocess.PIPE,stderr=subprocess.STDOUT)\n\
         \x20try: print(p,[l for l in open(f'/proc/{{c.pid}}/status') if l.startswith(('Uid','CapEff','NoNewPrivs'))])\n\
         \x20except OSError: pass\n c.communicate()"
    );
    let ran = Sandbox::new().run(&["python3", "-c", &code]);
    for line in ran.stdout().lines().filter(|line| line.contains("Uid")) {
        assert!(line.contains("1000\\t1000\\t1000\\t1000"), "{line}");
        assert!(line.contains("NoNewPrivs:\\t1"), "{line}");
        assert!(line.contains("CapEff:\\t0000000000000000"), "{line}");
    }
}

/// A root directory whose author planted a set-user-id copy of a program.
fn planted_in_a_root() {
    let folder = scratch();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755))
        .expect("a mode");
    let root = folder.path().join("root");
    std::fs::create_dir_all(root.join("bin")).expect("a directory");
    let planted = root.join("bin/who");
    if !tests::compile_static("who_am_i.c", &planted) {
        tests::skip_attack("who_am_i.c in a root", "this host links no static programs");
        return;
    }
    std::fs::set_permissions(&planted, std::fs::Permissions::from_mode(0o6755)).expect("a mode");
    if tests::is_root() {
        let path = planted.to_str().expect("a plain path");
        let control = HostRun::new(&[
            "setpriv",
            "--reuid",
            "65534",
            "--regid",
            "65534",
            "--clear-groups",
            path,
        ]);
        let control = control.run();
        assert!(control.text().starts_with("euid 0 uid 65534"), "{control:?}");
    } else {
        tests::skip_control("who_am_i.c", "only root can plant a program that runs as root");
    }
    let ran = Sandbox::new().option("--root", &root).run(&["/bin/who"]);
    assert_eq!(ran.stdout(), "euid 1000 uid 1000 egid 1000\n", "{ran:?}");
}
