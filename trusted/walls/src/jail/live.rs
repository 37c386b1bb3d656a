//! A live sandbox, as the supervisor holds it.

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use sandbox::{
    Cleanup, Control, Ended, FileEntry, FileError, FileToPut, GuestPath, Limit, Limits, Pid,
    Process, ProcessInfo, ProcessSpec, Sandbox, SandboxError, SandboxId, StartError, TerminalSize,
    Usage, WallName,
};
use tokio::sync::{Notify, oneshot};
use wire::jail::{Counters, FromInit, StartStep, ToInit, Used};

use super::client::{Gone, Inbox, Outbox};
use super::make::Lease;
use super::processes::{Processes, Started};
use super::watch::Measures;
use super::{files, lock};

/// How long init may take to answer a request.
const ANSWER_PATIENCE: Duration = Duration::from_secs(30);

/// What the tasks around a sandbox share.
pub(super) struct Shared {
    pub(super) limits: Limits,
    outbox: Outbox,
    /// Init. Killing it ends all.
    pidfd: OwnedFd,
    pub(super) counters: Counters,
    pub(super) limit_hit: OnceLock<Limit>,
    pub(super) truncated: AtomicBool,
    /// Bytes of output that may still come.
    pub(super) output_left: AtomicU64,
    pub(super) processes: Processes,
    waiting: Mutex<HashMap<u32, oneshot::Sender<Answer>>>,
    next_seq: AtomicU32,
    /// When the first process was started.
    pub(super) begun: OnceLock<Instant>,
    pub(super) first_start: Notify,
    /// Set when init is gone.
    ended: AtomicBool,
    pub(super) end: Notify,
    /// From init and from the watcher, where there is no cgroup.
    pub(super) seen: Mutex<Used>,
    /// CPU time of processes that have ended, as init says.
    pub(super) ended_cpu: Mutex<Duration>,
    /// Taken at the end, so that nothing of the sandbox is held.
    pub(super) measures: Mutex<Option<Measures>>,
    /// Whether the caller has paused it.
    paused: AtomicBool,
}

/// What init answered to a request.
pub(super) struct Answer {
    pub(super) message: FromInit,
    pub(super) fds: Vec<OwnedFd>,
}

impl Shared {
    pub(super) fn new(
        limits: Limits,
        links: (Outbox, Inbox),
        pidfd: OwnedFd,
        counters: Counters,
        measures: Measures,
    ) -> (Self, Inbox) {
        let (outbox, inbox) = links;
        let shared = Self {
            output_left: AtomicU64::new(limits.output),
            limits,
            outbox,
            pidfd,
            counters,
            limit_hit: OnceLock::new(),
            truncated: AtomicBool::new(false),
            processes: Processes::default(),
            waiting: Mutex::default(),
            next_seq: AtomicU32::new(1),
            begun: OnceLock::new(),
            first_start: Notify::new(),
            ended: AtomicBool::new(false),
            end: Notify::new(),
            seen: Mutex::default(),
            ended_cpu: Mutex::default(),
            measures: Mutex::new(Some(measures)),
            paused: AtomicBool::new(false),
        };
        (shared, inbox)
    }

