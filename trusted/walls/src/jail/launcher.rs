//! The launcher: the process that makes sandboxes and removes them.
//!
//! It is the same program started anew, with an empty environment, one thread,
//! and one descriptor: its connection to the supervisor. Because it has one
//! thread it can copy itself, and because it holds no secret its copies hold
//! none. When the supervisor goes away, however that happens, the launcher ends
//! every sandbox, removes what they had, and exits.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::ops::Range;
use std::os::fd::{AsFd as _, AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use linux::process::{Child, Forked, SingleThreaded};
use linux::signals::ChildSignals;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use wire::jail::{Accounting, FromInit, FromLauncher, Plan, ToLauncher, Used};

use super::cgroup::{Cgroups, SandboxCgroup};
use super::link::Link;
use super::lockdown::{self, Outside, USER, Unmet};
use super::rules::{self, Compiled, Exceptions};
use super::{init, root};

/// The argument that makes the program a launcher. A second one says why it is
/// in no scope of systemd's, where one was tried.
pub(super) const ARGUMENT: &str = "__jail-launcher";

/// Host user ids for sandboxes, where root starts them: beyond what
/// distributions, systemd and container engines hand out.
const HOST_IDS: Range<u32> = 2_000_000_000..2_000_100_000;

/// How long the kernel may take to give a killed sandbox's cgroup back.
const REMOVE_PATIENCE: Duration = Duration::from_secs(5);

/// Becomes the launcher if this program was started as one; else returns.
pub fn launcher_main() {
    if std::env::args_os().nth(1).is_none_or(|argument| argument != ARGUMENT) {
        return;
    }
    let code = match run() {
        Ok(()) => 0,
        Err(error) => {
            let _ = writeln!(io::stderr(), "casemate: jail launcher: {error}");
            1
        }
    };
    linux::process::exit_now(code);
}

fn run() -> io::Result<()> {
    // A terminal's Ctrl-C is for the supervisor, which then hangs up here.
    let _ = rustix::process::setsid();
    // What the supervisor was started with, and who started it left open.
    linux::process::close_all_but(3, &[])?;
    let proof = SingleThreaded::check()?;
    let socket = io::stdin().as_fd().try_clone_to_owned()?;
    let link = Link::new(socket);
    let no_scope = std::env::args().nth(2);
    let cgroups = Cgroups::open(no_scope.as_deref());
    let mut launcher = Launcher {
        link,
        proof,
        filters: [const { OnceCell::new() }; 2],
        namespaces: lockdown::namespace_ids()?,
        host_ids: host_ids(),
        accounting: cgroups.accounting(),
        sandboxes: BTreeMap::new(),
        next_id: 0,
        cgroups,
    };
    let hello = FromLauncher::Hello {
        accounting: launcher.accounting.clone(),
        swept: std::mem::take(&mut launcher.cgroups.swept),
    };
    let result = launcher.link.send(&hello, &[]).and_then(|()| launcher.serve());
    launcher.end_all();
    result
}

struct Launcher {
    link: Link,
    proof: SingleThreaded,
    cgroups: Cgroups,
    accounting: Accounting,
    /// Without and with user namespaces; compiled when first needed.
    filters: [OnceCell<Compiled>; 2],
    namespaces: Vec<String>,
    /// Where sandboxes get users of their own from; `None` if only the user
    /// who started this can be had.
    host_ids: Option<Range<u32>>,
    sandboxes: BTreeMap<u64, Entry>,
    next_id: u32,
}

/// A sandbox as the launcher knows it.
struct Entry {
    init: Child,
    cgroup: SandboxCgroup,
    pid_namespace: Option<std::path::PathBuf>,
    /// What init and all it had reaped used, once it is reaped.
    ended: Option<Used>,
    /// When its removal was asked for.
    removing: Option<Instant>,
}

impl Launcher {
    /// Serves until the supervisor hangs up.
    fn serve(&mut self) -> io::Result<()> {
        loop {
            let waiting =
                self.sandboxes.values().any(|s| s.removing.is_some() && s.ended.is_some());
            let timeout = waiting.then_some(Timespec { tv_sec: 0, tv_nsec: 2_000_000 });
            let asked = {
                let mut fds = vec![PollFd::new(&self.link, PollFlags::IN)];
                let alive = self.sandboxes.values().filter(|sandbox| sandbox.ended.is_none());
                fds.extend(alive.map(|sandbox| PollFd::new(&sandbox.init.pidfd, PollFlags::IN)));
                match poll(&mut fds, timeout.as_ref()) {
                    Ok(_) | Err(rustix::io::Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                }
                !fds[0].revents().is_empty()
            };
            self.reap();
            self.finish_removals()?;
            if asked {
                let Some((message, fds)) = self.link.receive()? else { return Ok(()) };
                match message {
                    ToLauncher::Create(plan) => self.create(&plan, fds)?,
                    ToLauncher::Destroy { number } => self.destroy(number)?,
                }
            }
        }
    }

    fn create(&mut self, plan: &Plan, mut fds: Vec<OwnedFd>) -> io::Result<()> {
        let number = plan.number;
        let made = match fds.pop() {
            Some(socket) if fds.is_empty() => self.try_create(plan, socket),
            _ => Err(("receive the request".into(), io::ErrorKind::InvalidData.into())),
        };
        match made {
            Ok(entry) => {
                let counters = entry.cgroup.counters.clone();
                let entry = self.sandboxes.entry(number).insert_entry(entry);
                let created = FromLauncher::Created { number, counters };
                self.link.send(&created, &[entry.get().init.pidfd.as_fd()])
            }
            Err((step, error)) => {
                let failed = FromLauncher::Failed { number, step, reason: error.to_string() };
                self.link.send(&failed, &[])
            }
        }
    }

    fn try_create(&mut self, plan: &Plan, socket: OwnedFd) -> root::Step<Entry> {
        let fail = |step: &str| {
            let step = step.to_owned();
            move |error: io::Error| (step, error)
        };
        // Before the copy, so that the next sandbox finds it compiled.
        self.filter(plan).map_err(fail("compile the system-call filter"))?;
        let cgroup = self.cgroups.make(plan).map_err(fail("make a cgroup"))?;
        let (gate, mut opener) = io::pipe().map_err(fail("make a pipe"))?;
        let forked = linux::process::clone_into(
            self.proof,
            linux::process::NEW_NAMESPACES,
            cgroup.start_in(),
        );
        match forked.map_err(fail("make namespaces"))? {
            Forked::Child => {
                drop(opener);
                self.become_init(plan, socket, gate, &cgroup);
            }
            Forked::Parent(init) => {
                drop((gate, socket));
                let pid_namespace = std::fs::read_link(format!("/proc/{}/ns/pid", init.pid)).ok();
                let mapped = self.map_ids(init.pid);
                let opened = mapped
                    .map_err(fail("map the user"))
                    .and_then(|()| opener.write_all(&[1]).map_err(fail("let init go on")));
                let entry = Entry { init, cgroup, pid_namespace, ended: None, removing: None };
                if let Err(error) = opened {
                    remove_now(entry);
                    return Err(error);
                }
                Ok(entry)
            }
        }
    }

    fn filter(&self, plan: &Plan) -> io::Result<&Compiled> {
        let cell = &self.filters[usize::from(plan.user_namespaces)];
        if let Some(compiled) = cell.get() {
            return Ok(compiled);
        }
        let exceptions = Exceptions {
            user_namespaces: plan.user_namespaces,
            counted: !matches!(self.accounting, Accounting::Rlimits(_)),
        };
        let compiled = rules::filter(exceptions).map_err(io::Error::other)?;
        Ok(cell.get_or_init(|| compiled))
    }

    /// Maps the sandbox's user to one of the host's. See user_namespaces(7).
    fn map_ids(&mut self, pid: i32) -> io::Result<()> {
        let (uid, gid) = if let Some(ids) = &self.host_ids {
            let id = ids.start + self.next_id % ids.len().try_into().unwrap_or(1);
            self.next_id = self.next_id.wrapping_add(1);
            (id, id)
        } else {
            std::fs::write(format!("/proc/{pid}/setgroups"), "deny")?;
            (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw())
        };
        std::fs::write(format!("/proc/{pid}/uid_map"), format!("{USER} {uid} 1"))?;
        std::fs::write(format!("/proc/{pid}/gid_map"), format!("{USER} {gid} 1"))
    }

    /// In the new process: builds the sandbox around itself and serves it.
    fn become_init(
        &self,
        plan: &Plan,
        socket: OwnedFd,
        gate: io::PipeReader,
        cgroup: &SandboxCgroup,
    ) -> ! {
        // Unwinding into the launcher's loop would run it twice.
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            self.init(plan, socket, gate, cgroup)
        }));
        linux::process::exit_now(if matches!(result, Ok(Ok(()))) { 0 } else { 70 });
    }

    fn init(
        &self,
        plan: &Plan,
        socket: OwnedFd,
        mut gate: io::PipeReader,
        cgroup: &SandboxCgroup,
    ) -> io::Result<()> {
        let mut keep = vec![socket.as_raw_fd(), gate.as_raw_fd()];
        keep.extend(cgroup.join_fds().iter().map(AsRawFd::as_raw_fd));
        linux::process::close_all_but(0, &keep)?;
        let link = Link::new(socket);
        // Opened only when the user is mapped; ended when the launcher died.
        gate.read_exact(&mut [0])?;
        drop(gate);
        if let Err(error) = cgroup.enter() {
            return report(&link, Unmet::new("cgroup", error));
        }
        linux::process::close_all_but(0, &[link.as_fd().as_raw_fd()])?;
        for _ in 0..3 {
            // Takes the place of 0, 1 and 2, so that nothing else ever does.
            std::mem::forget(std::fs::File::options().read(true).write(true).open("/dev/null")?);
        }
        match self.prepare(plan) {
            Ok(children) => {
                let filter = self.filter(plan)?;
                let outside = Outside {
                    namespaces: &self.namespaces,
                    groups_dropped: self.host_ids.is_some(),
                    accounting: &self.accounting,
                    filter,
                    // 0, 1, 2, the link, and the signal descriptor.
                    open_fds: 5,
                };
                match lockdown::apply(plan, &self.accounting, filter)
                    .and_then(|()| lockdown::verify(plan, &outside))
                {
                    Ok(controls) => {
                        let measures = init::measures()?;
                        link.send(
                            &FromInit::Ready { controls },
                            &[measures[0].as_fd(), measures[1].as_fd()],
                        )?;
                        drop(measures);
                        init::serve(&link, &children, self.proof)
                    }
                    Err(unmet) => report(&link, unmet),
                }
            }
            Err(unmet) => report(&link, unmet),
        }
    }

    /// Everything that needs the capabilities init still has.
    fn prepare(&self, plan: &Plan) -> Result<ChildSignals, Unmet> {
        let _ = rustix::thread::set_name(c"init");
        let _ = rustix::process::setsid();
        linux::process::unshare_cgroup_namespace()
            .map_err(|error| Unmet::new("namespaces", format!("cgroup: {error}")))?;
        linux::net::bring_loopback_up().map_err(|error| Unmet::new("network", error))?;
        rustix::system::sethostname(b"casemate")
            .map_err(|error| Unmet::new("namespaces", format!("uts: {error}")))?;
        let failed =
            |(step, error): (String, io::Error)| Unmet::new("root", format!("{step}: {error}"));
        let sources = root::open_sources(&plan.root).map_err(failed)?;
        lockdown::become_user(self.host_ids.is_some())
            .map_err(|error| Unmet::new("identity", error))?;
        root::enter(sources, plan).map_err(failed)?;
        ChildSignals::new().map_err(|error| Unmet::new("init", error))
    }

    fn destroy(&mut self, number: u64) -> io::Result<()> {
        let Some(sandbox) = self.sandboxes.get_mut(&number) else {
            let used = Used::default();
            return self
                .link
                .send(&FromLauncher::Destroyed { number, left: Vec::new(), used }, &[]);
        };
        sandbox.removing.get_or_insert_with(Instant::now);
        kill(&sandbox.init);
        Ok(())
    }

    fn reap(&mut self) {
        for sandbox in self.sandboxes.values_mut().filter(|sandbox| sandbox.ended.is_none()) {
            reap(sandbox);
        }
    }

    /// Removes what is left of ended sandboxes whose removal was asked for.
    fn finish_removals(&mut self) -> io::Result<()> {
        let mut done = Vec::new();
        for (&number, sandbox) in &mut self.sandboxes {
            let (Some(since), Some(ended)) = (sandbox.removing, sandbox.ended) else { continue };
            let counted = sandbox.cgroup.used();
            let mut left = sandbox.cgroup.remove();
            left.extend(strays(sandbox));
            if left.is_empty() || since.elapsed() > REMOVE_PATIENCE {
                let used = Used {
                    cpu_us: counted.cpu_us.max(ended.cpu_us),
                    peak: if counted.peak > 0 { counted.peak } else { ended.peak },
                    ..counted
                };
                done.push((number, left, used));
            }
        }
        for (number, left, used) in done {
            self.sandboxes.remove(&number);
            self.link.send(&FromLauncher::Destroyed { number, left, used }, &[])?;
        }
        Ok(())
    }

    /// Ends every sandbox; the supervisor is gone.
    fn end_all(&mut self) {
        for sandbox in self.sandboxes.values() {
            kill(&sandbox.init);
        }
        for (_, sandbox) in std::mem::take(&mut self.sandboxes) {
            remove_now(sandbox);
        }
        self.cgroups.close();
    }
}

