//! One run from start to end: create, run a process, collect, destroy, report.

use std::pin::Pin;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::error::{FileError, RunError};
use crate::limits::Limit;
use crate::process::{ExitStatus, ProcessEvent, ProcessInput, ProcessSpec, Stdio, TerminalSize};
use crate::report::{Output, RunResult, Times};
use crate::spec::{EntryKind, GuestPath, SandboxSpec};
use crate::wall::{Sandbox, Wall};

/// How long a run waits for whoever watches it to take what happened.
const WATCHER_PATIENCE: Duration = Duration::from_secs(30);

/// A run to be made.
pub struct Job {
    /// The sandbox.
    pub spec: SandboxSpec,
    /// The program.
    pub process: ProcessSpec,
    /// What the program reads; decides `process.stdio`'s stdin.
    pub stdin: Stdin,
    /// Files and directories to read after the program has ended.
    pub collect: Vec<GuestPath>,
    /// How much each of them may hold, in bytes.
    pub collect_max: u64,
    /// Where to send what happens as it happens. A receiver that does not keep
    /// up slows the program down.
    pub events: Option<mpsc::Sender<RunEvent>>,
    /// Sizes that the program's terminal takes one after the other.
    pub resize: Option<watch::Receiver<TerminalSize>>,
    /// Ends the run early, as [`ExitStatus::Signal`] 9.
    pub cancel: CancellationToken,
}

impl Job {
    /// A run of `process` with an empty stdin that collects nothing.
    #[must_use]
    pub fn new(spec: SandboxSpec, process: ProcessSpec) -> Self {
        Self {
            spec,
            process,
            stdin: Stdin::Empty,
            collect: Vec::new(),
            collect_max: 1 << 30,
            events: None,
            resize: None,
            cancel: CancellationToken::new(),
        }
    }
}

/// What a program reads from its stdin.
pub enum Stdin {
    /// Nothing.
    Empty,
    /// These bytes, then end-of-file.
    Bytes(Bytes),
    /// What this reader gives.
    Reader(Box<dyn AsyncRead + Send + Unpin>),
}

/// What happens in a run, as it happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunEvent {
    /// Bytes written to stdout or to the terminal.
    Stdout(Bytes),
    /// Bytes written to stderr.
    Stderr(Bytes),
}

/// What was asked for, or why it could not be had.
#[derive(Debug)]
pub struct Collected {
    /// Where it was.
    pub path: GuestPath,
    /// What it holds.
    pub contents: Result<Tree, FileError>,
}

/// A file, or a directory with all below it. Names come from inside: whoever
/// makes paths of them has to check each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tree {
    /// A regular file.
    File(Bytes),
    /// A directory's entries by name.
    Directory(Vec<(String, Tree)>),
    /// A link, a pipe, a socket or a device: named, and not read.
    Other(EntryKind),
}

/// Creates a sandbox, runs one process to its end, collects files, destroys the
/// sandbox, and reports.
///
/// If the returned future is dropped, the sandbox is destroyed.
///
/// # Errors
///
/// [`RunError`] if the process never ran. What the process itself does, a
/// failure or a limit too, is a result and no error.
pub async fn run(wall: &dyn Wall, job: Job) -> Result<(RunResult, Vec<Collected>), RunError> {
    let begun = Instant::now();
    let sandbox = wall.create(&job.spec).await?;
    let created = Instant::now();

    let mut process = job.process;
    if let Stdio::Pipes { stdin } = &mut process.stdio {
        *stdin = !matches!(job.stdin, Stdin::Empty);
    }
    let started = match sandbox.start(process).await {
        Ok(started) => started,
        Err(error) => {
            sandbox.destroy().await;
            return Err(error.into());
        }
    };

    let feeding = started.input.map(|input| tokio::spawn(feed(input, job.stdin)));
    let mut stdout = Vec::new();
    let mut stderr = Vec::new();
    let mut events = started.events;
    let mut watcher = job.events;
    let mut sizes = job.resize;
    let exit = loop {
        let event = tokio::select! {
            event = events.recv() => event,
            () = job.cancel.cancelled() => None,
            size = next_size(&mut sizes) => {
                // A terminal that is just going away needs no size.
                let _ = sandbox.resize(started.pid, size).await;
                continue;
            }
        };
        let report = match event {
            Some(ProcessEvent::Stdout(bytes) | ProcessEvent::Pty(bytes)) => {
                stdout.extend_from_slice(&bytes);
                RunEvent::Stdout(bytes)
            }
            Some(ProcessEvent::Stderr(bytes)) => {
                stderr.extend_from_slice(&bytes);
                RunEvent::Stderr(bytes)
            }
            Some(ProcessEvent::Exit(status)) => break status,
            None => break ExitStatus::Signal(9),
        };
        if let Some(sender) = &watcher {
            // One that has stopped reading must not keep the sandbox for ever.
            let told = tokio::time::timeout(WATCHER_PATIENCE, sender.send(report)).await;
            if !matches!(told, Ok(Ok(()))) {
                watcher = None;
            }
        }
    };
    if let Some(feeding) = feeding {
        feeding.abort();
    }

    let collected = collect(&*sandbox, job.collect, job.collect_max).await;
    let ran = Instant::now();
    let (id, wall, controls) = (sandbox.id(), sandbox.wall(), sandbox.controls().to_vec());
    let ended = sandbox.destroy().await;
    let result = RunResult {
        id,
        exit,
        timed_out: ended.limit_hit == Some(Limit::WallTime),
        limit_hit: ended.limit_hit,
        stdout: Output(stdout),
        stderr: Output(stderr),
        truncated: ended.truncated,
        wall,
        controls,
        usage: ended.usage,
        times: Times { create: created - begun, run: ran - created, destroy: ran.elapsed() },
        cleanup: ended.cleanup,
    };
    Ok((result, collected))
}

