//! What can go wrong at each boundary of the interface.

use crate::limits::LimitError;
use crate::spec::{GuestPath, GuestPathError, WallName};

/// Why a wall does not work on this host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}{}", fix.as_ref().map(|fix| format!("; to fix it: {fix}")).unwrap_or_default())]
pub struct Unavailable {
    /// What is missing.
    pub reason: String,
    /// The command or setting that would provide it, where one would.
    pub fix: Option<String>,
}

/// Why a sandbox was not created. Nothing is left of the attempt.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CreateError {
    /// The wall does not work on this host.
    #[error("the {wall} wall does not work here: {unavailable}")]
    Unavailable {
        /// Which wall.
        wall: WallName,
        /// Why not.
        unavailable: Unavailable,
    },
    /// The wall has not been written.
    #[error("the {0} wall is not built yet; `jail` is (--wall jail or auto)")]
    NotBuilt(WallName),
    /// A limit cannot be enforced as given.
    #[error("limit: {0}")]
    Limit(#[from] LimitError),
    /// The spec cannot be met; `what` names the part.
    #[error("{what}: {reason}")]
    Spec {
        /// Which part of the spec.
        what: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A control could not be put in force, so nothing was started.
    #[error("could not put `{control}` in force: {reason}")]
    Control {
        /// Which control, by its name in results.
        control: String,
        /// What the kernel said.
        reason: String,
    },
    /// The wall itself failed.
    #[error("the wall failed while creating a sandbox: {0}")]
    Wall(String),
}

/// Why a process did not start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// No such program in the sandbox.
    #[error("`{program}` was not found in the sandbox")]
    NotFound {
        /// The program asked for.
        program: String,
    },
    /// The program could not be executed.
    #[error("`{program}` could not be executed: {reason}")]
    Exec {
        /// The program asked for.
        program: String,
        /// What the kernel said.
        reason: String,
    },
    /// The working directory could not be entered.
    #[error("the working directory {path} cannot be used: {reason}")]
    Cwd {
        /// The directory asked for.
        path: GuestPath,
        /// What the kernel said.
        reason: String,
    },
    /// An argument, a variable's name or value that no process can be given.
    #[error("{what} cannot be passed to a process: {reason}")]
    Argument {
        /// Which argument or variable.
        what: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The sandbox could not make another process.
    #[error("no further process can be started: {0}")]
    Resources(String),
    /// The sandbox has ended.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
}

/// Why a request to a live sandbox failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SandboxError {
    /// It has ended, by a limit or because it was destroyed.
    #[error("the sandbox has ended")]
    Ended,
    /// No such process in it.
    #[error("no process {0} in this sandbox")]
    NoProcess(u32),
    /// This wall cannot do that.
    #[error("the {wall} wall cannot {what}")]
    Unsupported {
        /// Which wall.
        wall: WallName,
        /// What was asked.
        what: &'static str,
    },
    /// The kernel refused.
    #[error("{what}: {reason}")]
    Failed {
        /// What was tried.
        what: &'static str,
        /// What the kernel said.
        reason: String,
    },
}

/// Why a file operation in a sandbox failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// Nothing there.
    #[error("{0} does not exist in the sandbox")]
    NotFound(GuestPath),
    /// The operation wants another kind of file.
    #[error("{path} is not a {wanted}")]
    WrongKind {
        /// Which path.
        path: GuestPath,
        /// `regular file` or `directory`.
        wanted: &'static str,
    },
    /// Already there.
    #[error("{0} already exists in the sandbox")]
    Exists(GuestPath),
    /// Larger than the caller takes.
    #[error("{path} holds more than {max} bytes")]
    TooLarge {
        /// Which path.
        path: GuestPath,
        /// What the caller takes.
        max: u64,
    },
    /// A directory has more below it than is collected.
    #[error("{0} has more than 10,000 entries, or is more than 64 directories deep")]
    TooManyEntries(GuestPath),
    /// The disk limit of the sandbox is reached.
    #[error("{0} does not fit: the sandbox's disk limit is reached")]
    DiskFull(GuestPath),
    /// The kernel refused.
    #[error("{path}: {reason}")]
    Refused {
        /// Which path.
        path: GuestPath,
        /// What the kernel said.
        reason: String,
    },
    /// A path that no sandbox has.
    #[error(transparent)]
    Path(#[from] GuestPathError),
    /// The sandbox has ended.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
}

/// Why a run gave no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The sandbox was not created.
    #[error(transparent)]
    Create(#[from] CreateError),
    /// The program did not start; the sandbox is gone.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A file could not be put into the sandbox; the sandbox is gone.
    #[error(transparent)]
    File(#[from] FileError),
}
