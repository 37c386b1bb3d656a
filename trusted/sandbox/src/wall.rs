//! The two traits: a wall, and a live sandbox behind one.

use async_trait::async_trait;
use bytes::Bytes;

use crate::error::{CreateError, FileError, SandboxError, StartError, Unavailable};
use crate::limits::Limit;
use crate::process::{Pid, Process, ProcessInfo, ProcessSpec, TerminalSize};
use crate::report::{Cleanup, Control, Ended, Usage};
use crate::spec::{FileEntry, FileToPut, GuestPath, SandboxId, SandboxSpec, WallName};

/// An isolation technology that makes sandboxes.
#[async_trait]
pub trait Wall: Send + Sync {
    /// Its name.
    fn name(&self) -> WallName;

    /// Whether it works on this host.
    ///
    /// # Errors
    ///
    /// [`Unavailable`] says what is missing and what would fix it.
    async fn probe(&self) -> Result<(), Unavailable>;

    /// Makes a sandbox: all controls in force and verified, the spec's files
    /// written, no process of the caller's in it yet.
    ///
    /// # Errors
    ///
    /// [`CreateError`]; nothing is left of the attempt.
    async fn create(&self, spec: &SandboxSpec) -> Result<Box<dyn Sandbox>, CreateError>;

    /// Destroys every sandbox that is left and gives back what the wall itself
    /// holds. The wall makes no sandbox afterwards.
    async fn shutdown(&self) -> Cleanup;
}

/// A live sandbox. Dropping it destroys it; [`Sandbox::destroy`] also waits and
/// reports.
///
/// Operations that a wall cannot do (a later trait method's default, for one)
/// answer [`SandboxError::Unsupported`].
#[async_trait]
pub trait Sandbox: Send + Sync {
    /// Its id.
    fn id(&self) -> SandboxId;

    /// The wall around it.
    fn wall(&self) -> WallName;

    /// The controls around it, each verified.
    fn controls(&self) -> &[Control];

    /// Starts a process. Any number may run at once.
    ///
    /// # Errors
    ///
    /// [`StartError`] if it could not be executed; the sandbox lives on.
    async fn start(&self, process: ProcessSpec) -> Result<Process, StartError>;

    /// Lists the processes that were started through this interface and have
    /// not ended, or ended a short while ago.
    async fn processes(&self) -> Vec<ProcessInfo>;

    /// Watches a process that was started earlier, from now on. Of an ended
    /// one comes its end only.
    ///
    /// # Errors
    ///
    /// [`SandboxError::NoProcess`] if there is none with this id.
    async fn attach(&self, pid: Pid) -> Result<Process, SandboxError>;

    /// Sends a signal to a process.
    ///
    /// # Errors
    ///
    /// [`SandboxError::NoProcess`] if it is not one of [`Sandbox::processes`]
    /// or has ended.
    async fn signal(&self, pid: Pid, signal: i32) -> Result<(), SandboxError>;

    /// Changes the size of a process's terminal.
    ///
    /// # Errors
    ///
    /// [`SandboxError::NoProcess`] if there is no such process with a terminal.
    async fn resize(&self, pid: Pid, size: TerminalSize) -> Result<(), SandboxError>;

    /// Reads a regular file of at most `max` bytes.
    ///
    /// # Errors
    ///
    /// [`FileError`], also if the file is larger or no regular file.
    async fn read_file(&self, path: &GuestPath, max: u64) -> Result<Bytes, FileError>;

    /// Writes a file, a directory or a symbolic link, making parent
    /// directories. An existing file is replaced.
    ///
    /// # Errors
    ///
    /// [`FileError`]; a file that was half written is left.
    async fn put(&self, file: &FileToPut) -> Result<(), FileError>;

    /// Lists a directory, sorted by name.
    ///
    /// # Errors
    ///
    /// [`FileError`], also if the directory has more than 100,000 entries.
    async fn list_dir(&self, path: &GuestPath) -> Result<Vec<FileEntry>, FileError>;

    /// Describes what is at `path`, without following a last symbolic link.
    ///
    /// # Errors
    ///
    /// [`FileError`].
    async fn stat(&self, path: &GuestPath) -> Result<FileEntry, FileError>;

    /// Removes a file, or a directory with all that is in it. What is not
    /// there is no error.
    ///
    /// # Errors
    ///
    /// [`FileError`].
    async fn remove(&self, path: &GuestPath) -> Result<(), FileError>;

    /// Renames, replacing a file that is in the way.
    ///
    /// # Errors
    ///
    /// [`FileError`].
    async fn rename(&self, from: &GuestPath, to: &GuestPath) -> Result<(), FileError>;

    /// Stops all processes until [`Sandbox::resume`].
    ///
    /// # Errors
    ///
    /// [`SandboxError`] if the wall cannot, or the sandbox has ended.
    async fn pause(&self) -> Result<(), SandboxError>;

    /// Lets all processes go on.
    ///
    /// # Errors
    ///
    /// [`SandboxError`] if the wall cannot, or the sandbox has ended.
    async fn resume(&self) -> Result<(), SandboxError>;

    /// What it has used so far.
    async fn usage(&self) -> Usage;

    /// The limit that ended it, once one has.
    fn limit_hit(&self) -> Option<Limit>;

    /// Ends every process, removes everything, checks that nothing is left.
    async fn destroy(self: Box<Self>) -> Ended;
}
