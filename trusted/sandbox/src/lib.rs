//! The sandbox interface: what every wall offers and what every caller sees.
//!
//! A *wall* ([`Wall`]) makes sandboxes from a [`SandboxSpec`]. A live *sandbox*
//! ([`Sandbox`]) starts processes, moves files, and is destroyed. [`run`] does
//! the common whole: create, run one process, collect, destroy, report.
//!
//! This crate knows no operating system call: walls live in `walls`.

#![forbid(unsafe_code)]

mod error;
mod language;
mod limits;
mod process;
mod report;
mod run;
mod spec;
mod wall;

pub use error::{CreateError, FileError, RunError, SandboxError, StartError, Unavailable};
pub use language::{Language, UnknownLanguage};
pub use limits::{Limit, LimitError, Limits, parse_duration, parse_size};
pub use process::{
    ExitStatus, Feed, Pid, Process, ProcessEvent, ProcessInfo, ProcessInput, ProcessSpec, Stdio,
    TerminalSize,
};
pub use report::{Cleanup, Control, ControlState, Ended, Output, RunResult, Times, Usage};
pub use run::{Collected, Job, RunEvent, Stdin, Tree, run};
pub use spec::{
    Contents, EntryKind, FileEntry, FileToPut, GuestPath, GuestPathError, NetworkPolicy, Root,
    SandboxId, SandboxSpec, WallChoice, WallName, Workspace, WorkspaceAccess,
};
pub use wall::{Sandbox, Wall};
