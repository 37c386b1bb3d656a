//! Control groups: limits that the kernel enforces on a whole sandbox.
//!
//! Sources: cgroups(7); Linux `Documentation/admin-guide/cgroup-v2.rst` and
//! `cgroup-v1/`.
//!
//! Directories are named after the launcher's process: what an earlier launcher
//! left when it was killed is found by that name and removed. On v2 it has one
//! directory with a sandbox's each in it, since only a directory that hands on
//! controllers has limits below; on v1 a sandbox has one in each hierarchy.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::{Path, PathBuf};

use wire::jail::{Accounting, Counters, Plan, Used};

use super::launcher::ARGUMENT;

/// Microseconds over which a CPU share is measured.
const PERIOD_US: u64 = 100_000;

const PREFIX: &str = "casemate-";

/// Where cgroup v2 is looked for.
const MOUNT: &str = "/sys/fs/cgroup";

/// A cgroup with processes in it gives no controllers to its children, so the
/// launcher and its supervisor step aside into this one of them.
const LEAF: &str = "casemate-launcher";

/// How often the supervisor's other launchers may come in between.
const ATTEMPTS: u32 = 20;

const SIGKILL: i32 = 9;

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

/// The name of a launcher's directory: its process id and start time, so that a
/// later launcher knows whether that process still lives.
fn own_name() -> io::Result<String> {
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
fn sweep(parent: &Path, swept: &mut Vec<String>) {
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

/// Makes the launcher's directory; says whether it has the cpu controller.
fn open_v2(swept: &mut Vec<String>) -> Result<(PathBuf, bool), String> {
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
fn step_back(own: &Path) {
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
pub(super) fn v2_is_delegated() -> bool {
    use rustix::fs::{Access, access};
    let Ok(own) = own_v2() else { return false };
    let supervisor = rustix::process::getpid().as_raw_nonzero().get();
    controllers(&own).is_ok()
        && ["", "cgroup.procs", "cgroup.subtree_control"]
            .iter()
            .all(|file| access(own.join(file), Access::WRITE_OK).is_ok())
        && processes(&own).is_ok_and(|pids| pids.iter().all(|pid| is_ours(*pid, supervisor)))
}

fn open_v1(swept: &mut Vec<String>) -> Result<Vec<(Controller, PathBuf)>, String> {
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
    let memory = starts.iter().find(|(controller, _)| *controller == Controller::Memory);
    if let Some((_, start)) = memory {
        // Where it is mounted read-only, as in containers, this fails.
        let trial = numbered(start, "0");
        fs::create_dir(&trial).map_err(|error| format!("{}: {error}", trial.display()))?;
        fs::remove_dir(&trial).map_err(|error| format!("{}: {error}", trial.display()))?;
    }
    Ok(starts)
}

/// A sandbox's directory on v1.
fn numbered(start: &Path, number: &str) -> PathBuf {
    let mut path = start.as_os_str().to_owned();
    path.push(".");
    path.push(number);
    path.into()
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