    /// Whether the caller has paused the sandbox.
    pub(super) fn is_paused(&self) -> bool {
        self.paused.load(Ordering::Acquire)
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Ends the sandbox for exceeding a limit; the first reason counts.
    pub(super) fn end_for(&self, limit: Limit) {
        let _ = self.limit_hit.set(limit);
        self.kill();
    }

    /// Ends the sandbox.
    pub(super) fn kill(&self) {
        let _ = rustix::process::pidfd_send_signal(&self.pidfd, rustix::process::Signal::KILL);
    }

    /// Asks init; its answer comes through [`serve`].
    pub(super) async fn ask(
        &self,
        make: impl FnOnce(u32) -> ToInit,
        fds: Vec<OwnedFd>,
    ) -> Result<Answer, SandboxError> {
        let seq = self.next_seq.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = oneshot::channel();
        lock(&self.waiting).insert(seq, sender);
        if self.has_ended() {
            lock(&self.waiting).remove(&seq);
            return Err(SandboxError::Ended);
        }
        if let Err(error) = self.outbox.send(&make(seq), fds) {
            lock(&self.waiting).remove(&seq);
            return Err(SandboxError::Failed {
                what: "ask the sandbox's init",
                reason: error.to_string(),
            });
        }
        match tokio::time::timeout(ANSWER_PATIENCE, receiver).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(_)) => Err(SandboxError::Ended),
            Err(_) => {
                lock(&self.waiting).remove(&seq);
                Err(SandboxError::Failed {
                    what: "ask the sandbox's init",
                    reason: "no answer: its processes may be paused or starved".into(),
                })
            }
        }
    }
}

/// Takes messages from init until it is gone.
pub(super) async fn serve(shared: Arc<Shared>, inbox: Inbox) {
    while let Ok(Some((message, fds))) = inbox.receive::<FromInit>().await {
        let seq = match &message {
            FromInit::Started { seq, .. }
            | FromInit::NotStarted { seq, .. }
            | FromInit::Done { seq }
            | FromInit::Entries { seq, .. }
            | FromInit::Refused { seq, .. } => *seq,
            FromInit::Exited { pid, status, cpu_us, peak } => {
                {
                    let mut seen = lock(&shared.seen);
                    seen.cpu_us = seen.cpu_us.max(*cpu_us);
                    seen.peak = seen.peak.max(*peak);
                    *lock(&shared.ended_cpu) = Duration::from_micros(*cpu_us);
                }
                shared.processes.exited(Pid(*pid), *status);
                continue;
            }
            // Said once, before there was anybody to serve.
            FromInit::Ready { .. } | FromInit::Failed { .. } => continue,
        };
        if let FromInit::Started { pid, .. } = &message {
            // Before its end can be heard of.
            shared.processes.expect(Pid(*pid));
        }
        if let Some(sender) = lock(&shared.waiting).remove(&seq) {
            let _ = sender.send(Answer { message, fds });
        }
    }
    shared.ended.store(true, Ordering::Release);
    // An init that spoke out of turn is no longer listened to, so it must go.
    shared.kill();
    lock(&shared.waiting).clear();
    shared.processes.all_exited();
    shared.end.notify_waiters();
}

/// A sandbox behind the jail.
pub(super) struct JailSandbox {
    pub(super) id: SandboxId,
    pub(super) shared: Arc<Shared>,
    /// Taken by [`Sandbox::destroy`].
    pub(super) lease: Option<Lease>,
    pub(super) controls: Vec<Control>,
    /// Variables of every process.
    pub(super) env: Vec<(String, String)>,
}

impl JailSandbox {
    fn environment(&self, process: &ProcessSpec) -> Result<Vec<String>, StartError> {
        let mut all: Vec<(&str, &str)> =
            self.env.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        if matches!(process.stdio, sandbox::Stdio::Pty(_)) {
            all.push(("TERM", "xterm-256color"));
        }
        all.extend(process.env.iter().map(|(k, v)| (k.as_str(), v.as_str())));
        let mut merged = std::collections::BTreeMap::new();
        for (name, value) in all {
            check_variable(name, value)?;
            merged.insert(name, value);
        }
        Ok(merged.into_iter().map(|(name, value)| format!("{name}={value}")).collect())
    }
}

fn check_variable(name: &str, value: &str) -> Result<(), StartError> {
    let reason = if name.is_empty() {
        "its name is empty"
    } else if name.contains(['=', '\0']) {
        "its name contains `=` or NUL"
    } else if value.contains('\0') {
        "its value contains NUL"
    } else {
        return Ok(());
    };
    Err(StartError::Argument { what: format!("the variable `{}`", name.escape_debug()), reason })
}

