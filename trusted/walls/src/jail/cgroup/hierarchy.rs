//! Finding the hierarchies that this host offers and this process may use.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::Controller;
use super::names::{own_name, sweep};
use crate::jail::launcher::ARGUMENT;

/// Where cgroup v2 is looked for.
const MOUNT: &str = "/sys/fs/cgroup";

/// A cgroup with processes in it gives no controllers to its children, so the
/// launcher and its supervisor step aside into this one of them.
const LEAF: &str = "casemate-launcher";

/// How often the supervisor's other launchers may come in between.
const ATTEMPTS: u32 = 20;

/// Makes the launcher's directory; says whether it has the cpu controller.
pub(super) fn open_v2(swept: &mut Vec<String>) -> Result<(PathBuf, bool), String> {
    let own = own_v2()?;
    let name = own_name().map_err(|error| error.to_string())?;
    let supervisor = rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get());
    let make = |parent: &Path, cpu: bool| -> io::Result<PathBuf> {
        let directory = parent.join(&name);
        fs::create_dir(&directory)
            .or_else(|error| if directory.is_dir() { Ok(()) } else { Err(error) })?;
        enable(&directory, cpu).inspect_err(|_| {
            let _ = fs::remove_dir(&directory);
        })?;
        Ok(directory)
    };
    let in_own = controllers(&own).and_then(|cpu| {
        let mut failed = None;
        for _ in 0..ATTEMPTS {
            let stepped = step_aside(&own, cpu, supervisor)?;
            match stepped.and_then(|()| make(&own, cpu)) {
                Ok(directory) => return Ok((directory, cpu)),
                // Another launcher came, or stepped back as it ended.
                Err(error) => failed = Some(error),
            }
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        let why = failed.map_or_else(String::new, |error| error.to_string());
        Err(format!("{} is not delegated: {why}", own.display()))
    });
    let (directory, cpu) = match in_own {
        Ok(made) => made,
        // The root of the hierarchy may have both processes and controllers.
        Err(reason) if rustix::process::geteuid().is_root() && own != Path::new(MOUNT) => {
            let top = Path::new(MOUNT);
            let cpu = controllers(top).map_err(|_| reason.clone())?;
            let made = enable(top, cpu).and_then(|()| make(top, cpu));
            (made.map_err(|error| format!("{reason}; {MOUNT}: {error}"))?, cpu)
        }
        Err(reason) => return Err(reason),
    };
    if let Some(parent) = directory.parent() {
        sweep(parent, swept);
    }
    Ok((directory, cpu))
}

/// The cgroup v2 that this process is in, or was before it stepped aside.
fn own_v2() -> Result<PathBuf, String> {
    if !Path::new(MOUNT).join("cgroup.controllers").exists() {
        return Err(format!("not mounted at {MOUNT}"));
    }
    let mine = fs::read_to_string("/proc/self/cgroup").map_err(|error| error.to_string())?;
    let path = mine.lines().find_map(|line| line.strip_prefix("0::/")).ok_or("not in one")?;
    let path = Path::new(path);
    let path = if path.ends_with(LEAF) { path.parent().unwrap_or(path) } else { path };
    // Joining an empty path would add a slash.
    Ok(if path.as_os_str().is_empty() { MOUNT.into() } else { Path::new(MOUNT).join(path) })
}

/// Whether a cgroup may hand on the cpu controller. Without memory and pids it
/// is of no use; without cpu a watcher can keep the share. (systemd before 252
/// delegates to users without it.)
fn controllers(dir: &Path) -> Result<bool, String> {
    let there = fs::read_to_string(dir.join("cgroup.controllers")).unwrap_or_default();
    let has = |name: &str| there.split_whitespace().any(|controller| controller == name);
    let missing: Vec<&str> = ["memory", "pids"].into_iter().filter(|name| !has(name)).collect();
    if missing.is_empty() {
        Ok(has("cpu"))
    } else {
        Err(format!("{} lacks the controllers {}", dir.display(), missing.join(", ")))
    }
}

fn enable(dir: &Path, cpu: bool) -> io::Result<()> {
    let wanted = if cpu { "+cpu +memory +pids" } else { "+memory +pids" };
    fs::write(dir.join("cgroup.subtree_control"), wanted)
}

/// Has `own` hand on its controllers; its processes move into a leaf. The inner
/// error may pass when it is tried again.
fn step_aside(own: &Path, cpu: bool, supervisor: i32) -> Result<io::Result<()>, String> {
    // Only the root of the hierarchy itself has no type, and needs no such care.
    if !own.join("cgroup.type").exists() {
        return Ok(enable(own, cpu));
    }
    let refused = |error: io::Error| format!("{} is not delegated: {error}", own.display());
    rustix::fs::access(own, rustix::fs::Access::WRITE_OK).map_err(|error| refused(error.into()))?;
    let inside = processes(own).map_err(refused)?;
    if let Some(other) = inside.iter().find(|pid| !is_ours(**pid, supervisor)) {
        return Err(format!("{} has other processes in it, as {other}", own.display()));
    }
    let leaf = own.join(LEAF);
    fs::create_dir(&leaf)
        .or_else(|error| if leaf.is_dir() { Ok(()) } else { Err(error) })
        .map_err(refused)?;
    for pid in &inside {
        if let Err(error) = fs::write(leaf.join("cgroup.procs"), pid.to_string()) {
            // Fails where this was the first of them.
            let _ = fs::remove_dir(&leaf);
            return match error.raw_os_error() {
                // It has ended, or the leaf was removed meanwhile.
                Some(ESRCH | ENOENT | ENODEV) => Ok(Err(error)),
                _ => Err(refused(error)),
            };
        }
    }
    Ok(enable(own, cpu))
}