/// Where sandboxes get users of their own from, if this is root: the range for
/// that, or, for the root of a container that has fewer ids, its last one.
fn host_ids() -> Option<Range<u32>> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let read = |name: &str| std::fs::read_to_string(format!("/proc/self/{name}")).ok();
    let ids = ids_in(&read("uid_map")?)?;
    (ids_in(&read("gid_map")?)? == ids).then_some(ids)
}

/// The same for one map, of lines of `inside outside count`.
fn ids_in(map: &str) -> Option<Range<u32>> {
    let extents = || {
        map.lines().filter_map(|line| {
            let mut numbers =
                line.split_whitespace().map_while(|number| number.parse::<u32>().ok());
            let (first, _outside, count) = (numbers.next()?, numbers.next()?, numbers.next()?);
            Some(first..first.checked_add(count)?)
        })
    };
    if extents().any(|extent| extent.start <= HOST_IDS.start && HOST_IDS.end <= extent.end) {
        return Some(HOST_IDS);
    }
    let last = extents().map(|extent| extent.end).max()?.checked_sub(1)?;
    (last > 0).then(|| last..last + 1)
}

fn report(link: &Link, unmet: Unmet) -> io::Result<()> {
    link.send(&FromInit::Failed { control: unmet.control.into(), reason: unmet.reason }, &[])
}

