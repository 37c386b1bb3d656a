//! The processes of a sandbox: their output, input and end.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use linux::process::Ending;
use sandbox::{
    ExitStatus, Feed, Limit, Pid, Process, ProcessEvent, ProcessInfo, ProcessInput, ProcessSpec,
    SandboxError, Stdio, TerminalSize,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::{mpsc, oneshot};

use super::live::Shared;
use super::{async_fd, lock};

/// How many chunks wait for a watcher before its process has to.
const QUEUE: usize = 64;

/// The largest chunk of output.
const CHUNK: usize = 32 * 1024;

/// The most that is taken from a process's pipes after its end, when what it
/// left behind may go on writing for ever: the largest a pipe can be.
const DRAIN: usize = 1 << 20;

/// How many ended processes are remembered.
const REMEMBERED: usize = 64;

/// A terminal's end-of-file character.
const END_OF_FILE: &[u8] = &[4];

/// SIGKILL, which ends what is left when a sandbox ends.
const KILLED: i32 = 9;

/// All processes that were started through the interface.
#[derive(Default)]
pub(super) struct Processes(Mutex<BTreeMap<Pid, Entry>>);

#[derive(Default)]
struct Entry {
    argv: Vec<String>,
    tag: Option<String>,
    input: Option<ProcessInput>,
    terminal: Option<Arc<AsyncFd<OwnedFd>>>,
    watchers: Watchers,
    end: End,
}

/// What is known of a process's end.
#[derive(Default)]
enum End {
    /// It runs; its pump is told when it ends.
    Running(oneshot::Sender<i32>),
    /// It runs or ran, and its pump has not been made.
    #[default]
    Early,
    /// It ended before its pump was made.
    EarlyStatus(i32),
    /// Its pump was told, and is emptying its pipes.
    Draining,
    /// It ended, and its watchers know.
    Known(ExitStatus),
}

type Watchers = Arc<Mutex<Vec<mpsc::Sender<ProcessEvent>>>>;

/// This side of a new process's descriptors.
pub(super) enum Started {
    Pipes { stdin: Option<AsyncFd<OwnedFd>>, stdout: AsyncFd<OwnedFd>, stderr: AsyncFd<OwnedFd> },
    Terminal(Option<Arc<AsyncFd<OwnedFd>>>),
}

impl Started {
    /// Makes pipes; returns this side's ends and the process's.
    pub(super) fn prepare(stdio: Stdio) -> io::Result<(Self, Vec<OwnedFd>)> {
        let Stdio::Pipes { stdin: fed } = stdio else {
            return Ok((Self::Terminal(None), Vec::new()));
        };
        let (stdin_theirs, stdin) = io::pipe()?;
        let (stdout, stdout_theirs) = io::pipe()?;
        let (stderr, stderr_theirs) = io::pipe()?;
        let pipes = Self::Pipes {
            // With nobody holding the other end, the pipe is at its end.
            stdin: fed.then(|| async_fd(stdin.into())).transpose()?,
            stdout: async_fd(stdout.into())?,
            stderr: async_fd(stderr.into())?,
        };
        Ok((pipes, vec![stdin_theirs.into(), stdout_theirs.into(), stderr_theirs.into()]))
    }

    /// Adds the terminal that came with the answer to a start.
    pub(super) fn with_terminal(self, mut fds: Vec<OwnedFd>) -> io::Result<Self> {
        match self {
            Self::Terminal(_) => {
                let master = fds.pop().ok_or_else(|| io::Error::other("no terminal came"))?;
                Ok(Self::Terminal(Some(Arc::new(async_fd(master)?))))
            }
            pipes @ Self::Pipes { .. } => Ok(pipes),
        }
    }
}

impl Processes {
    /// Makes room for a process whose pump comes in a moment.
    pub(super) fn expect(&self, pid: Pid) {
        let mut all = lock(&self.0);
        while all.len() >= REMEMBERED {
            let ended = all.iter().find(|(_, entry)| matches!(entry.end, End::Known(_)));
            let Some((&oldest, _)) = ended else { break };
            all.remove(&oldest);
        }
        all.insert(pid, Entry::default());
    }

    /// A process has ended; init says so. Orphans that it reaped are not listed.
    pub(super) fn exited(&self, pid: Pid, status: i32) {
        if let Some(entry) = lock(&self.0).get_mut(&pid) {
            entry.set_ended(status);
        }
    }

    /// Init is gone, and every process with it.
    pub(super) fn all_exited(&self) {
        for entry in lock(&self.0).values_mut() {
            entry.set_ended(KILLED);
        }
    }

    /// Takes over a process that has just been started.
    pub(super) fn run(
        shared: &Arc<Shared>,
        pid: Pid,
        process: ProcessSpec,
        stdio: Started,
    ) -> Process {
        let (sender, events) = mpsc::channel(QUEUE);
        let watchers: Watchers = Arc::new(Mutex::new(vec![sender]));
        let (end, ended) = oneshot::channel();
        let (outputs, input, terminal) = match stdio {
            Started::Pipes { stdin, stdout, stderr } => {
                let input = stdin.map(|pipe| feed(Arc::new(pipe), false));
                let outputs = vec![
                    (Arc::new(stdout), ProcessEvent::Stdout as fn(Bytes) -> ProcessEvent),
                    (Arc::new(stderr), ProcessEvent::Stderr),
                ];
                (outputs, input, None)
            }
            Started::Terminal(Some(master)) => {
                let outputs =
                    vec![(Arc::clone(&master), ProcessEvent::Pty as fn(Bytes) -> ProcessEvent)];
                (outputs, Some(feed(Arc::clone(&master), true)), Some(master))
            }
            Started::Terminal(None) => (Vec::new(), None, None),
        };
        {
            let mut all = lock(&shared.processes.0);
            let entry = all.entry(pid).or_default();
            entry.argv = process.argv;
            entry.tag = process.tag;
            entry.input.clone_from(&input);
            entry.terminal = terminal;
            entry.watchers = Arc::clone(&watchers);
            match std::mem::replace(&mut entry.end, End::Draining) {
                End::EarlyStatus(status) => drop(end.send(status)),
                _ if shared.has_ended() => drop(end.send(KILLED)),
                _ => entry.end = End::Running(end),
            }
        }
        tokio::spawn(pump(Arc::clone(shared), pid, outputs, ended, watchers));
        Process { pid, input, events }
    }

    pub(super) fn list(&self) -> Vec<ProcessInfo> {
        lock(&self.0)
            .iter()
            .map(|(&pid, entry)| ProcessInfo {
                pid,
                argv: entry.argv.clone(),
                tag: entry.tag.clone(),
                exit: match entry.end {
                    End::Known(status) => Some(status),
                    _ => None,
                },
            })
            .collect()
    }

    pub(super) fn is_running(&self, pid: Pid) -> bool {
        lock(&self.0)
            .get(&pid)
            .is_some_and(|entry| matches!(entry.end, End::Running(_) | End::Early))
    }

    pub(super) fn attach(&self, pid: Pid) -> Option<Process> {
        let all = lock(&self.0);
        let entry = all.get(&pid)?;
        let (sender, events) = mpsc::channel(QUEUE);
        match entry.end {
            // The queue is new and has room.
            End::Known(status) => drop(sender.try_send(ProcessEvent::Exit(status))),
            _ => lock(&entry.watchers).push(sender),
        }
        Some(Process { pid, input: entry.input.clone(), events })
    }

    pub(super) fn resize(&self, pid: Pid, size: TerminalSize) -> Result<(), SandboxError> {
        let terminal = lock(&self.0).get(&pid).and_then(|entry| entry.terminal.clone());
        let terminal = terminal.ok_or(SandboxError::NoProcess(pid.0))?;
        let size = rustix::termios::Winsize {
            ws_row: size.rows,
            ws_col: size.cols,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        rustix::termios::tcsetwinsize(terminal.get_ref(), size)
            .map_err(|error| SandboxError::Failed { what: "resize", reason: error.to_string() })
    }

    fn known(&self, pid: Pid, status: ExitStatus) {
        if let Some(entry) = lock(&self.0).get_mut(&pid) {
            entry.end = End::Known(status);
            entry.input = None;
            entry.terminal = None;
        }
    }
}

impl Entry {
    fn set_ended(&mut self, status: i32) {
        match std::mem::replace(&mut self.end, End::Draining) {
            End::Running(pump) => drop(pump.send(status)),
            End::Early => self.end = End::EarlyStatus(status),
            // Process ids come round again: an old one's end is known.
            other => self.end = other,
        }
    }
}

type Output = (Arc<AsyncFd<OwnedFd>>, fn(Bytes) -> ProcessEvent);

/// Carries a process's output to its watchers until it has ended.
async fn pump(
    shared: Arc<Shared>,
    pid: Pid,
    outputs: Vec<Output>,
    mut ended: oneshot::Receiver<i32>,
    watchers: Watchers,
) {
    let mut open = outputs;
    let mut buffers = vec![vec![0; CHUNK]; open.len()];
    let status = loop {
        let read = async {
            match (open.as_slice(), buffers.as_mut_slice()) {
                ([], _) | (_, []) => std::future::pending().await,
                ([(one, _)], [buffer, ..]) => (0, read(one, buffer).await),
                ([(one, _), (two, _), ..], [first, second, ..]) => tokio::select! {
                    n = read(one, first) => (0, n),
                    n = read(two, second) => (1, n),
                },
                (_, [_]) => std::future::pending().await,
            }
        };
        tokio::select! {
            (which, result) = read => match result {
                Ok(n @ 1..) => {
                    let chunk = Bytes::copy_from_slice(&buffers[which][..n]);
                    emit(&shared, &watchers, open[which].1, chunk).await;
                }
                // The end of a pipe, or EIO: the terminal has no more users.
                _ => drop(open.remove(which)),
            },
            status = &mut ended => break status.unwrap_or(KILLED),
        }
    };
    drain(&shared, &open, &watchers).await;
    if matches!(linux::process::ending(status), Ending::Signal(25)) {
        let _ = shared.limit_hit.set(Limit::FileSize);
    }
    let status = match linux::process::ending(status) {
        Ending::Code(code) => ExitStatus::Code(code),
        Ending::Signal(signal) => ExitStatus::Signal(signal),
    };
    // Whoever attaches from here on is told at once.
    shared.processes.known(pid, status);
    broadcast(&watchers, ProcessEvent::Exit(status)).await;
    lock(&watchers).clear();
}

/// Takes what an ended process has written and nobody has read.
async fn drain(shared: &Shared, outputs: &[Output], watchers: &Watchers) {
    let mut buffer = vec![0; CHUNK];
    for (output, event) in outputs {
        let mut taken = 0;
        while taken < DRAIN {
            match rustix::io::read(output.get_ref(), &mut buffer[..]) {
                Ok(n @ 1..) => {
                    taken += n;
                    emit(shared, watchers, *event, Bytes::copy_from_slice(&buffer[..n])).await;
                }
                Err(rustix::io::Errno::INTR) => {}
                _ => break,
            }
        }
    }
}

async fn read(fd: &AsyncFd<OwnedFd>, buffer: &mut [u8]) -> io::Result<usize> {
    fd.async_io(Interest::READABLE, |fd| Ok(rustix::io::read(fd, &mut *buffer)?)).await
}

/// Hands output on, as far as the output limit lets it.
async fn emit(
    shared: &Shared,
    watchers: &Watchers,
    event: fn(Bytes) -> ProcessEvent,
    mut chunk: Bytes,
) {
    let wanted = chunk.len() as u64;
    let mut granted = 0;
    let _ = shared.output_left.fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| {
        granted = left.min(wanted);
        Some(left - granted)
    });
    if granted < wanted {
        shared.truncated.store(true, Ordering::Release);
        shared.end_for(Limit::Output);
        chunk.truncate(usize::try_from(granted).unwrap_or(0));
    }
    if !chunk.is_empty() {
        broadcast(watchers, event(chunk)).await;
    }
}

/// Tells every watcher, waiting for those whose queue is full.
async fn broadcast(watchers: &Watchers, event: ProcessEvent) {
    let all = lock(watchers).clone();
    let mut gone = false;
    for watcher in all {
        gone |= watcher.send(event.clone()).await.is_err();
    }
    if gone {
        lock(watchers).retain(|watcher| !watcher.is_closed());
    }
}

/// Makes a handle whose bytes go to a process's stdin or terminal.
fn feed(to: Arc<AsyncFd<OwnedFd>>, terminal: bool) -> ProcessInput {
    let (sender, mut feeds) = mpsc::channel(16);
    tokio::spawn(async move {
        while let Some(feed) = feeds.recv().await {
            let bytes = match feed {
                Feed::Bytes(bytes) => bytes,
                Feed::End if terminal => Bytes::from_static(END_OF_FILE),
                Feed::End => return,
            };
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                match to.async_io(Interest::WRITABLE, |fd| Ok(rustix::io::write(fd, rest)?)).await {
                    Ok(n) => rest = &rest[n..],
                    // The process has closed its end.
                    Err(_) => return,
                }
            }
        }
    });
    ProcessInput::new(sender)
}
