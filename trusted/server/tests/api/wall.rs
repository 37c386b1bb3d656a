//! A wall that is none: programs run as children of the test, with the time and
//! output limits of the spec and a home directory of their own.

use std::path::{Path, PathBuf};
use std::process::Stdio as Pipe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use sandbox::{
    Cleanup, Contents, Control, ControlState, CreateError, Ended, ExitStatus, Feed, FileEntry,
    FileError, FileToPut, GuestPath, Limit, Limits, Pid, Process, ProcessEvent, ProcessInfo,
    ProcessInput, ProcessSpec, Sandbox, SandboxError, SandboxId, SandboxSpec, StartError, Stdio,
    TerminalSize, Unavailable, Usage, Wall, WallName,
};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The wall that is none. Clones share their counts.
#[derive(Clone, Default)]
pub(crate) struct UnfencedWall {
    pub(crate) created: Arc<AtomicUsize>,
    pub(crate) live: Arc<AtomicUsize>,
    pub(crate) most: Arc<AtomicUsize>,
    pub(crate) broken: bool,
    pub(crate) shut_down: Arc<AtomicBool>,
    /// Given out as what the final check found.
    pub(crate) leftovers: Vec<String>,
}

impl UnfencedWall {
    /// How many sandboxes were made.
    pub(crate) fn created(&self) -> usize {
        self.created.load(Ordering::SeqCst)
    }

    /// How many sandboxes have a process or were not destroyed.
    pub(crate) fn live(&self) -> usize {
        self.live.load(Ordering::SeqCst)
    }