#[async_trait]
impl Sandbox for JailSandbox {
    fn id(&self) -> SandboxId {
        self.id
    }

    fn wall(&self) -> WallName {
        WallName::Jail
    }

    fn controls(&self) -> &[Control] {
        &self.controls
    }

    async fn start(&self, process: ProcessSpec) -> Result<Process, StartError> {
        let Some(program) = process.argv.first().cloned() else {
            return Err(StartError::Argument {
                what: "the program".into(),
                reason: "there is none",
            });
        };
        for argument in &process.argv {
            let reason = if argument.contains('\0') {
                "it contains NUL"
            } else if argument.len() > 128 * 1024 - 1 {
                "the kernel takes at most 128 KiB in one argument"
            } else {
                continue;
            };
            let what = format!(
                "the argument beginning `{}`",
                argument.chars().take(20).collect::<String>().escape_debug()
            );
            return Err(StartError::Argument { what, reason });
        }
        let env = self.environment(&process)?;
        let resources = |error: io::Error| StartError::Resources(error.to_string());
        let (stdio, theirs) = Started::prepare(process.stdio).map_err(resources)?;
        let (argv, cwd) = (process.argv.clone(), process.cwd.to_string());
        let pty = match process.stdio {
            sandbox::Stdio::Pty(size) => Some((size.rows, size.cols)),
            sandbox::Stdio::Pipes { .. } => None,
        };
        if self.shared.begun.set(Instant::now()).is_ok() {
            self.shared.first_start.notify_one();
        }
        let answer =
            self.shared.ask(|seq| ToInit::Start { seq, argv, env, cwd, pty }, theirs).await?;
        match answer.message {
            FromInit::Started { pid, .. } => {
                let stdio = stdio.with_terminal(answer.fds).map_err(resources)?;
                Ok(Processes::run(&self.shared, Pid(pid), process, stdio))
            }
            FromInit::NotStarted { step, errno, .. } => {
                let error = io::Error::from_raw_os_error(errno);
                Err(match step {
                    StartStep::Cwd => {
                        StartError::Cwd { path: process.cwd, reason: error.to_string() }
                    }
                    StartStep::Process => StartError::Resources(error.to_string()),
                    StartStep::Exec if error.kind() == io::ErrorKind::NotFound => {
                        StartError::NotFound { program }
                    }
                    StartStep::Exec => StartError::Exec { program, reason: error.to_string() },
                })
            }
            _ => Err(SandboxError::Failed {
                what: "start a process",
                reason: "unexpected answer".into(),
            }
            .into()),
        }
    }

    async fn processes(&self) -> Vec<ProcessInfo> {
        self.shared.processes.list()
    }

    async fn attach(&self, pid: Pid) -> Result<Process, SandboxError> {
        self.shared.processes.attach(pid).ok_or(SandboxError::NoProcess(pid.0))
    }

    async fn signal(&self, pid: Pid, signal: i32) -> Result<(), SandboxError> {
        if !self.shared.processes.is_running(pid) {
            return Err(SandboxError::NoProcess(pid.0));
        }
        let answer =
            self.shared.ask(|seq| ToInit::Signal { seq, pid: pid.0, signal }, Vec::new()).await?;
        done("send a signal", &answer.message)
    }

    async fn resize(&self, pid: Pid, size: TerminalSize) -> Result<(), SandboxError> {
        self.shared.processes.resize(pid, size)
    }

    async fn read_file(&self, path: &GuestPath, max: u64) -> Result<Bytes, FileError> {
        files::read(&self.shared, path, max).await
    }

    async fn put(&self, file: &FileToPut) -> Result<(), FileError> {
        files::put(&self.shared, file).await
    }

    async fn list_dir(&self, path: &GuestPath) -> Result<Vec<FileEntry>, FileError> {
        let asked = path.to_string();
        files::entries(&self.shared, path, |seq| ToInit::List { seq, path: asked }).await
    }

