//! The private file system of a sandbox.
//!
//! All that is writable lies on one tmpfs with a size limit. Its own root
//! directory, mounted read-only, is the sandbox's root; `/tmp`, the home and
//! `/dev/shm` are directories of it, mounted writable over themselves. System
//! directories are read-only copies of the host's mounts.
//!
//! Runs in init, in its new mount namespace, before any program does. Sources:
//! `mount_setattr(2)`, `open_tree(2)`, `move_mount(2)`, `fsopen(2)`,
//! `pivot_root(2)`, user_namespaces(7).

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use linux::mount::{Attributes, restrict};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, fsconfig_create,
    fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen, move_mount, open_tree,
};
use wire::jail::{Plan, RootPlan};

/// The home directory.
pub(super) const HOME: &str = "/home/user";

/// Where programs may write, beside a workspace.
pub(super) const WRITABLE: [&str; 3] = ["/tmp", HOME, "/dev/shm"];

/// Entries of the host's root that make a system. Where the host has links
/// (`/bin` → `usr/bin`), the sandbox has the same links.
const SYSTEM: [&str; 8] = ["usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "nix"];

/// What programs need of the host's `/etc`: how to find libraries and
/// certificates, defaults of languages, names of services. No key, no account.
const ETC: [&str; 16] = [
    "alternatives",
    "crypto-policies",
    "fonts",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "mime.types",
    "os-release",
    "pki/ca-trust",
    "pki/tls/certs",
    "protocols",
    "python3",
    "services",
    "ssl/certs",
    "ssl/openssl.cnf",
];

/// Entries of `/etc` with a version in their name: `python3.11`, `nodejs18`.
const ETC_PREFIXES: [&str; 2] = ["python3.", "node"];

/// Files of the sandbox's own.
const ETC_OWN: [(&str, &str); 7] = [
    (
        "passwd",
        "user:x:1000:1000::/home/user:/bin/bash\nnobody:x:65534:65534::/:/usr/sbin/nologin\n",
    ),
    ("group", "user:x:1000:\nnogroup:x:65534:\n"),
    ("hosts", "127.0.0.1 localhost casemate\n::1 localhost casemate\n"),
    ("hostname", "casemate\n"),
    ("nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n"),
    // No resolver: look-ups end at once instead of waiting for an answer.
    ("resolv.conf", "options timeout:1 attempts:1\n"),
    ("shells", "/bin/sh\n/bin/bash\n"),
];

/// Entries of a directory root that the sandbox has its own of, or none of.
const NOT_FROM_DIRECTORY: [&str; 9] =
    ["proc", "sys", "dev", "tmp", "run", "home", "boot", "lost+found", "root"];

const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// Parts of `/proc` that show the host's memory and keys, or act on the host.
/// Their owner is the host's root, so this is the second bar.
const PROC_HIDDEN: [&str; 4] = ["kcore", "keys", "key-users", "sysrq-trigger"];

/// A step that failed, in the words of the error message.
pub(super) type Step<T> = Result<T, (String, io::Error)>;

fn step<T, E: Into<io::Error>>(what: impl Into<String>, result: Result<T, E>) -> Step<T> {
    result.map_err(|error| (what.into(), error.into()))
}

/// The host's parts of a root, opened while host paths can still be walked.
pub(super) struct Sources {
    entries: Vec<Source>,
    workspace: Option<OwnedFd>,
}

enum Source {
    Tree { at: PathBuf, tree: OwnedFd, directory: bool },
    Link { at: PathBuf, target: PathBuf },
}

/// Opens what a plan names of the host.
pub(super) fn open_sources(plan: &RootPlan) -> Step<Sources> {
    let mut entries = Vec::new();
    match &plan.directory {
        None => {
            for name in SYSTEM {
                open_source(&mut entries, Path::new("/"), Path::new(name), true)?;
            }
            let etc = Path::new("/etc");
            for name in ETC {
                open_source(&mut entries, etc, Path::new(name), true)?;
            }
            for name in names(etc) {
                if ETC_PREFIXES.iter().any(|prefix| name.starts_with(prefix)) {
                    open_source(&mut entries, etc, Path::new(&name), true)?;
                }
            }
        }
        Some(directory) => {
            let directory = Path::new(directory);
            let read =
                step(format!("open root {}", directory.display()), std::fs::read_dir(directory))?;
            let mut found = 0;
            for name in read.flatten().filter_map(|entry| entry.file_name().into_string().ok()) {
                if !NOT_FROM_DIRECTORY.contains(&name.as_str()) {
                    open_source(&mut entries, directory, Path::new(&name), false)?;
                    found += 1;
                }
            }
            if found == 0 {
                return Err((
                    format!("root {} is empty", directory.display()),
                    io::ErrorKind::NotFound.into(),
                ));
            }
        }
    }
    let workspace = match &plan.workspace {
        Some(workspace) => {
            let what = format!("open workspace {}", workspace.host);
            Some(step(what, clone_tree(CWD, workspace.host.as_str()))?)
        }
        None => None,
    };
    Ok(Sources { entries, workspace })
}

fn names(directory: &Path) -> Vec<String> {
    std::fs::read_dir(directory)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect()
}

/// Opens one entry of `base`, if it is there. `host` entries keep their place
/// under the host's base; others land in `/`.
fn open_source(entries: &mut Vec<Source>, base: &Path, name: &Path, host: bool) -> Step<()> {
    let path = base.join(name);
    let at = if host {
        path.strip_prefix("/").unwrap_or(name).to_path_buf()
    } else {
        name.to_path_buf()
    };
    let Ok(found) = std::fs::symlink_metadata(&path) else { return Ok(()) };
    if found.is_symlink() {
        let target = step(format!("read {}", path.display()), std::fs::read_link(&path))?;
        entries.push(Source::Link { at, target });
    } else if found.is_dir() || found.is_file() {
        match clone_tree(CWD, &path) {
            Ok(tree) => entries.push(Source::Tree { at, tree, directory: found.is_dir() }),
            // What this user may not see, the sandbox does without.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
            Err(error) => return Err((format!("copy the mount of {}", path.display()), error)),
        }
    }
    Ok(())
}

/// A detached copy of what is mounted at a path, with all below it.
fn clone_tree<P: rustix::path::Arg>(at: impl std::os::fd::AsFd, path: P) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE
        | OpenTreeFlags::AT_SYMLINK_NOFOLLOW;
    Ok(open_tree(at, path, flags)?)
}

