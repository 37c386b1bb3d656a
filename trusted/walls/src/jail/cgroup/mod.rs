//! Control groups: limits that the kernel enforces on a whole sandbox.
//!
//! Sources: cgroups(7); Linux `Documentation/admin-guide/cgroup-v2.rst` and
//! `cgroup-v1/`.
//!
//! Directories are named after the launcher's process: what an earlier launcher
//! left when it was killed is found by that name and removed. On v2 it has one
//! directory with a sandbox's each in it, since only a directory that hands on
//! controllers has limits below; on v1 a sandbox has one in each hierarchy.

mod hierarchy;
mod names;

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::{Path, PathBuf};

use wire::jail::{Accounting, Counters, Plan, Used};

use hierarchy::{open_v1, open_v2, step_back};
use names::PREFIX;

pub(super) use hierarchy::v2_is_delegated;

/// Microseconds over which a CPU share is measured.
const PERIOD_US: u64 = 100_000;

/// The hierarchies that this host offers and this process may use.
pub(super) struct Cgroups {
    kind: Kind,
    /// Removed before anything was made.
    pub(super) swept: Vec<String>,
}

enum Kind {
    /// The launcher's directory, and whether it has the cpu controller.
    V2 { directory: PathBuf, cpu: bool },
    /// The start of a sandbox's directory in each controller's hierarchy; its
    /// number follows.
    V1(Vec<(Controller, PathBuf)>),
    /// Why there is none.
    None(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Controller {
    Memory,
    Cpu,
    Pids,
    Cpuacct,
}

impl Controller {
    const ALL: [Self; 4] = [Self::Memory, Self::Cpu, Self::Pids, Self::Cpuacct];

    fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Cpu => "cpu",
            Self::Pids => "pids",
            Self::Cpuacct => "cpuacct",
        }
    }
}

impl Cgroups {
    /// Finds what can be used, and removes what earlier launchers left there.
    /// `no_scope` says why this launcher is in no scope of systemd's, if one
    /// was tried.
    pub(super) fn open(no_scope: Option<&str>) -> Self {
        let mut swept = Vec::new();
        let kind = match open_v2(&mut swept) {
            Ok((directory, cpu)) => Kind::V2 { directory, cpu },
            Err(no_v2) => match open_v1(&mut swept) {
                Ok(directories) => Kind::V1(directories),
                Err(no_v1) => {
                    let scope = no_scope.map_or_else(String::new, |why| format!("; scope: {why}"));
                    Kind::None(format!("cgroup v2: {no_v2}{scope}; cgroup v1: {no_v1}"))
                }
            },
        };
        Self { kind, swept }
    }

    pub(super) fn accounting(&self) -> Accounting {
        match &self.kind {
            Kind::V2 { directory, cpu } => {
                Accounting::CgroupV2 { directory: directory.display().to_string(), cpu: *cpu }
            }
            Kind::V1(directories) => Accounting::CgroupV1(
                directories.iter().map(|(controller, _)| controller.name().to_owned()).collect(),
            ),
            Kind::None(reason) => Accounting::Rlimits(reason.clone()),
        }
    }

