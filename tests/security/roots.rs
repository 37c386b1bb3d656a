//! Roots that strangers made: unpacked images with links where directories
//! are expected.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use tests::{HostRun, Sandbox, scratch, trials, unique};

trials! { links_in_place_of_mount_points, links_among_the_entries, bundle_that_is_a_link, a_plain_root_works }

/// A directory that holds a program which needs nothing else, or `None`, said
/// aloud, where none can be built.
fn root(at: &Path) -> Option<PathBuf> {
    let root = at.join("root");
    fs::create_dir_all(root.join("bin")).expect("a directory");
    let program = root.join("bin/show");
    if tests::compile_static("show_paths.c", &program) {
        Some(root)
    } else {
        tests::skip_attack("show_paths.c in a root", "this host links no static programs");
        None
    }
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("a directory").flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// What follows such a link makes or changes things on the host.
fn links_in_place_of_mount_points() {
    let places = [
        "tmp",
        "proc",
        "dev",
        "home",
        "home/user",
        "dev/shm",
        "dev/pts",
        "dev/null",
        "sys",
        "etc",
        "etc/passwd",
        "var",
        "run",
    ];
    for place in places {
        let folder = scratch();
        let victim = folder.path().join("victim");
        fs::create_dir(&victim).expect("a directory");
        let secret = unique("secret");
        fs::write(victim.join("file"), &secret).expect("a file");
        let Some(root) = root(folder.path()) else { return };
        let link = root.join(place);
        fs::create_dir_all(link.parent().expect("a parent")).expect("a directory");
        symlink(&victim, &link).expect("a link");
        let followed = fs::read_to_string(link.join("file")).expect("the host follows it");
        assert_eq!(followed, secret);
        let inside = format!("/{place}/file");
        let sandbox = Sandbox::new().may_fail().option("--root", &root);
        let ran = sandbox.run(&["/bin/show", &inside, "/"]);
        assert!(!ran.everything().contains(&secret), "{place}: {ran:?}");
        assert_eq!(names(&victim), ["file"], "{place}: {ran:?}");
        assert!(fs::symlink_metadata(&link).is_ok_and(|known| known.is_symlink()), "{place}");
    }
}

fn links_among_the_entries() {
    let folder = scratch();
    let secret = unique("secret");
    let victim = folder.path().join("victim");
    fs::create_dir(&victim).expect("a directory");
    fs::write(victim.join("file"), &secret).expect("a file");
    let Some(root) = root(folder.path()) else { return };
    symlink(&victim, root.join("absolute")).expect("a link");
    symlink("../victim", root.join("relative")).expect("a link");
    symlink(victim.join("file"), root.join("file")).expect("a link");
    symlink(format!("/proc/self/root{}", victim.display()), root.join("around")).expect("a link");
    let ways = ["/absolute/file", "/relative/file", "/file", "/around/file", "/relative"];
    let program = root.join("bin/show").display().to_string();
    let link = root.join("relative/file").display().to_string();
    assert!(HostRun::new(&[program, link]).run().text().contains(&secret));
    let mut argv = vec!["/bin/show"];
    argv.extend(ways);
    let ran = Sandbox::new().option("--root", &root).run(&argv);
    assert!(ran.stdout().contains("/file:"), "it ran: {ran:?}");
    assert!(!ran.everything().contains(&secret), "{ran:?}");
}

/// `rootfs` of a bundle is the image's; it must not name a place on the host.
fn bundle_that_is_a_link() {
    for target in ["../root", "/"] {
        let folder = scratch();
        let secret = unique("secret");
        let Some(root) = root(folder.path()) else { return };
        fs::write(root.join("file"), &secret).expect("a file");
        let bundle = folder.path().join("bundle");
        fs::create_dir(&bundle).expect("a directory");
        fs::write(bundle.join("config.json"), "{}").expect("a file");
        symlink(target, bundle.join("rootfs")).expect("a link");
        let in_temp = format!("{}/file", root.display());
        let sandbox = Sandbox::new().may_fail().option("--root", &bundle);
        let ran = sandbox.run(&["/bin/show", "/file", &in_temp]);
        assert!(!ran.everything().contains(&secret), "{target}: {ran:?}");
        let ran = sandbox.run(&["/bin/ls", "/etc", "/var", "/opt"]);
        assert!(ran.stdout().is_empty(), "{target}: {ran:?}");
    }
}

fn a_plain_root_works() {
    let folder = scratch();
    let Some(root) = root(folder.path()) else { return };
    fs::write(root.join("file"), "of the image").expect("a file");
    let ran = Sandbox::new().option("--root", &root).run(&["/bin/show", "/file"]);
    assert_eq!(ran.stdout(), "/file: of the image\n", "{ran:?}");
    let bundle = folder.path().join("bundle");
    fs::create_dir(&bundle).expect("a directory");
    fs::write(bundle.join("config.json"), "{}").expect("a file");
    fs::rename(&root, bundle.join("rootfs")).expect("the root moves");
    let ran = Sandbox::new().option("--root", &bundle).run(&["/bin/show", "/file"]);
    assert_eq!(ran.stdout(), "/file: of the image\n", "{ran:?}");
}