fn attach(tree: BorrowedFd<'_>, root: BorrowedFd<'_>, at: &Path) -> io::Result<()> {
    Ok(move_mount(tree, "", root, at, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?)
}

/// A new file system instance, not yet attached.
fn filesystem(
    kind: &str,
    options: &[(&str, &str)],
    attributes: MountAttrFlags,
) -> io::Result<OwnedFd> {
    let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (key, value) in options {
        if value.is_empty() {
            fsconfig_set_flag(context.as_fd(), *key)?;
        } else {
            fsconfig_set_string(context.as_fd(), *key, *value)?;
        }
    }
    fsconfig_create(context.as_fd())?;
    Ok(fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
}

/// Builds the root from its sources and makes it this process's own. The
/// process must be the sandbox's user by now, so that it owns what it makes.
pub(super) fn enter(sources: Sources, plan: &Plan) -> Step<()> {
    // What is mounted outside from now on is not to appear inside.
    let here = step("open /", open_tree(CWD, "/", OpenTreeFlags::OPEN_TREE_CLOEXEC))?;
    step("make mounts private", linux::mount::make_private(here.as_fd()))?;
    drop(here);

    let size = plan.disk.to_string();
    // A file needs no page to exist, but kernel memory.
    let inodes = (plan.disk / 4096).clamp(8192, 1 << 20).to_string();
    let options = [("size", size.as_str()), ("nr_inodes", inodes.as_str()), ("mode", "0755")];
    let nosuid = MountAttrFlags::MOUNT_ATTR_NOSUID;
    let nodev = MountAttrFlags::MOUNT_ATTR_NODEV;
    let noexec = MountAttrFlags::MOUNT_ATTR_NOEXEC;
    let tree = step("make a tmpfs", filesystem("tmpfs", &options, nosuid | nodev))?;
    // Any directory will do to hang the tree on: the old root goes away below.
    step("attach the root", attach(tree.as_fd(), CWD, Path::new("/usr")))?;
    let root = tree.as_fd();

    for directory in
        ["proc", "dev", "dev/pts", "dev/shm", "tmp", "home", "home/user", "run", "root", "sys"]
    {
        make_dirs(root, Path::new(directory))?;
    }
    for writable in ["tmp", "dev/shm"] {
        step(
            "chmod",
            rustix::fs::chmodat(root, writable, Mode::from_raw_mode(0o1777), AtFlags::empty()),
        )?;
    }
    add_sources(root, sources.entries)?;
    if plan.root.directory.is_none() {
        make_dirs(root, Path::new("var"))?;
        make_dirs(root, Path::new("etc"))?;
        step("link /var/tmp", rustix::fs::symlinkat("../tmp", root, "var/tmp"))?;
        step("link /var/run", rustix::fs::symlinkat("../run", root, "var/run"))?;
        for (name, text) in ETC_OWN {
            write_file(root, &Path::new("etc").join(name), text)?;
        }
        step("link /etc/mtab", rustix::fs::symlinkat("../proc/self/mounts", root, "etc/mtab"))?;
    } else {
        replace_etc(root)?;
    }

    let proc = step("mount /proc", filesystem("proc", &[], nosuid | nodev | noexec))?;
    step("attach /proc", attach(proc.as_fd(), root, Path::new("proc")))?;
    if !plan.user_namespaces {
        // The second bar before the filter's: none may be made in this one.
        step(
            "forbid user namespaces",
            write_existing(proc.as_fd(), "sys/user/max_user_namespaces", "0"),
        )?;
    }
    add_devices(root)?;
    let pts = [("newinstance", ""), ("ptmxmode", "0666"), ("mode", "0620")];
    let pts = step("mount /dev/pts", filesystem("devpts", &pts, nosuid | noexec))?;
    step("attach /dev/pts", attach(pts.as_fd(), root, Path::new("dev/pts")))?;
    for (name, target) in [
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
        ("stdout", "/proc/self/fd/1"),
        ("stderr", "/proc/self/fd/2"),
        ("ptmx", "pts/ptmx"),
    ] {
        step("link in /dev", rustix::fs::symlinkat(target, root, Path::new("dev").join(name)))?;
    }
    hide_in_proc(root)?;

    for writable in WRITABLE {
        let at = writable.trim_start_matches('/');
        let tree = step(format!("mount {writable}"), clone_tree(root, at))?;
        step(format!("restrict {writable}"), restrict(tree.as_fd(), Attributes::WRITABLE, false))?;
        step(format!("attach {writable}"), attach(tree.as_fd(), root, Path::new(at)))?;
    }
    if let (Some(tree), Some(workspace)) = (sources.workspace, &plan.root.workspace) {
        add_workspace(root, &tree, workspace)?;
    }
    step("make the root read-only", restrict(root, Attributes::READ_ONLY, false))?;

    step("enter the root", rustix::process::fchdir(root))?;
    step("pivot", rustix::process::pivot_root(".", "."))?;
    step(
        "leave the host's root",
        rustix::mount::unmount(".", rustix::mount::UnmountFlags::DETACH),
    )?;
    step("enter /", rustix::process::chdir("/"))
}

fn make_dirs(root: BorrowedFd<'_>, path: &Path) -> Step<()> {
    let mut at = PathBuf::new();
    for part in path {
        at.push(part);
        match rustix::fs::mkdirat(root, &at, Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(error) => return Err((format!("make /{}", at.display()), error.into())),
        }
    }
    Ok(())
}

fn write_file(root: BorrowedFd<'_>, path: &Path, text: &str) -> Step<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let what = || format!("write /{}", path.display());
    let file = step(what(), rustix::fs::openat(root, path, flags, Mode::from_raw_mode(0o644)))?;
    step(what(), io::Write::write_all(&mut std::fs::File::from(file), text.as_bytes()))
}

fn write_existing(dir: BorrowedFd<'_>, path: &str, text: &str) -> io::Result<()> {
    let file = rustix::fs::openat(dir, path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    io::Write::write_all(&mut std::fs::File::from(file), text.as_bytes())
}

fn add_sources(root: BorrowedFd<'_>, sources: Vec<Source>) -> Step<()> {
    for source in sources {
        match source {
            Source::Link { at, target } => {
                make_dirs(root, at.parent().unwrap_or(Path::new("")))?;
                step(format!("link /{}", at.display()), rustix::fs::symlinkat(&target, root, &at))?;
            }
            Source::Tree { at, tree, directory } => {
                if directory {
                    make_dirs(root, &at)?;
                } else {
                    make_dirs(root, at.parent().unwrap_or(Path::new("")))?;
                    write_file(root, &at, "")?;
                }
                step(
                    format!("restrict /{}", at.display()),
                    restrict(tree.as_fd(), Attributes::READ_ONLY, true),
                )?;
                step(format!("attach /{}", at.display()), attach(tree.as_fd(), root, &at))?;
            }
        }
    }
    Ok(())
}

/// Puts the sandbox's own files over those of a directory root's `/etc`.
fn replace_etc(root: BorrowedFd<'_>) -> Step<()> {
    make_dirs(root, Path::new("run/casemate"))?;
    for (name, text) in ETC_OWN {
        let at = Path::new("etc").join(name);
        let own = Path::new("run/casemate").join(name);
        let is_file = rustix::fs::statat(root, &at, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::RegularFile);
        if is_file {
            write_file(root, &own, text)?;
            let tree = step(format!("mount {}", own.display()), clone_tree(root, &own))?;
            step("restrict", restrict(tree.as_fd(), Attributes::READ_ONLY, false))?;
            step(format!("attach /{}", at.display()), attach(tree.as_fd(), root, &at))?;
        }
    }
    Ok(())
}

fn add_devices(root: BorrowedFd<'_>) -> Step<()> {
    for name in DEVICES {
        let at = Path::new("dev").join(name);
        write_file(root, &at, "")?;
        let tree = step(format!("open /dev/{name}"), clone_tree(CWD, Path::new("/").join(&at)))?;
        step(format!("restrict /dev/{name}"), restrict(tree.as_fd(), Attributes::DEVICE, false))?;
        step(format!("attach /dev/{name}"), attach(tree.as_fd(), root, &at))?;
    }
    Ok(())
}

fn hide_in_proc(root: BorrowedFd<'_>) -> Step<()> {
    for name in PROC_HIDDEN {
        let at = Path::new("proc").join(name);
        if rustix::fs::accessat(root, &at, rustix::fs::Access::EXISTS, AtFlags::empty()).is_err() {
            continue;
        }
        let nothing = step("open /dev/null", clone_tree(CWD, "/dev/null"))?;
        step("restrict /dev/null", restrict(nothing.as_fd(), Attributes::DEVICE, false))?;
        step(format!("hide /{}", at.display()), attach(nothing.as_fd(), root, &at))?;
    }
    let sys = step("open /proc/sys", clone_tree(root, "proc/sys"))?;
    step("restrict /proc/sys", restrict(sys.as_fd(), Attributes::READ_ONLY, true))?;
    step("attach /proc/sys", attach(sys.as_fd(), root, Path::new("proc/sys")))
}

fn add_workspace(
    root: BorrowedFd<'_>,
    tree: &OwnedFd,
    plan: &wire::jail::WorkspacePlan,
) -> Step<()> {
    let at = Path::new(plan.guest.trim_start_matches('/'));
    make_dirs(root, at)?;
    step("restrict the workspace", restrict(tree.as_fd(), Attributes::READ_ONLY, true))?;
    if !plan.copy_on_write {
        return step("attach the workspace", attach(tree.as_fd(), root, at));
    }
    // The overlay keeps copies of the two mounts it is made of, so that both
    // can go away again: programs see the merged view only.
    let below = Path::new("run/below");
    let above = Path::new("run/above");
    for path in [below, above, &above.join("upper"), &above.join("work")] {
        make_dirs(root, path)?;
    }
    step("attach the workspace", attach(tree.as_fd(), root, below))?;
    let full = |path: &Path| -> io::Result<CString> {
        // The root hangs on /usr until it is entered.
        Ok(CString::new(Path::new("/usr").join(path).into_os_string().into_encoded_bytes())?)
    };
    let options = (|| {
        let context = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_set_flag(context.as_fd(), "userxattr")?;
        fsconfig_set_string(context.as_fd(), "lowerdir", full(below)?)?;
        fsconfig_set_string(context.as_fd(), "upperdir", full(&above.join("upper"))?)?;
        fsconfig_set_string(context.as_fd(), "workdir", full(&above.join("work"))?)?;
        fsconfig_create(context.as_fd())?;
        let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
        io::Result::Ok(fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
    })();
    let overlay = step("make an overlay of the workspace", options)?;
    step(
        "detach the workspace",
        rustix::mount::unmount(
            full(below).unwrap_or_default().as_c_str(),
            rustix::mount::UnmountFlags::DETACH,
        ),
    )?;
    // The parts of the merged view are nobody's business.
    let nothing = step("open an empty directory", clone_tree(root, "root"))?;
    step("hide the overlay's parts", attach(nothing.as_fd(), root, above))?;
    step("attach the overlay", attach(overlay.as_fd(), root, at))
}