    /// The most sandboxes there were at once.
    pub(crate) fn most(&self) -> usize {
        self.most.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl Wall for UnfencedWall {
    fn name(&self) -> WallName {
        WallName::Jail
    }

    async fn probe(&self) -> Result<(), Unavailable> {
        let fix = Some("mend it".to_owned());
        if self.broken { Err(Unavailable { reason: "it is broken".into(), fix }) } else { Ok(()) }
    }

    async fn create(&self, spec: &SandboxSpec) -> Result<Box<dyn Sandbox>, CreateError> {
        self.created.fetch_add(1, Ordering::SeqCst);
        let live = self.live.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(live, Ordering::SeqCst);
        let sandbox = Unfenced {
            id: SandboxId::new(),
            controls: vec![Control {
                name: "none".into(),
                state: ControlState::Absent("a test's wall".into()),
            }],
            inner: Arc::new(Inner {
                home: tempfile::tempdir().unwrap(),
                limits: spec.limits.clone(),
                limit: Mutex::default(),
                truncated: AtomicBool::new(false),
                kill: CancellationToken::new(),
                live: Arc::clone(&self.live),
            }),
            env: spec.env.clone(),
            tasks: TaskTracker::new(),
        };
        for file in &spec.files {
            sandbox.put(file).await.map_err(|error| CreateError::Spec {
                what: "files".into(),
                reason: error.to_string(),
            })?;
        }
        Ok(Box::new(sandbox))
    }

    async fn shutdown(&self) -> Cleanup {
        self.shut_down.store(true, Ordering::SeqCst);
        Cleanup { left: self.leftovers.clone() }
    }
}

struct Unfenced {
    id: SandboxId,
    controls: Vec<Control>,
    inner: Arc<Inner>,
    env: std::collections::BTreeMap<String, String>,
    tasks: TaskTracker,
}

/// What a sandbox and its process's task share; the last to go ends its life.
struct Inner {
    home: tempfile::TempDir,
    limits: Limits,
    limit: Mutex<Option<Limit>>,
    truncated: AtomicBool,
    kill: CancellationToken,
    live: Arc<AtomicUsize>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.live.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Drop for Unfenced {
    fn drop(&mut self) {
        self.inner.kill.cancel();
    }
}

impl Inner {
    /// Where a path of the sandbox is on the host.
    fn host(&self, path: &str) -> PathBuf {
        let path = path.strip_prefix(GuestPath::HOME).unwrap_or(path);
        self.home.path().join(path.trim_start_matches('/'))
    }

    fn hit(&self, limit: Limit) {
        self.limit.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(limit);
        self.kill.cancel();
    }

    /// Passes on what a program writes, up to the output limit of both streams.
    async fn pump(
        &self,
        mut from: impl AsyncRead + Unpin,
        to: mpsc::Sender<ProcessEvent>,
        left: Arc<Mutex<u64>>,
        event: fn(Bytes) -> ProcessEvent,
    ) {
        let mut buffer = vec![0; 8192];
        while let Ok(n @ 1..) = from.read(&mut buffer).await {
            let taken = {
                let mut left = left.lock().unwrap();
                let taken = n.min(usize::try_from(*left).unwrap());
                *left -= taken as u64;
                taken
            };
            // A watcher that is gone does not stop the program.
            let _ = to.send(event(Bytes::copy_from_slice(&buffer[..taken]))).await;
            if taken < n {
                self.truncated.store(true, Ordering::SeqCst);
                self.hit(Limit::Output);
                return;
            }
        }
    }

    async fn watch(self: Arc<Self>, mut child: Child, to: mpsc::Sender<ProcessEvent>) {
        let left = Arc::new(Mutex::new(self.limits.output));
        let (out, err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let reading = async {
            tokio::join!(
                self.pump(out, to.clone(), Arc::clone(&left), ProcessEvent::Stdout),
                self.pump(err, to.clone(), left, ProcessEvent::Stderr),
            );
        };
        tokio::select! {
            () = reading => {}
            () = self.kill.cancelled() => {}
            () = tokio::time::sleep(self.limits.wall_time) => self.hit(Limit::WallTime),
        }
        let exited = tokio::select! {
            exited = child.wait() => exited,
            () = self.kill.cancelled() => {
                child.start_kill().unwrap();
                child.wait().await
            }
            () = tokio::time::sleep(self.limits.wall_time) => {
                self.hit(Limit::WallTime);
                child.start_kill().unwrap();
                child.wait().await
            }
        };
        use std::os::unix::process::ExitStatusExt as _;
        let exited = exited.unwrap();
        let status = match exited.code() {
            Some(code) => ExitStatus::Code(code),
            None => ExitStatus::Signal(exited.signal().unwrap()),
        };
        drop(self);
        // A watcher that does not read does not keep the sandbox.
        let sending = to.send(ProcessEvent::Exit(status));
        let _ = tokio::time::timeout(std::time::Duration::from_secs(1), sending).await;
    }
}

const UNSUPPORTED: SandboxError =
    SandboxError::Unsupported { wall: WallName::Jail, what: "do that in a test" };

#[async_trait]
impl Sandbox for Unfenced {
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
        let map = |argument: &String| match argument.strip_prefix(GuestPath::HOME) {
            Some(_) => self.inner.host(argument).display().to_string(),
            None => argument.clone(),
        };
        let argv: Vec<String> = process.argv.iter().map(map).collect();
        let Stdio::Pipes { stdin } = process.stdio else { return Err(UNSUPPORTED.into()) };
        let mut child = Command::new(&argv[0])
            .args(&argv[1..])
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", self.inner.home.path())
            .envs(&self.env)
            .current_dir(self.inner.home.path())
            .stdin(if stdin { Pipe::piped() } else { Pipe::null() })
            .stdout(Pipe::piped())
            .stderr(Pipe::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|_| StartError::NotFound { program: process.argv[0].clone() })?;
        let input = child.stdin.take().map(|mut pipe| {
            let (sender, mut feeds) = mpsc::channel(16);
            tokio::spawn(async move {
                while let Some(Feed::Bytes(bytes)) = feeds.recv().await {
                    if pipe.write_all(&bytes).await.is_err() {
                        break;
                    }
                }
            });
            ProcessInput::new(sender)
        });
        let (sender, events) = mpsc::channel(16);
        let pid = Pid(child.id().unwrap());
        self.tasks.spawn(Arc::clone(&self.inner).watch(child, sender));
        Ok(Process { pid, input, events })
    }

    async fn processes(&self) -> Vec<ProcessInfo> {
        Vec::new()
    }

    async fn attach(&self, _: Pid) -> Result<Process, SandboxError> {
        Err(UNSUPPORTED)
    }

    async fn signal(&self, _: Pid, _: i32) -> Result<(), SandboxError> {
        Err(UNSUPPORTED)
    }

    async fn resize(&self, _: Pid, _: TerminalSize) -> Result<(), SandboxError> {
        Err(UNSUPPORTED)
    }

    async fn read_file(&self, path: &GuestPath, max: u64) -> Result<Bytes, FileError> {
        let bytes = std::fs::read(self.inner.host(path.as_str()))
            .map_err(|_| FileError::NotFound(path.clone()))?;
        if bytes.len() as u64 > max {
            return Err(FileError::TooLarge { path: path.clone(), max });
        }
        Ok(bytes.into())
    }

    async fn put(&self, file: &FileToPut) -> Result<(), FileError> {
        let Contents::Bytes(bytes) = &file.contents else { return Err(UNSUPPORTED.into()) };
        let path = self.inner.host(file.path.as_str());
        assert!(!path.ends_with("panic"), "a wall that panics, as the test asked");
        std::fs::create_dir_all(path.parent().unwrap_or(Path::new("/"))).unwrap();
        std::fs::write(&path, bytes).unwrap();
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(file.mode)).unwrap();
        Ok(())
    }

    async fn list_dir(&self, _: &GuestPath) -> Result<Vec<FileEntry>, FileError> {
        Err(UNSUPPORTED.into())
    }

    async fn stat(&self, _: &GuestPath) -> Result<FileEntry, FileError> {
        Err(UNSUPPORTED.into())
    }

    async fn remove(&self, _: &GuestPath) -> Result<(), FileError> {
        Err(UNSUPPORTED.into())
    }

    async fn rename(&self, _: &GuestPath, _: &GuestPath) -> Result<(), FileError> {
        Err(UNSUPPORTED.into())
    }

    async fn pause(&self) -> Result<(), SandboxError> {
        Err(UNSUPPORTED)
    }

    async fn resume(&self) -> Result<(), SandboxError> {
        Err(UNSUPPORTED)
    }

    async fn usage(&self) -> Usage {
        Usage::default()
    }

    fn limit_hit(&self) -> Option<Limit> {
        *self.inner.limit.lock().unwrap()
    }

    async fn destroy(self: Box<Self>) -> Ended {
        self.inner.kill.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        Ended {
            limit_hit: self.limit_hit(),
            truncated: self.inner.truncated.load(Ordering::SeqCst),
            usage: Usage::default(),
            cleanup: Cleanup::default(),
        }
    }
}
