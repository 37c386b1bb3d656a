//! Files that are put in and got out: names, links and kinds of files that
//! the program chose.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use tests::{Attack, Ran, Sandbox, scratch, trials, unique};

trials! {
    symlink_to_a_host_file, symlink_to_a_file_inside, symlink_in_the_path, hard_link,
    fifo, other_kinds, endless_files, file_that_keeps_changing,
    names_that_climb, names_from_the_program, host_target_that_is_a_symlink,
    host_target_in_a_symlinked_folder, put_of_a_fifo, put_of_a_symlink, put_of_a_folder_with_links,
    put_onto_system_files, plain_files_come_and_go,
}

/// Runs `output_files.py` and collects `/home/user/out` to `to`.
fn collect(arguments: &[&str], to: &Path) -> Ran {
    collect_from("/home/user/out", arguments, to)
}

fn collect_from(guest: &str, arguments: &[&str], to: &Path) -> Ran {
    let sandbox = Sandbox::new().option("--get", format!("{guest}:{}", to.display()));
    let sandbox = sandbox.deadline(Duration::from_secs(30)).may_fail();
    Attack::new("output_files.py").args(arguments).run_in(sandbox)
}

fn text(path: &Path) -> String {
    fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

fn symlink_to_a_host_file() {
    let folder = scratch();
    let secret = unique("secret");
    let file = folder.path().join("file");
    fs::write(&file, &secret).expect("a file");
    let target = file.to_str().expect("a plain path");

    let trap = folder.path().join("trap");
    let trap_path = trap.to_str().expect("a plain path");
    Attack::new("output_files.py").args(&["symlink", trap_path, target]).on_host();
    assert_eq!(text(&trap), secret, "whoever reads it on the host reads the secret");

    let climbing = format!("../../../../../..{target}");
    let through_proc = format!("/proc/self/root{target}");
    for target in [target, &climbing, &through_proc] {
        let got = folder.path().join("got");
        let ran = collect(&["symlink", "/home/user/out", target], &got);
        assert!(!text(&got).contains(&secret), "{target}: {ran:?}");
        assert!(!ran.everything().contains(&secret), "{target}: {ran:?}");
        assert!(fs::symlink_metadata(&got).is_err(), "nothing is made of it: {target}: {ran:?}");
    }
}

/// The sandbox's own `/etc/passwd` is no secret; the host's is not it.
fn symlink_to_a_file_inside() {
    let folder = scratch();
    let got = folder.path().join("got");
    let ran = collect(&["symlink", "/home/user/out", "/etc/passwd"], &got);
    let host = text(Path::new("/etc/passwd"));
    assert_ne!(text(&got), host, "{ran:?}");
    let is_link = fs::symlink_metadata(&got).is_ok_and(|known| known.is_symlink());
    assert!(!is_link, "a link to the host's file was made: {ran:?}");
}

fn symlink_in_the_path() {
    let folder = scratch();
    let secret = unique("secret");
    fs::write(folder.path().join("file"), &secret).expect("a file");
    let target = folder.path().join("file").display().to_string();
    let got = folder.path().join("got");
    let ran = collect_from("/home/user/out/file", &["parent", "/home/user/out", &target], &got);
    assert!(!text(&got).contains(&secret), "{ran:?}");
}

fn hard_link() {
    let folder = scratch();
    let victim = folder.path().join("victim");
    fs::write(&victim, "whole").expect("a file");
    let linked = folder.path().join("linked");
    let both = [victim.to_str().expect("a plain path"), linked.to_str().expect("a plain path")];
    Attack::new("output_files.py").args(&["hardlink", both[1], both[0]]).on_host();
    assert_eq!(text(&linked), "whole", "on the host it is linked");

    for target in ["/usr/bin/env", "/etc/passwd", "/etc/hosts", both[0]] {
        let got = folder.path().join("got");
        let ran = collect(&["hardlink", "/home/user/out", target], &got);
        assert!(ran.stdout().contains("refused"), "{target}: {ran:?}");
        assert!(!got.exists(), "{target}: {ran:?}");
    }
}

fn fifo() {
    let folder = scratch();
    let got = folder.path().join("got");
    let ran = collect(&["fifo", "/home/user/out"], &got);
    assert!(ran.process.elapsed < Duration::from_secs(5), "it waited for a writer: {ran:?}");
    assert!(!got.exists(), "{ran:?}");
    assert_eq!(ran.stdout(), "made fifo\n");
    assert_eq!(ran.json["cleanup"], "ok", "{ran:?}");
}

fn other_kinds() {
    for kind in ["socket", "directory"] {
        let folder = scratch();
        let got = folder.path().join("got");
        let ran = collect(&[kind, "/home/user/out"], &got);
        assert_eq!(ran.json["cleanup"], "ok", "{kind}: {ran:?}");
        assert!(!got.is_file(), "{kind}: {ran:?}");
    }
}

fn endless_files() {
    let folder = scratch();
    let endless =
        ["/dev/zero", "/dev/urandom", "/proc/self/mem", "/proc/1/mem", "/proc/kcore", "/dev/tty"];
    for guest in endless {
        let got = folder.path().join("got");
        let ran = collect_from(guest, &["directory", "/home/user/x"], &got);
        assert!(ran.process.elapsed < Duration::from_secs(5), "{guest}: {ran:?}");
        assert!(!got.exists(), "{guest}: {ran:?}");
    }
    let got = folder.path().join("got");
    let ran = collect(&["sparse", "/home/user/out"], &got);
    assert!(ran.process.elapsed < Duration::from_secs(20), "{ran:?}");
    let size = fs::metadata(&got).map_or(0, |known| known.len());
    assert!(size <= 1 << 30, "a terabyte of nothing became {size} bytes: {ran:?}");
}

/// A path that is checked first and opened then can change in between.
fn file_that_keeps_changing() {
    let folder = scratch();
    let secret = unique("secret");
    let file = folder.path().join("file");
    fs::write(&file, &secret).expect("a file");
    let target = file.to_str().expect("a plain path");
    for _ in 0..5 {
        let got = folder.path().join("got");
        let ran = collect(&["swap", "/home/user/out", target], &got);
        assert!(!text(&got).contains(&secret), "{ran:?}");
        let is_link = fs::symlink_metadata(&got).is_ok_and(|known| known.is_symlink());
        assert!(!is_link, "{ran:?}");
    }
}

fn names_that_climb() {
    let folder = scratch();
    let file = folder.path().join("file");
    fs::write(&file, "put").expect("a file");
    let name = unique("climbed");
    let guests = [
        format!("../../../../../../tmp/{name}"),
        format!("/tmp/../../../../tmp/{name}"),
        format!("/../../tmp/{name}"),
        format!("/proc/self/root/tmp/{name}"),
        format!("/proc/1/root/tmp/{name}"),
    ];
    for guest in guests {
        let ran = Sandbox::new().may_fail().put(&file, &guest).run(&["true"]);
        for place in ["/tmp", "/", "/var/tmp"] {
            assert!(!Path::new(place).join(&name).exists(), "{guest}: {ran:?}");
        }
        let inside = folder.path().join(&name);
        assert!(!inside.exists(), "{guest}: {ran:?}");
    }
}

/// `--get` without a host name takes the last part of the guest path, and the
/// working directory is the user's.
fn names_from_the_program() {
    let folder = scratch();
    let home = folder.path().join("home");
    fs::create_dir(&home).expect("a directory");
    for guest in ["/home/user/a/..", "/home/user/..", "/tmp/.", "/", "/home/user/../../etc/passwd"]
    {
        let sandbox = Sandbox::new().may_fail().directory(&home).option("--get", guest);
        let ran = sandbox.run(&["sh", "-c", "mkdir -p a; echo data > a/x"]);
        let outside: Vec<_> = fs::read_dir(folder.path()).expect("a folder").flatten().collect();
        assert_eq!(outside.len(), 1, "{guest}: {ran:?}");
    }
}

fn host_target_that_is_a_symlink() {
    let folder = scratch();
    let victim = folder.path().join("victim");
    fs::write(&victim, "whole").expect("a file");
    let link = folder.path().join("link");
    symlink(&victim, &link).expect("a link");
    let sandbox = Sandbox::new().may_fail();
    let sandbox = sandbox.option("--get", format!("/home/user/out:{}", link.display()));
    let ran = sandbox.run(&["sh", "-c", "echo damage > out"]);
    assert_eq!(text(&victim), "whole", "the link was followed: {ran:?}");
}

/// The user's own folders may be links; that is their affair. The file itself
/// arrives whole or not at all.
fn host_target_in_a_symlinked_folder() {
    let folder = scratch();
    let real = folder.path().join("real");
    fs::create_dir(&real).expect("a directory");
    symlink(&real, folder.path().join("alias")).expect("a link");
    let target = folder.path().join("alias/out");
    let sandbox = Sandbox::new().option("--get", format!("/home/user/out:{}", target.display()));
    let ran = sandbox.run(&["sh", "-c", "printf data > out"]);
    assert_eq!(text(&real.join("out")), "data", "{ran:?}");
    let entries = fs::read_dir(&real).expect("a folder").count();
    assert_eq!(entries, 1, "no temporary file is left");
}

fn put_of_a_fifo() {
    let folder = scratch();
    let path = folder.path().join("fifo");
    let made = std::process::Command::new("mkfifo").arg(&path).status();
    assert!(made.is_ok_and(|status| status.success()));
    let sandbox = Sandbox::new().may_fail().deadline(Duration::from_secs(10));
    let ran = sandbox.put(&path, "/tmp/in").run(&["echo", "it", "ran"]);
    assert!(!ran.stdout().contains("it ran"), "{ran:?}");
    assert_eq!(ran.process.code(), 125, "{ran:?}");
}

fn put_of_a_symlink() {
    let folder = scratch();
    let file = folder.path().join("file");
    fs::write(&file, "contents").expect("a file");
    let link = folder.path().join("link");
    symlink(&file, &link).expect("a link");
    let ran = Sandbox::new().may_fail().put(&link, "/tmp/in").run(&["cat", "/tmp/in"]);
    // Named by the user, it stands for its file; or it is refused.
    assert!(ran.stdout() == "contents" || ran.process.code() == 125, "{ran:?}");
}

/// A downloaded folder may hold links to anything.
fn put_of_a_folder_with_links() {
    let folder = scratch();
    let secret = unique("secret");
    fs::write(folder.path().join("file"), &secret).expect("a file");
    let project = folder.path().join("project");
    fs::create_dir(&project).expect("a directory");
    fs::write(project.join("plain"), "plain").expect("a file");
    symlink(folder.path().join("file"), project.join("absolute")).expect("a link");
    symlink("../file", project.join("relative")).expect("a link");
    symlink("..", project.join("up")).expect("a link");
    let sandbox = Sandbox::new().may_fail().put(&project, "/tmp/project");
    let ran =
        sandbox.run(&["sh", "-c", "cat /tmp/project/* /tmp/project/up/file; ls -lR /tmp/project"]);
    assert!(!ran.everything().contains(&secret), "{ran:?}");
}

fn put_onto_system_files() {
    let folder = scratch();
    let file = folder.path().join("file");
    let marker = unique("put");
    fs::write(&file, &marker).expect("a file");
    for guest in ["/etc/passwd", "/usr/bin/put-here", "/etc/ld.so.preload", "/bin/put-here"] {
        let before = text(Path::new(guest));
        let ran = Sandbox::new().may_fail().put(&file, guest).run(&["true"]);
        assert_eq!(text(Path::new(guest)), before, "{guest}: {ran:?}");
    }
}

fn plain_files_come_and_go() {
    let folder = scratch();
    let input = folder.path().join("in");
    let bytes: Vec<u8> = (0..200_000_u32).map(|n| n.to_le_bytes()[0]).collect();
    fs::write(&input, &bytes).expect("a file");
    let output = folder.path().join("out");
    let sandbox = Sandbox::new().put(&input, "/home/user/deep/er/in");
    let sandbox = sandbox.option("--get", format!("/tmp/out:{}", output.display()));
    let ran = sandbox.run(&["sh", "-c", "cp deep/er/in /tmp/out; wc -c < /tmp/out"]);
    assert_eq!(ran.stdout(), "200000\n", "{ran:?}");
    assert!(fs::read(&output).expect("the file came out") == bytes);
}
