//! Processes in a sandbox: how they are started, fed and watched.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use crate::error::SandboxError;
use crate::spec::GuestPath;

/// A process id as the sandbox's own processes see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Pid(pub u32);

/// A program to start in a sandbox.
#[derive(Clone, Debug)]
pub struct ProcessSpec {
    /// The program and its arguments. A program without `/` is looked up in the
    /// `PATH` of the process.
    pub argv: Vec<String>,
    /// Variables on top of the sandbox's own.
    pub env: BTreeMap<String, String>,
    /// Where it starts. Default: the home directory.
    pub cwd: GuestPath,
    /// What descriptors 0, 1 and 2 are.
    pub stdio: Stdio,
    /// A name by which it can be found in [`crate::Sandbox::processes`].
    pub tag: Option<String>,
}

impl ProcessSpec {
    /// A program with its arguments, an empty stdin and separate pipes for
    /// output, started in the home directory.
    ///
    /// # Panics
    ///
    /// Never: the home directory is a valid path.
    #[must_use]
    pub fn new<I, S>(argv: I) -> Self
    where
        I: IntoIterator<Item = S>,
        S: Into<String>,
    {
        Self {
            argv: argv.into_iter().map(Into::into).collect(),
            env: BTreeMap::new(),
            cwd: GuestPath::new(GuestPath::HOME).expect("the home is a path"),
            stdio: Stdio::Pipes { stdin: false },
            tag: None,
        }
    }
}

/// What descriptors 0, 1 and 2 of a process are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stdio {
    /// A pipe each for stdout and stderr. Stdin is a pipe that the caller
    /// writes to, or else is empty.
    Pipes {
        /// Whether the caller will write to stdin.
        stdin: bool,
    },
    /// One new terminal for all three, which controls the process's session.
    Pty(TerminalSize),
}

/// The size of a terminal in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalSize {
    /// Height.
    pub rows: u16,
    /// Width.
    pub cols: u16,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ExitStatus {
    /// It exited with this code, 0 to 255.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
}

impl ExitStatus {
    /// The code a shell would show: the exit code, or 128 + the signal.
    #[must_use]
    pub fn shell_code(self) -> i32 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => 128 + signal,
        }
    }
}

/// What a process does, as it does it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProcessEvent {
    /// Bytes it wrote to stdout. A chunk may split a character.
    Stdout(Bytes),
    /// Bytes it wrote to stderr.
    Stderr(Bytes),
    /// Bytes it wrote to its terminal.
    Pty(Bytes),
    /// It ended. Always the last event.
    Exit(ExitStatus),
}

/// A process in a sandbox, as one watcher sees it.
///
/// Events wait in a bounded queue: a watcher that stops reading stops the
/// process at its next write, as a full pipe does. Dropping this neither ends
/// the process nor closes its stdin for other holders.
#[derive(Debug)]
pub struct Process {
    /// Its id inside the sandbox.
    pub pid: Pid,
    /// Its stdin or terminal, unless it was started with an empty stdin.
    pub input: Option<ProcessInput>,
    /// What it does. Ends after [`ProcessEvent::Exit`].
    pub events: mpsc::Receiver<ProcessEvent>,
}

/// The way to a process's stdin or terminal. Cloned handles share it.
#[derive(Clone, Debug)]
pub struct ProcessInput(mpsc::Sender<Feed>);

/// What a wall receives from a [`ProcessInput`].
#[derive(Debug)]
pub enum Feed {
    /// Bytes to write.
    Bytes(Bytes),
    /// No more bytes: close the pipe. A terminal gets its end-of-file character.
    End,
}

impl ProcessInput {
    /// Makes a handle whose feeds arrive at `sender`'s other end; for walls.
    #[must_use]
    pub fn new(sender: mpsc::Sender<Feed>) -> Self {
        Self(sender)
    }

    /// Hands over bytes; waits while the process is not reading.
    ///
    /// # Errors
    ///
    /// [`SandboxError::Ended`] if the process has closed its end or is gone.
    pub async fn write(&self, bytes: Bytes) -> Result<(), SandboxError> {
        self.0.send(Feed::Bytes(bytes)).await.map_err(|_| SandboxError::Ended)
    }

    /// Ends the input: the process reads what was written, then end-of-file.
    pub async fn close(&self) {
        // A process that is gone needs no end-of-file.
        let _ = self.0.send(Feed::End).await;
    }
}

/// A process as [`crate::Sandbox::processes`] lists it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProcessInfo {
    /// Its id inside the sandbox.
    pub pid: Pid,
    /// What it was started with.
    pub argv: Vec<String>,
    /// The name it was given.
    pub tag: Option<String>,
    /// How it ended, once it has.
    pub exit: Option<ExitStatus>,
}