    async fn stat(&self, path: &GuestPath) -> Result<FileEntry, FileError> {
        let asked = path.to_string();
        let entries =
            files::entries(&self.shared, path, |seq| ToInit::Stat { seq, path: asked }).await?;
        entries.into_iter().next().ok_or_else(|| FileError::NotFound(path.clone()))
    }

    async fn remove(&self, path: &GuestPath) -> Result<(), FileError> {
        let asked = path.to_string();
        files::simple(&self.shared, path, |seq| ToInit::Remove { seq, path: asked }).await
    }

    async fn rename(&self, from: &GuestPath, to: &GuestPath) -> Result<(), FileError> {
        let (asked, to) = (from.to_string(), to.to_string());
        files::simple(&self.shared, from, |seq| ToInit::Rename { seq, from: asked, to }).await
    }

    async fn pause(&self) -> Result<(), SandboxError> {
        self.shared.paused.store(true, Ordering::Release);
        let answer = self.shared.ask(|seq| ToInit::Pause { seq }, Vec::new()).await?;
        done("pause", &answer.message)
    }

    async fn resume(&self) -> Result<(), SandboxError> {
        self.shared.paused.store(false, Ordering::Release);
        let answer = self.shared.ask(|seq| ToInit::Resume { seq }, Vec::new()).await?;
        done("resume", &answer.message)
    }

    async fn usage(&self) -> Usage {
        let counted = super::cgroup::used(&self.shared.counters);
        usage(&merge(&self.shared.counters, counted, *lock(&self.shared.seen)))
    }

    fn limit_hit(&self) -> Option<Limit> {
        self.shared.limit_hit.get().copied()
    }

    async fn destroy(mut self: Box<Self>) -> Ended {
        // Counters of a cgroup are gone with it, so a limit is looked for first.
        super::watch::find_exceeded(&self.shared);
        self.shared.kill();
        drop(lock(&self.shared.measures).take());
        let end = match self.lease.take() {
            Some(lease) => lease.end().await,
            None => Err(Gone),
        };
        let (left, used) = match end {
            Ok(answer) => answer,
            // The launcher's end has ended this sandbox too, and who starts the
            // next launcher removes its cgroup.
            Err(gone) => (vec![format!("its removal is unconfirmed: {gone}")], Used::default()),
        };
        if used.oom_kills > 0 {
            let _ = self.shared.limit_hit.set(Limit::Memory);
        }
        Ended {
            limit_hit: self.limit_hit(),
            truncated: self.shared.truncated.load(Ordering::Acquire),
            usage: usage(&merge(&self.shared.counters, used, *lock(&self.shared.seen))),
            cleanup: Cleanup { left },
        }
    }
}

impl Drop for JailSandbox {
    fn drop(&mut self) {
        self.shared.kill();
        drop(lock(&self.shared.measures).take());
    }
}

fn done(what: &'static str, message: &FromInit) -> Result<(), SandboxError> {
    match message {
        FromInit::Done { .. } => Ok(()),
        FromInit::Refused { errno, .. } => Err(SandboxError::Failed {
            what,
            reason: io::Error::from_raw_os_error(*errno).to_string(),
        }),
        _ => Err(SandboxError::Failed { what, reason: "unexpected answer".into() }),
    }
}

/// The kernel's figures where there is a cgroup, the greatest seen otherwise.
fn merge(counters: &Counters, counted: Used, seen: Used) -> Used {
    let best = |file: &Option<String>, counted: u64, seen: u64| match file {
        Some(_) if counted > 0 => counted,
        _ => counted.max(seen),
    };
    Used {
        cpu_us: best(&counters.cpu, counted.cpu_us, seen.cpu_us),
        peak: best(&counters.peak, counted.peak, seen.peak),
        ..counted
    }
}

fn usage(used: &Used) -> Usage {
    Usage { cpu_time: Duration::from_micros(used.cpu_us), peak_memory: used.peak }
}