    /// Makes the directories of one sandbox and sets its limits, each read back.
    pub(super) fn make(&self, plan: &Plan) -> io::Result<SandboxCgroup> {
        let name = plan.number.to_string();
        let quota = (plan.cpu_milli * PERIOD_US / 1000).max(1000);
        let mut made = SandboxCgroup::default();
        match &self.kind {
            Kind::V2 { directory, cpu } => {
                let dir = directory.join(&name);
                made.add(dir.clone())?;
                set(&dir, "memory.max", &page_rounded(plan.memory).to_string())?;
                // Absent where the kernel has no swap.
                set_if_there(&dir, "memory.swap.max", "0")?;
                set(&dir, "memory.oom.group", "1")?;
                set(&dir, "pids.max", &(plan.processes + INIT).to_string())?;
                if *cpu {
                    set(&dir, "cpu.max", &format!("{quota} {PERIOD_US}"))?;
                }
                made.counters = Counters {
                    cpu: Some(text(&dir, "cpu.stat")),
                    oom: Some(text(&dir, "memory.events")),
                    peak: dir.join("memory.peak").exists().then(|| text(&dir, "memory.peak")),
                    pids: Some(text(&dir, "pids.events")),
                };
                made.start_in = Some(File::open(&dir)?);
            }
            Kind::V1(starts) => {
                for (controller, start) in starts {
                    let dir = numbered(start, &name);
                    // Controllers mounted together share one directory.
                    let first = !made.dirs.contains(&dir);
                    if first {
                        made.add(dir.clone())?;
                    }
                    match controller {
                        Controller::Memory => {
                            let max = page_rounded(plan.memory).to_string();
                            set(&dir, "memory.limit_in_bytes", &max)?;
                            // Memory and swap together; absent without swap accounting.
                            set_if_there(&dir, "memory.memsw.limit_in_bytes", &max)?;
                            made.counters.oom = Some(text(&dir, "memory.oom_control"));
                            made.counters.peak = Some(text(&dir, "memory.max_usage_in_bytes"));
                        }
                        Controller::Cpu => {
                            set(&dir, "cpu.cfs_period_us", &PERIOD_US.to_string())?;
                            set(&dir, "cpu.cfs_quota_us", &quota.to_string())?;
                        }
                        Controller::Pids => {
                            set(&dir, "pids.max", &(plan.processes + INIT).to_string())?;
                            made.counters.pids = Some(text(&dir, "pids.events"));
                        }
                        Controller::Cpuacct => {
                            made.counters.cpu = Some(text(&dir, "cpuacct.usage"));
                        }
                    }
                    if first {
                        // A thread that moves itself needs no lock over all
                        // processes, as moving another one does: that is slow.
                        made.join.push(File::options().write(true).open(dir.join("tasks"))?);
                    }
                }
            }
            Kind::None(_) => {}
        }
        Ok(made)
    }

    /// Removes the launcher's own directory, at its end.
    pub(super) fn close(&self) {
        if let Kind::V2 { directory, .. } = &self.kind {
            let _ = fs::remove_dir(directory);
            if let Some(parent) = directory.parent() {
                step_back(parent);
            }
        }
    }
}

/// Init counts as a process.
const INIT: u64 = 1;

/// One sandbox's directories. Dropping removes what can be removed.
#[derive(Default)]
pub(super) struct SandboxCgroup {
    dirs: Vec<PathBuf>,
    join: Vec<File>,
    start_in: Option<File>,
    pub(super) counters: Counters,
}

impl SandboxCgroup {
    fn add(&mut self, dir: PathBuf) -> io::Result<()> {
        fs::create_dir(&dir)
            .map_err(|error| io::Error::other(format!("{}: {error}", dir.display())))?;
        self.dirs.push(dir);
        Ok(())
    }

    /// The cgroup v2 directory to start init in.
    pub(super) fn start_in(&self) -> Option<BorrowedFd<'_>> {
        self.start_in.as_ref().map(File::as_fd)
    }

    /// Descriptors that [`SandboxCgroup::enter`] needs.
    pub(super) fn join_fds(&self) -> Vec<BorrowedFd<'_>> {
        self.join.iter().map(File::as_fd).collect()
    }

    /// Moves the calling process in, and checks that it is in; for init.
    pub(super) fn enter(&self) -> io::Result<()> {
        for tasks in &self.join {
            (&*tasks).write_all(b"0")?;
        }
        if self.dirs.is_empty() {
            return Ok(());
        }
        // Each hierarchy's own prefix is not known here; the names are unique.
        let mine = fs::read_to_string("/proc/self/cgroup")?;
        let inside = mine.lines().filter_map(|line| line.rsplit(':').next());
        let count = inside.filter(|path| self.dirs.iter().any(|dir| ends_alike(path, dir))).count();
        if count == self.dirs.len() {
            Ok(())
        } else {
            Err(io::Error::other(format!("the process is in {count} of {:?}", self.dirs)))
        }
    }

    /// Whether processes are left in it.
    fn populated(&self) -> bool {
        self.dirs.iter().any(|dir| {
            fs::read_to_string(dir.join("cgroup.procs")).is_ok_and(|procs| !procs.is_empty())
        })
    }

    /// Removes the directories. The kernel refuses while a process is in one.
    /// Says what is left.
    pub(super) fn remove(&mut self) -> Vec<String> {
        self.dirs.retain(|dir| match fs::remove_dir(dir) {
            Ok(()) => false,
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        });
        self.dirs
            .iter()
            .map(|dir| {
                let state = if self.populated() { "with processes in it" } else { "empty" };
                format!("cgroup {} ({state})", dir.display())
            })
            .collect()
    }

    /// What the sandbox used so far.
    pub(super) fn used(&self) -> Used {
        used(&self.counters)
    }
}