/// The next size of the terminal; never, if there is none to come.
async fn next_size(sizes: &mut Option<watch::Receiver<TerminalSize>>) -> TerminalSize {
    if let Some(receiver) = sizes {
        if receiver.changed().await.is_ok() {
            return *receiver.borrow_and_update();
        }
        *sizes = None;
    }
    std::future::pending().await
}

/// Gives a program its stdin.
async fn feed(input: ProcessInput, stdin: Stdin) {
    match stdin {
        Stdin::Empty => {}
        Stdin::Bytes(bytes) => {
            let _ = input.write(bytes).await;
        }
        Stdin::Reader(mut reader) => {
            let mut buffer = vec![0; 64 * 1024];
            // A reader that fails is at its end: the program sees end-of-file.
            while let Ok(n @ 1..) = reader.read(&mut buffer).await {
                if input.write(Bytes::copy_from_slice(&buffer[..n])).await.is_err() {
                    return;
                }
            }
        }
    }
    input.close().await;
}

async fn collect(sandbox: &dyn Sandbox, paths: Vec<GuestPath>, max: u64) -> Vec<Collected> {
    let mut collected = Vec::with_capacity(paths.len());
    for path in paths {
        let mut room = Room { bytes: max, entries: MAX_ENTRIES, max };
        // Asked for by name, so a link is followed, inside the sandbox.
        let contents = match sandbox.read_file(&path, max).await {
            Ok(bytes) => Ok(Tree::File(bytes)),
            Err(FileError::WrongKind { .. }) => {
                directory(sandbox, path.clone(), &mut room, 0).await
            }
            Err(error) => Err(error),
        };
        collected.push(Collected { path, contents });
    }
    collected
}

/// How many entries a collected directory may have, and how deep it may go.
const MAX_ENTRIES: usize = 10_000;
const MAX_DEPTH: usize = 64;

/// What still fits into a collected directory.
struct Room {
    bytes: u64,
    entries: usize,
    max: u64,
}

/// Reads a directory. Links in it are not followed.
fn directory<'a>(
    sandbox: &'a dyn Sandbox,
    path: GuestPath,
    room: &'a mut Room,
    depth: usize,
) -> Pin<Box<dyn Future<Output = Result<Tree, FileError>> + Send + 'a>> {
    Box::pin(async move {
        let listed = sandbox.list_dir(&path).await.map_err(|error| match error {
            // It is neither: say what was looked for first.
            FileError::WrongKind { path, .. } => {
                FileError::WrongKind { path, wanted: "regular file or directory" }
            }
            error => error,
        })?;
        room.entries = room
            .entries
            .checked_sub(listed.len())
            .filter(|_| depth < MAX_DEPTH)
            .ok_or_else(|| FileError::TooManyEntries(path.clone()))?;
        let mut entries = Vec::with_capacity(listed.len());
        for entry in listed {
            let inside = path.join(&entry.name)?;
            let tree = match entry.kind {
                EntryKind::File => {
                    let too_large = || FileError::TooLarge { path: path.clone(), max: room.max };
                    let bytes = match sandbox.read_file(&inside, room.bytes).await {
                        Err(FileError::TooLarge { .. }) => return Err(too_large()),
                        // It has gone since, or its name is not UTF-8.
                        Err(FileError::NotFound(_)) => {
                            entries.push((entry.name, Tree::Other(EntryKind::File)));
                            continue;
                        }
                        bytes => bytes?,
                    };
                    room.bytes -= bytes.len() as u64;
                    Tree::File(bytes)
                }
                EntryKind::Directory => directory(sandbox, inside, &mut *room, depth + 1).await?,
                kind => Tree::Other(kind),
            };
            entries.push((entry.name, tree));
        }
        Ok(Tree::Directory(entries))
    })
}
