//! The `jail` wall's messages: supervisor ↔ launcher, and supervisor ↔ init.

use serde::{Deserialize, Serialize};

/// From the supervisor to the launcher.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ToLauncher {
    /// Make a sandbox. Comes with one descriptor: init's end of its connection
    /// to the supervisor.
    Create(Box<Plan>),
    /// End a sandbox and remove all that it had.
    Destroy {
        /// Its number from [`Plan::number`].
        number: u64,
    },
}

/// From the launcher to the supervisor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum FromLauncher {
    /// The launcher is ready; sent once.
    Hello {
        /// How limits are enforced, for `controls`.
        accounting: Accounting,
        /// What an earlier Casemate had left and was removed now.
        swept: Vec<String>,
    },
    /// Init runs. Comes with one descriptor: a pidfd of init.
    Created {
        /// Which sandbox.
        number: u64,
        /// Files to read counters from.
        counters: Counters,
    },
    /// Nothing was made.
    Failed {
        /// Which sandbox.
        number: u64,
        /// What was being done.
        step: String,
        /// What the kernel said.
        reason: String,
    },
    /// All is removed.
    Destroyed {
        /// Which sandbox.
        number: u64,
        /// What could not be removed.
        left: Vec<String>,
        /// What the sandbox used.
        used: Used,
    },
}

/// How memory, CPU and process limits are enforced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Accounting {
    /// cgroup v2.
    CgroupV2 {
        /// The launcher's.
        directory: String,
        /// Whether it limits CPU too. If not, a watcher does.
        cpu: bool,
    },
    /// cgroup v1, with these controllers.
    CgroupV1(Vec<String>),
    /// rlimits and a watcher; says why no cgroup.
    Rlimits(String),
}

/// Files of a sandbox's cgroup. Absent without cgroups.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Processor time used: `cpu.stat` (v2) or `cpuacct.usage` (v1).
    pub cpu: Option<String>,
    /// `memory.events` (v2) or `memory.oom_control` (v1).
    pub oom: Option<String>,
    /// `memory.peak` (v2) or `memory.max_usage_in_bytes` (v1).
    pub peak: Option<String>,
    /// `pids.events`.
    pub pids: Option<String>,
}

/// What a sandbox used, read at its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Used {
    /// Processor time in microseconds.
    pub cpu_us: u64,
    /// Most memory at once in bytes; 0 if unknown.
    pub peak: u64,
    /// Processes that the kernel killed for want of memory.
    pub oom_kills: u64,
    /// Times that a process could not be made because of the limit.
    pub pids_refused: u64,
}

/// What the launcher is to make.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Names the sandbox between supervisor and launcher.
    pub number: u64,
    /// The file system it sees.
    pub root: RootPlan,
    /// Size of everything writable together, in bytes.
    pub disk: u64,
    /// Memory limit in bytes.
    pub memory: u64,
    /// Thousandths of a CPU.
    pub cpu_milli: u64,
    /// Processes and threads at once.
    pub processes: u64,
    /// Largest file in bytes.
    pub file_size: u64,
    /// Descriptors of one process.
    pub open_files: u64,
    /// Processor time in seconds, rounded up.
    pub cpu_seconds: Option<u64>,
    /// Whether programs may make user namespaces.
    pub user_namespaces: bool,
}

/// The file system of a sandbox.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RootPlan {
    /// The directory whose entries make the root; `None` is the host's `/usr`
    /// with its links and what programs need of `/etc`.
    pub directory: Option<String>,
    /// A host folder to show.
    pub workspace: Option<WorkspacePlan>,
}

/// A host folder to show.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkspacePlan {
    /// Where it is on the host.
    pub host: String,
    /// Where it appears, absolute.
    pub guest: String,
    /// Whether writes go to a private copy rather than fail.
    pub copy_on_write: bool,
}

