//! What this host offers the jail, for `casemate doctor`.

use std::fs;
use std::path::Path;

use serde::Serialize;

use super::make::user_namespaces_fix;
use super::rules::Exceptions;

/// One thing that the jail uses, and whether it is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fact {
    /// What.
    pub name: &'static str,
    /// How far it is there.
    pub state: FactState,
    /// In words.
    pub detail: String,
    /// The command that would provide it, where one would.
    pub fix: Option<String>,
}

/// How far something is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FactState {
    /// Wholly.
    Ok,
    /// Not wholly; the jail works all the same, with less.
    Partial,
    /// Not, and the jail needs it.
    Missing,
}

/// Looks at the host. Changes nothing; whether a sandbox really can be made is
/// for [`sandbox::Wall::probe`] to try.
#[must_use]
pub fn host_report() -> Vec<Fact> {
    let mut facts = vec![kernel(), user_namespaces()];
    facts.push(namespaces());
    facts.extend([landlock(), seccomp(), cgroups(), overlay()]);
    facts
}

fn fact(
    name: &'static str,
    state: FactState,
    detail: impl Into<String>,
    fix: Option<String>,
) -> Fact {
    Fact { name, state, detail: detail.into(), fix }
}

fn kernel() -> Fact {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let mut numbers = release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    // mount_setattr(2) came with 5.12; limits count per user namespace from 5.14.
    if version >= (5, 14) {
        fact("kernel", FactState::Ok, format!("Linux {release}"), None)
    } else {
        let detail = format!("Linux {release}; the jail needs 5.14 or newer");
        fact("kernel", FactState::Missing, detail, Some("install a newer kernel".into()))
    }
}

fn user_namespaces() -> Fact {
    let name = "user namespaces";
    if let Some(fix) = user_namespaces_fix() {
        let root = rustix::process::geteuid().is_root();
        let state =
            if root && !fix.contains("max_user") { FactState::Partial } else { FactState::Missing };
        return fact(name, state, "switched off for ordinary users", Some(fix));
    }
    match fs::read_to_string("/proc/sys/user/max_user_namespaces") {
        Ok(most) => fact(name, FactState::Ok, format!("at most {}", most.trim()), None),
        Err(_) => fact(name, FactState::Missing, "this kernel has none (CONFIG_USER_NS)", None),
    }
}

fn namespaces() -> Fact {
    let missing: Vec<&str> = super::lockdown::NAMESPACES
        .into_iter()
        .filter(|name| !Path::new("/proc/self/ns").join(name).exists())
        .collect();
    if missing.is_empty() {
        fact("namespaces", FactState::Ok, super::lockdown::NAMESPACES.join(", "), None)
    } else {
        fact(
            "namespaces",
            FactState::Missing,
            format!("this kernel lacks {}", missing.join(", ")),
            None,
        )
    }
}

fn landlock() -> Fact {
    let abi = linux::landlock::abi();
    let lacking = linux::landlock::lacking(abi);
    match (abi, lacking.is_empty()) {
        (0, _) => fact(
            "Landlock",
            FactState::Partial,
            "none; the private root and seccomp hold without it",
            Some("add `landlock` to lsm= on the kernel's command line".into()),
        ),
        (abi, true) => fact("Landlock", FactState::Ok, format!("ABI {abi}"), None),
        (abi, false) => fact(
            "Landlock",
            FactState::Partial,
            format!("ABI {abi}, without {}", lacking.join(", ")),
            None,
        ),
    }
}

fn seccomp() -> Fact {
    let actions = fs::read_to_string("/proc/sys/kernel/seccomp/actions_avail").unwrap_or_default();
    if actions.contains("errno") {
        match super::rules::filter(Exceptions { user_namespaces: false, counted: true }) {
            Ok(filter) => fact(
                "seccomp",
                FactState::Ok,
                format!("{} system calls allowed", filter.allowed),
                None,
            ),
            Err(error) => fact("seccomp", FactState::Missing, error.to_string(), None),
        }
    } else {
        fact(
            "seccomp",
            FactState::Missing,
            "this kernel has no filters (CONFIG_SECCOMP_FILTER)",
            None,
        )
    }
}

fn cgroups() -> Fact {
    let root = rustix::process::geteuid().is_root();
    let v2 = Path::new("/sys/fs/cgroup/cgroup.controllers").exists();
    let v1 =
        Path::new("/sys/fs/cgroup/memory").exists() && Path::new("/sys/fs/cgroup/pids").exists();
    let scope = std::env::var_os("XDG_RUNTIME_DIR")
        .is_some_and(|dir| Path::new(&dir).join("systemd/private").exists());
    match (v2, v1, root) {
        (true, _, true) => fact("cgroup", FactState::Ok, "v2", None),
        (true, _, false) if scope => {
            fact("cgroup", FactState::Ok, "v2, by a systemd user scope", None)
        }
        (true, _, false) => fact(
            "cgroup",
            FactState::Partial,
            "v2, not delegated to this user: rlimits and a watcher instead",
            Some("log in through systemd, or run as root".into()),
        ),
        (false, true, true) => fact("cgroup", FactState::Ok, "v1", None),
        (false, true, false) => fact(
            "cgroup",
            FactState::Partial,
            "v1, which only root may use: rlimits and a watcher instead",
            Some("run as root, or boot with systemd.unified_cgroup_hierarchy=1".into()),
        ),
        (false, false, _) => fact(
            "cgroup",
            FactState::Partial,
            "none at /sys/fs/cgroup: rlimits and a watcher instead",
            Some("mount -t cgroup2 none /sys/fs/cgroup".into()),
        ),
    }
}

fn overlay() -> Fact {
    let known = fs::read_to_string("/proc/filesystems").unwrap_or_default();
    if known.lines().any(|line| line.trim_start_matches("nodev").trim() == "overlay") {
        fact("overlayfs", FactState::Ok, "copy-on-write workspaces", None)
    } else {
        fact(
            "overlayfs",
            FactState::Partial,
            "not loaded: no copy-on-write workspaces",
            Some("modprobe overlay".into()),
        )
    }
}