/// Killing process 1 of a pid namespace kills all in it.
fn kill(init: &Child) {
    let _ = rustix::process::pidfd_send_signal(&init.pidfd, rustix::process::Signal::KILL);
}

fn reap(sandbox: &mut Entry) {
    if let Ok(Some(ended)) = linux::process::reap(sandbox.init.pid) {
        sandbox.ended = Some(Used {
            cpu_us: u64::try_from(ended.cpu.as_micros()).unwrap_or(0),
            peak: ended.peak,
            ..Used::default()
        });
    }
}

/// Kills, waits for the end, and removes.
fn remove_now(mut sandbox: Entry) {
    kill(&sandbox.init);
    let since = Instant::now();
    while since.elapsed() < REMOVE_PATIENCE {
        if sandbox.ended.is_none() {
            let mut fds = [PollFd::new(&sandbox.init.pidfd, PollFlags::IN)];
            let _ = poll(&mut fds, Some(&Timespec { tv_sec: 1, tv_nsec: 0 }));
            reap(&mut sandbox);
        } else if sandbox.cgroup.remove().is_empty() {
            return;
        } else {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// Processes that are left in a sandbox's pid namespace. With a cgroup the
/// kernel itself answers that, by refusing to remove a cgroup with processes.
fn strays(sandbox: &Entry) -> Vec<String> {
    let Some(namespace) = &sandbox.pid_namespace else { return Vec::new() };
    if sandbox.cgroup.start_in().is_some() || !sandbox.cgroup.join_fds().is_empty() {
        return Vec::new();
    }
    let mut left = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        if std::fs::read_link(entry.path().join("ns/pid")).is_ok_and(|id| id == *namespace) {
            left.push(format!("process {}", entry.file_name().display()));
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_for_sandboxes() {
        let cases = [
            ("         0          0 4294967295\n", Some(HOST_IDS)),
            ("0 1000 1\n1 100000 65536\n", Some(65_536..65_537)),
            ("0 1000 1\n", None),
            ("", None),
            ("0 x\n", None),
        ];
        for (map, want) in cases {
            assert_eq!(ids_in(map), want, "{map:?}");
        }
    }
}