const ENOENT: i32 = 2;
const ESRCH: i32 = 3;
const ENODEV: i32 = 19;

/// Undoes [`step_aside`], unless another launcher needs it.
pub(super) fn step_back(own: &Path) {
    let leaf = own.join(LEAF);
    let Ok(inside) = processes(&leaf) else { return };
    let controls = own.join("cgroup.subtree_control");
    let handed_on = fs::read_to_string(&controls).unwrap_or_default();
    let off: Vec<String> = handed_on.split_whitespace().map(|name| format!("-{name}")).collect();
    // The kernel refuses while a directory below hands them on.
    if fs::write(&controls, off.join(" ")).is_ok() {
        for pid in inside {
            let _ = fs::write(own.join("cgroup.procs"), pid.to_string());
        }
        let _ = fs::remove_dir(&leaf);
    }
}

/// The processes in a cgroup; one that is not in this pid namespace is 0.
fn processes(dir: &Path) -> io::Result<Vec<i32>> {
    let text = fs::read_to_string(dir.join("cgroup.procs"))?;
    Ok(text.lines().filter_map(|line| line.parse().ok()).collect())
}

/// Whether a process is the supervisor, or a launcher that it started. One that
/// has ended is in nobody's way.
fn is_ours(pid: i32, supervisor: i32) -> bool {
    if pid == supervisor {
        return true;
    }
    let command = |pid: i32| fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { return pid != 0 };
    let parent = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1));
    if parent.and_then(|parent| parent.parse().ok()) != Some(supervisor) {
        return false;
    }
    let launcher = command(pid);
    // It looks like the supervisor until it has become one, and has no command
    // line while it becomes one and while it ends.
    launcher.is_empty()
        || launcher.split(|byte| *byte == 0).nth(1) == Some(ARGUMENT.as_bytes())
        || launcher == command(supervisor)
}

/// Whether a launcher that this process starts gets a cgroup v2 of its own
/// where this process is. Changes nothing.
pub(in crate::jail) fn v2_is_delegated() -> bool {
    use rustix::fs::{Access, access};
    let Ok(own) = own_v2() else { return false };
    let supervisor = rustix::process::getpid().as_raw_nonzero().get();
    controllers(&own).is_ok()
        && ["", "cgroup.procs", "cgroup.subtree_control"]
            .iter()
            .all(|file| access(own.join(file), Access::WRITE_OK).is_ok())
        && processes(&own).is_ok_and(|pids| pids.iter().all(|pid| is_ours(*pid, supervisor)))
}

pub(super) fn open_v1(swept: &mut Vec<String>) -> Result<Vec<(Controller, PathBuf)>, String> {
    if !rustix::process::geteuid().is_root() {
        return Err("only root may use it".into());
    }
    let mounts = fs::read_to_string("/proc/self/mountinfo").map_err(|error| error.to_string())?;
    let mine = fs::read_to_string("/proc/self/cgroup").map_err(|error| error.to_string())?;
    let name = own_name().map_err(|error| error.to_string())?;
    let mut starts = Vec::new();
    for controller in Controller::ALL {
        let found = v1_directory(&mounts, &mine, controller.name());
        let Some(parent) = found else {
            if controller == Controller::Cpuacct {
                continue;
            }
            return Err(format!("the {} controller is not mounted", controller.name()));
        };
        // Controllers mounted together share one directory.
        if !starts.iter().any(|(_, start): &(Controller, PathBuf)| start.parent() == Some(&parent))
        {
            sweep(&parent, swept);
        }
        starts.push((controller, parent.join(&name)));
    }
    let parent = starts.first().and_then(|(_, start)| start.parent());
    if let Some(parent) = parent {
        // In containers it is often mounted read-only.
        rustix::fs::access(parent, rustix::fs::Access::WRITE_OK)
            .map_err(|error| format!("{}: {error}", parent.display()))?;
    }
    Ok(starts)
}

/// Where this process is in the v1 hierarchy with a controller.
fn v1_directory(mounts: &str, mine: &str, controller: &str) -> Option<PathBuf> {
    let (root, point) = mounts.lines().find_map(|line| {
        let (head, tail) = line.split_once(" - ")?;
        let mut tail = tail.split(' ');
        let (kind, _source, options) = (tail.next()?, tail.next()?, tail.next()?);
        if kind != "cgroup" || !options.split(',').any(|option| option == controller) {
            return None;
        }
        let mut head = head.split(' ').skip(3);
        Some((head.next()?, head.next()?))
    })?;
    let path = mine.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        controllers.split(',').any(|name| name == controller).then_some(path)
    })?;
    // In a container the mount may show a part of the hierarchy only.
    let below = Path::new(path).strip_prefix(root).unwrap_or(Path::new(""));
    Some(Path::new(point).join(below))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn v1_directories_are_found() {
        let mounts = "24 1 0:21 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n\
                      25 1 0:22 /docker/x /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                      26 1 0:23 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        let mine = "4:memory:/docker/x/y\n3:cpu,cpuacct:/a\n0::/\n";
        let cases = [
            ("cpu", Some("/sys/fs/cgroup/cpu/a")),
            ("cpuacct", Some("/sys/fs/cgroup/cpu/a")),
            ("memory", Some("/sys/fs/cgroup/memory/y")),
            ("pids", None),
        ];
        for (controller, want) in cases {
            assert_eq!(
                v1_directory(mounts, mine, controller).as_deref(),
                want.map(Path::new),
                "{controller}"
            );
        }
    }
}