/// Whether a cgroup's path ends as a sandbox's directory does, from the part
/// that names the launcher on.
fn ends_alike(path: &str, dir: &Path) -> bool {
    let own =
        dir.iter().rev().take_while(|part| part.as_encoded_bytes().starts_with(PREFIX.as_bytes()));
    let parts = if own.count() == 0 { 2 } else { 1 };
    let end = |path: &Path| -> Vec<OsString> {
        path.iter().rev().take(parts).map(OsStr::to_owned).collect()
    };
    end(Path::new(path)) == end(dir)
}

impl Drop for SandboxCgroup {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Reads what a sandbox used; what cannot be read counts as nothing.
pub(super) fn used(counters: &Counters) -> Used {
    let read = |path: &Option<String>| {
        path.as_ref().and_then(|path| fs::read_to_string(path).ok()).unwrap_or_default()
    };
    let cpu = read(&counters.cpu);
    Used {
        // v1 has one number, in nanoseconds.
        cpu_us: keyed(&cpu, "usage_usec")
            .or_else(|| cpu.trim().parse::<u64>().ok().map(|ns| ns / 1000))
            .unwrap_or(0),
        peak: read(&counters.peak).trim().parse().unwrap_or(0),
        oom_kills: keyed(&read(&counters.oom), "oom_kill").unwrap_or(0),
        pids_refused: keyed(&read(&counters.pids), "max").unwrap_or(0),
    }
}

/// The value of `key` in lines of `key value`.
fn keyed(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok())
}

fn text(dir: &Path, file: &str) -> String {
    dir.join(file).display().to_string()
}

/// The kernel rounds down to whole pages.
fn page_rounded(bytes: u64) -> u64 {
    bytes / 4096 * 4096
}

/// Writes a setting and checks that it reads back.
fn set(dir: &Path, file: &str, value: &str) -> io::Result<()> {
    let path = dir.join(file);
    let fail = |error: String| io::Error::other(format!("{} = {value}: {error}", path.display()));
    fs::write(&path, value).map_err(|error| fail(error.to_string()))?;
    let back = fs::read_to_string(&path).map_err(|error| fail(error.to_string()))?;
    if back.trim() == value { Ok(()) } else { Err(fail(format!("reads back as {}", back.trim()))) }
}

fn set_if_there(dir: &Path, file: &str, value: &str) -> io::Result<()> {
    if dir.join(file).exists() { set(dir, file, value) } else { Ok(()) }
}

/// A sandbox's directory on v1.
fn numbered(start: &Path, number: &str) -> PathBuf {
    let mut path = start.as_os_str().to_owned();
    path.push(".");
    path.push(number);
    path.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn membership_is_recognised() {
        let cases = [
            ("/a/casemate-5-9.3", "/sys/fs/cgroup/cpu/a/casemate-5-9.3", true),
            ("/a/casemate-5-9.33", "/sys/fs/cgroup/cpu/a/casemate-5-9.3", false),
            ("/a", "/sys/fs/cgroup/cpu/a/casemate-5-9.3", false),
            ("/a/casemate-5-9/3", "/sys/fs/cgroup/a/casemate-5-9/3", true),
            ("/a/casemate-5-8/3", "/sys/fs/cgroup/a/casemate-5-9/3", false),
        ];
        for (path, dir, want) in cases {
            assert_eq!(ends_alike(path, Path::new(dir)), want, "{path} {dir}");
        }
    }

    #[test]
    fn keyed_values() {
        let text = "low 0\noom 3\noom_kill 2\noom_group_kill 1\n";
        assert_eq!(keyed(text, "oom_kill"), Some(2));
        assert_eq!(keyed(text, "oom"), Some(3));
        assert_eq!(keyed(text, "max"), None);
    }
}
