//! The supervisor's side of the connection to the launcher.

use std::collections::HashMap;
use std::io::{self, BufRead as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{ChildStderr, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::{Notify, mpsc, oneshot};
use wire::jail::{Accounting, Counters, FromLauncher, Plan, ToLauncher, Used};

use super::launcher::ARGUMENT;
use super::{async_fd, lock};
use crate::Helper;

/// How long the launcher may take to say that it is ready.
const HELLO_PATIENCE: Duration = Duration::from_secs(10);

/// How long systemd may take to start one, before it is started without.
const SCOPE_PATIENCE: Duration = Duration::from_secs(5);

/// Opens this side of a connection for tasks.
pub(super) fn open(socket: UnixStream) -> io::Result<(Outbox, Inbox)> {
    let socket = Arc::new(async_fd(socket.into())?);
    let (sender, receiver) = mpsc::unbounded_channel();
    tokio::spawn(send_all(Arc::clone(&socket), receiver));
    Ok((Outbox(sender), Inbox(socket)))
}

/// A frame and the descriptors that go with it.
type Frame = (Vec<u8>, Vec<OwnedFd>);

/// The sending side. A task of its own sends, so that a caller who gives up
/// leaves no half a message behind.
#[derive(Clone)]
pub(super) struct Outbox(mpsc::UnboundedSender<Frame>);

impl Outbox {
    /// Queues a message; descriptors are closed here once they are sent.
    pub(super) fn send<T: Serialize>(&self, message: &T, fds: Vec<OwnedFd>) -> io::Result<()> {
        let frame = wire::encode(message).map_err(io::Error::other)?;
        self.0.send((frame, fds)).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

async fn send_all(socket: Arc<AsyncFd<OwnedFd>>, mut frames: mpsc::UnboundedReceiver<Frame>) {
    while let Some((frame, fds)) = frames.recv().await {
        let mut sent = 0;
        while sent < frame.len() {
            let result = socket
                .async_io(Interest::WRITABLE, |socket| {
                    let fds: Vec<BorrowedFd<'_>> = fds.iter().map(OwnedFd::as_fd).collect();
                    linux::scm::send(socket, &frame[sent..], if sent == 0 { &fds } else { &[] })
                })
                .await;
            match result {
                Ok(n) => sent += n,
                // The other end is gone; the receiving side sees it too.
                Err(_) => return,
            }
        }
    }
    // The last sender is gone: the other end is to see that.
    let _ = rustix::net::shutdown(socket.get_ref(), rustix::net::Shutdown::Write);
}

/// The receiving side.
pub(super) struct Inbox(Arc<AsyncFd<OwnedFd>>);

impl Inbox {
    /// The next message with its descriptors; `None` at the end.
    pub(super) async fn receive<T: DeserializeOwned>(
        &self,
    ) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
        let mut fds = Vec::new();
        let mut head = [0; wire::HEAD_LEN];
        if !self.fill(&mut head, &mut fds).await? {
            return Ok(None);
        }
        let mut body = vec![0; wire::body_len(head).map_err(io::Error::other)?];
        if !self.fill(&mut body, &mut fds).await? && !body.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(Some((wire::decode(&body).map_err(io::Error::other)?, fds)))
    }

    async fn fill(&self, buffer: &mut [u8], fds: &mut Vec<OwnedFd>) -> io::Result<bool> {
        let mut filled = 0;
        while filled < buffer.len() {
            let n = self
                .0
                .async_io(Interest::READABLE, |socket| {
                    linux::scm::receive(socket, &mut buffer[filled..], fds)
                })
                .await?;
            match n {
                0 if filled == 0 => return Ok(false),
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                n => filled += n,
            }
        }
        Ok(true)
    }
}

/// A running launcher.
pub(super) struct Client {
    /// Taken at the end, which tells the launcher to end too.
    outbox: Mutex<Option<Outbox>>,
    waiting: Arc<Mutex<Waiting>>,
    ended: Arc<Notify>,
    pub(super) accounting: Accounting,
}

/// Who waits for which answer.
#[derive(Default)]
struct Waiting {
    created: HashMap<u64, oneshot::Sender<Result<Created, String>>>,
    destroyed: HashMap<u64, Vec<oneshot::Sender<Removed>>>,
    /// The launcher is gone.
    closed: bool,
}

/// What could not be removed, and what the sandbox used.
pub(super) type Removed = (Vec<String>, Used);

/// A sandbox that the launcher has made.
pub(super) struct Created {
    pub(super) pidfd: OwnedFd,
    pub(super) counters: Counters,
}

/// The launcher is gone: it was killed, or it failed.
#[derive(Debug, thiserror::Error)]
#[error("the jail's launcher is gone")]
pub(super) struct Gone;

impl Client {
    /// Starts a launcher: where only a systemd user scope gives this user a
    /// cgroup, in such a scope if that works.
    pub(super) async fn start(helper: &Helper) -> io::Result<Self> {
        let mut no_scope = None;
        if scope_would_help() {
            match Self::start_in_scope(helper).await {
                Ok(client) => return Ok(client),
                Err(error) => no_scope = Some(error.to_string()),
            }
        }
        Self::greet(HELLO_PATIENCE, |socket| spawn(helper, socket, no_scope.as_deref())).await
    }

    async fn start_in_scope(helper: &Helper) -> io::Result<Self> {
        let mut errors = None;
        let client = Self::greet(SCOPE_PATIENCE, |socket| {
            let mut child = spawn_in_scope(helper, socket)?;
            errors = child.stderr.take().map(forward_errors);
            Ok(child)
        });
        match client.await {
            Ok(client) => Ok(client),
            // It has ended, and with it what it said.
            Err(error) => {
                let said = errors.and_then(|errors| errors.join().ok()).unwrap_or_default();
                Err(if said.is_empty() { error } else { io::Error::other(said) })
            }
        }
    }

    /// Starts a process and waits for it to say that it is a launcher.
    async fn greet(
        patience: Duration,
        spawn: impl FnOnce(OwnedFd) -> io::Result<std::process::Child>,
    ) -> io::Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        let mut child = spawn(theirs.into())?;
        let (outbox, inbox) = open(ours)?;
        let hello = tokio::time::timeout(patience, inbox.receive::<FromLauncher>()).await;
        let (accounting, swept) = match hello {
            Ok(Ok(Some((FromLauncher::Hello { accounting, swept }, _)))) => (accounting, swept),
            other => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(io::Error::other(match other {
                    Err(_) => "the launcher did not answer in time".to_owned(),
                    Ok(Err(error)) => format!("the launcher failed: {error}"),
                    Ok(Ok(_)) => "the launcher ended at once".to_owned(),
                }));
            }
        };
        for thing in swept {
            tracing::warn!(%thing, "removed what an earlier Casemate had left");
        }
        let waiting = Arc::new(Mutex::new(Waiting::default()));
        let ended = Arc::new(Notify::new());
        tokio::spawn(receive_all(inbox, Arc::clone(&waiting), Arc::clone(&ended), child));
        Ok(Self { outbox: Mutex::new(Some(outbox)), waiting, ended, accounting })
    }

    /// Whether it still runs.
    pub(super) fn is_alive(&self) -> bool {
        !lock(&self.waiting).closed
    }

    fn send(&self, message: &ToLauncher, fds: Vec<OwnedFd>) -> Result<(), Gone> {
        lock(&self.outbox).as_ref().ok_or(Gone)?.send(message, fds).map_err(|_| Gone)
    }

    /// Has a sandbox made; its init will talk over `socket`.
    pub(super) async fn create(
        &self,
        plan: Plan,
        socket: OwnedFd,
    ) -> Result<Result<Created, String>, Gone> {
        let (sender, receiver) = oneshot::channel();
        {
            let mut waiting = lock(&self.waiting);
            if waiting.closed {
                return Err(Gone);
            }
            waiting.created.insert(plan.number, sender);
        }
        self.send(&ToLauncher::Create(Box::new(plan)), vec![socket])?;
        receiver.await.map_err(|_| Gone)
    }

    /// Has a sandbox ended and removed; says what was left and what it used.
    pub(super) async fn destroy(&self, number: u64) -> Result<Removed, Gone> {
        let (sender, receiver) = oneshot::channel();
        {
            let mut waiting = lock(&self.waiting);
            if waiting.closed {
                return Err(Gone);
            }
            waiting.destroyed.entry(number).or_default().push(sender);
        }
        self.send(&ToLauncher::Destroy { number }, Vec::new())?;
        receiver.await.map_err(|_| Gone)
    }

    /// Has a sandbox ended and removed, and does not wait.
    pub(super) fn destroy_behind(&self, number: u64) {
        // A launcher that is gone has ended its sandboxes.
        let _ = self.send(&ToLauncher::Destroy { number }, Vec::new());
    }

    /// Ends the launcher and all its sandboxes. Says whether it has ended.
    pub(super) async fn close(&self, patience: Duration) -> bool {
        let ended = self.ended.notified();
        lock(&self.outbox).take();
        !self.is_alive() || tokio::time::timeout(patience, ended).await.is_ok()
    }
}

async fn receive_all(
    inbox: Inbox,
    waiting: Arc<Mutex<Waiting>>,
    ended: Arc<Notify>,
    mut child: std::process::Child,
) {
    loop {
        match inbox.receive::<FromLauncher>().await {
            Ok(Some((FromLauncher::Created { number, counters }, mut fds))) => {
                let answer = match fds.pop() {
                    Some(pidfd) => Ok(Created { pidfd, counters }),
                    None => Err("no pidfd came with the sandbox".to_owned()),
                };
                if let Some(sender) = lock(&waiting).created.remove(&number) {
                    let _ = sender.send(answer);
                }
            }
            Ok(Some((FromLauncher::Failed { number, step, reason }, _))) => {
                if let Some(sender) = lock(&waiting).created.remove(&number) {
                    let _ = sender.send(Err(format!("{step}: {reason}")));
                }
            }
            Ok(Some((FromLauncher::Destroyed { number, left, used }, _))) => {
                if !left.is_empty() {
                    tracing::error!(?left, "a sandbox left something");
                }
                for sender in lock(&waiting).destroyed.remove(&number).unwrap_or_default() {
                    let _ = sender.send((left.clone(), used));
                }
            }
            Ok(Some((FromLauncher::Hello { .. }, _))) => {}
            Ok(None) | Err(_) => break,
        }
    }
    // It has closed its end, so it is about to exit, or it was killed: a moment
    // that is shorter than the start of a thread to wait in.
    for _ in 0..20 {
        if matches!(child.try_wait(), Ok(Some(_))) {
            break;
        }
        std::thread::sleep(Duration::from_micros(50));
    }
    if matches!(child.try_wait(), Ok(None)) {
        let _ = tokio::task::spawn_blocking(move || child.wait()).await;
    }
    *lock(&waiting) = Waiting { closed: true, ..Waiting::default() };
    ended.notify_waiters();
}

/// Starts the helper as a launcher, with its connection as stdin.
fn spawn(
    helper: &Helper,
    socket: OwnedFd,
    no_scope: Option<&str>,
) -> io::Result<std::process::Child> {
    let mut command = Command::new(helper.path());
    command.arg(ARGUMENT).args(no_scope).env_clear();
    command.stdin(Stdio::from(socket)).stdout(Stdio::null());
    command.spawn().map_err(|error| {
        io::Error::new(error.kind(), format!("start {}: {error}", helper.path().display()))
    })
}

/// The same, in a systemd user scope. That systemd-run could be started does
/// not mean that it starts anything: there may be no bus.
fn spawn_in_scope(helper: &Helper, socket: OwnedFd) -> io::Result<std::process::Child> {
    let program = std::fs::canonicalize(helper.path())?;
    let mut command = Command::new("systemd-run");
    command.args(["--user", "--scope", "--quiet", "--collect", "--property=Delegate=yes", "--"]);
    // The scope's command would inherit what systemd-run needs to find its bus.
    command.args(["/usr/bin/env", "-i"]).arg(program).arg(ARGUMENT);
    command.stdin(Stdio::from(socket)).stdout(Stdio::null()).stderr(Stdio::piped());
    command.spawn().map_err(|error| io::Error::new(error.kind(), format!("systemd-run: {error}")))
}

/// Logs what a process says on stderr, until its end; returns its last line.
fn forward_errors(stderr: ChildStderr) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut last = String::new();
        for line in io::BufReader::new(stderr).lines().map_while(Result::ok) {
            tracing::warn!(%line, "the jail's launcher");
            last = line;
        }
        last
    })
}

/// Whether this is an ordinary user with a systemd of its own on a cgroup v2
/// host, in a cgroup that it may not divide.
fn scope_would_help() -> bool {
    if rustix::process::geteuid().is_root()
        || !Path::new("/sys/fs/cgroup/cgroup.controllers").exists()
    {
        return false;
    }
    let Some(runtime) = std::env::var_os("XDG_RUNTIME_DIR") else { return false };
    Path::new(&runtime).join("systemd/private").exists() && !super::cgroup::v2_is_delegated()
}