/// From the supervisor to a sandbox's init.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ToInit {
    /// Start a program. Comes with descriptors for 0, 1 and 2, or with none if
    /// `pty` is set. Answered by [`FromInit::Started`] or [`FromInit::NotStarted`].
    Start {
        /// Names the answer.
        seq: u32,
        /// Program and arguments.
        argv: Vec<String>,
        /// `NAME=value` each.
        env: Vec<String>,
        /// Working directory, absolute.
        cwd: String,
        /// Rows and columns of a terminal to make.
        pty: Option<(u16, u16)>,
    },
    /// Send a signal to a started program.
    Signal {
        /// Names the answer.
        seq: u32,
        /// Which program.
        pid: u32,
        /// Which signal.
        signal: i32,
    },
    /// Open a regular file for reading. Answered with one descriptor.
    OpenRead {
        /// Names the answer.
        seq: u32,
        /// Absolute path.
        path: String,
    },
    /// Make a regular file, its parents too, and open it for writing. Answered
    /// with one descriptor.
    OpenWrite {
        /// Names the answer.
        seq: u32,
        /// Absolute path.
        path: String,
        /// Permission bits.
        mode: u32,
    },
    /// Make a directory and its parents.
    MakeDir {
        /// Names the answer.
        seq: u32,
        /// Absolute path.
        path: String,
        /// Permission bits.
        mode: u32,
    },
    /// Make a symbolic link.
    Symlink {
        /// Names the answer.
        seq: u32,
        /// Absolute path.
        path: String,
        /// Where it points.
        target: String,
    },
    /// List a directory.
    List {
        /// Names the answer.
        seq: u32,
        /// Absolute path.
        path: String,
    },
    /// Describe one path.
    Stat {
        /// Names the answer.
        seq: u32,
        /// Absolute path.
        path: String,
    },
    /// Remove a file or a tree.
    Remove {
        /// Names the answer.
        seq: u32,
        /// Absolute path.
        path: String,
    },
    /// Rename.
    Rename {
        /// Names the answer.
        seq: u32,
        /// Absolute path.
        from: String,
        /// Absolute path.
        to: String,
    },
    /// Stop every program.
    Pause {
        /// Names the answer.
        seq: u32,
    },
    /// Let every program go on.
    Resume {
        /// Names the answer.
        seq: u32,
    },
}

/// From a sandbox's init to the supervisor. Init lives inside: nothing here is
/// believed beyond its own sandbox.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum FromInit {
    /// All controls are in force and verified. Comes with two descriptors: the
    /// sandbox's `/proc`, and a directory on its writable file system.
    Ready {
        /// What is in force.
        controls: Vec<ControlNote>,
    },
    /// A control could not be put in force; init exits.
    Failed {
        /// Which control.
        control: String,
        /// What the kernel said.
        reason: String,
    },
    /// A program runs. Comes with the terminal's master if one was asked for.
    Started {
        /// Which request.
        seq: u32,
        /// Its id inside the sandbox.
        pid: u32,
    },
    /// A program did not start.
    NotStarted {
        /// Which request.
        seq: u32,
        /// Where it failed.
        step: StartStep,
        /// The errno.
        errno: i32,
    },
    /// A started program ended.
    Exited {
        /// Which.
        pid: u32,
        /// Its wait status, as `wait4` gives it.
        status: i32,
        /// Processor time of all ended programs so far, in microseconds.
        cpu_us: u64,
        /// Most memory that one of them held, in bytes.
        peak: u64,
    },
    /// A request was done.
    Done {
        /// Which request.
        seq: u32,
    },
    /// What a directory holds, or what is at a path (one entry).
    Entries {
        /// Which request.
        seq: u32,
        /// The entries.
        entries: Vec<Entry>,
    },
    /// A request failed.
    Refused {
        /// Which request.
        seq: u32,
        /// The errno, or 0 with `what` only.
        errno: i32,
        /// What was wrong, where no errno says it.
        what: String,
    },
}

/// Where the start of a program failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StartStep {
    /// Making the process or its terminal.
    Process,
    /// Entering the working directory.
    Cwd,
    /// Executing the program.
    Exec,
}

/// A control as init reports it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlNote {
    /// Its name.
    pub name: String,
    /// How far it holds.
    pub held: Held,
    /// How it was verified, or why it does not hold.
    pub detail: String,
}

/// How far a control holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Held {
    /// Wholly.
    Wholly,
    /// In part.
    Partly,
    /// Not.
    Not,
}

/// One entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its name: any bytes but `/` and NUL.
    pub name: Vec<u8>,
    /// `st_mode`, with the type.
    pub mode: u32,
    /// Size in bytes.
    pub size: u64,
    /// Modification time in seconds.
    pub modified: i64,
    /// Where a symbolic link points.
    pub target: Option<Vec<u8>>,
}
