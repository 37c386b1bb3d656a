//! Names of cgroup directories, by which a later launcher finds what one that
//! was killed has left.

use std::fs;
use std::io;
use std::path::Path;

/// What the name of each directory of Casemate's begins with.
pub(super) const PREFIX: &str = "casemate-";

const SIGKILL: i32 = 9;

/// The name of a launcher's directory: its process id and start time, so that a
/// later launcher knows whether that process still lives.
pub(super) fn own_name() -> io::Result<String> {
    let pid = std::process::id();
    let start = start_time(pid).ok_or_else(|| io::Error::other("/proc/self/stat is unreadable"))?;
    Ok(format!("{PREFIX}{pid}-{start}-{}", pid_namespace()?))
}

/// The number of this process's pid namespace. In another, its process id means
/// another process: in containers that share a cgroup directory, for one.
fn pid_namespace() -> io::Result<u64> {
    let link = fs::read_link("/proc/self/ns/pid")?;
    let number =
        link.to_str().and_then(|text| text.strip_prefix("pid:[")?.strip_suffix(']')?.parse().ok());
    number.ok_or_else(|| io::Error::other(format!("{} is no pid namespace", link.display())))
}

/// When a process started, in clock ticks since boot: field 22 of its `stat`.
fn start_time(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.split(' ').nth(19)?.parse().ok()
}

/// Removes directories of launchers that are gone.
pub(super) fn sweep(parent: &Path, swept: &mut Vec<String>) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    let Ok(here) = pid_namespace() else { return };
    for entry in entries.flatten() {
        let name = entry.file_name().into_string().unwrap_or_default();
        let Some((pid, start, namespace)) = launcher_of(&name) else { continue };
        if namespace == here && start_time(pid) != Some(start) {
            remove_tree(&entry.path(), swept);
        }
    }
}

/// Process id, start time and pid namespace in a name that [`own_name`] began.
fn launcher_of(name: &str) -> Option<(u32, u64, u64)> {
    let launcher = name.split('.').next()?.strip_prefix(PREFIX)?;
    let mut parts = launcher.split('-');
    let all =
        (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    parts.next().is_none().then_some(all)
}

fn remove_tree(dir: &Path, swept: &mut Vec<String>) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_tree(&entry.path(), swept);
        }
    }
    for pid in fs::read_to_string(dir.join("cgroup.procs")).unwrap_or_default().lines() {
        if let Ok(pid) = pid.parse::<i32>()
            && pid > 1
            && linux::process::kill(pid, SIGKILL).is_ok()
        {
            swept.push(format!("process {pid}"));
        }
    }
    // Killed processes leave a moment later.
    for _ in 0..50 {
        match fs::remove_dir(dir) {
            Ok(()) => {
                swept.push(format!("cgroup {}", dir.display()));
                return;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            Err(_) => std::thread::sleep(std::time::Duration::from_millis(10)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launcher_that_lives_is_not_swept() {
        let dir = std::env::temp_dir().join(format!("casemate-sweep-test-{}", std::process::id()));
        let living = dir.join(own_name().unwrap());
        let (pid, here) = (std::process::id(), pid_namespace().unwrap());
        let dead = dir.join(format!("{PREFIX}{pid}-1-{here}.7"));
        let elsewhere = dir.join(format!("{PREFIX}{pid}-1-{}.7", here + 1));
        let other = dir.join("something-else");
        for path in [&living, &dead, &elsewhere, &other] {
            fs::create_dir_all(path).unwrap();
        }
        let mut swept = Vec::new();
        sweep(&dir, &mut swept);
        assert!(living.exists() && elsewhere.exists() && other.exists());
        assert!(!dead.exists());
        assert_eq!(swept.len(), 1);
        fs::remove_dir_all(dir).unwrap();
    }
}
