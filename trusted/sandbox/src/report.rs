//! What is reported of a sandbox and of a run.

use std::fmt;
use std::time::Duration;

use base64::Engine as _;
use serde::{Deserialize, Serialize, Serializer};

use crate::limits::Limit;
use crate::process::ExitStatus;
use crate::spec::{SandboxId, WallName};

/// One control around a sandbox, checked after it was set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Control {
    /// Its name: `seccomp`, `landlock`, `memory`, …
    pub name: String,
    /// Whether it holds.
    #[serde(flatten)]
    pub state: ControlState,
}

/// Whether a control holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", content = "detail", rename_all = "snake_case")]
pub enum ControlState {
    /// It was set and then verified; says how.
    InForce(String),
    /// It holds in part; says which part does not, and why.
    Partial(String),
    /// It does not hold on this host, and the spec did not demand it; says why.
    Absent(String),
}

/// What a sandbox used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Usage {
    /// Processor time of all its processes, user and system together.
    #[serde(rename = "cpu_time_ms", serialize_with = "as_millis")]
    pub cpu_time: Duration,
    /// The most memory it held at once, in bytes.
    #[serde(rename = "peak_memory_bytes")]
    pub peak_memory: u64,
}

/// Wall-clock time of the parts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Times {
    /// From the request to a sandbox that can start a process.
    #[serde(rename = "create_ms", serialize_with = "as_millis")]
    pub create: Duration,
    /// From there to the end of the program.
    #[serde(rename = "run_ms", serialize_with = "as_millis")]
    pub run: Duration,
    /// From there until nothing was left.
    #[serde(rename = "destroy_ms", serialize_with = "as_millis")]
    pub destroy: Duration,
}

impl Times {
    /// All parts together.
    #[must_use]
    pub fn total(&self) -> Duration {
        self.create + self.run + self.destroy
    }
}

/// Milliseconds with microsecond resolution.
fn as_millis<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64((time.as_secs_f64() * 1e6).round() / 1e3)
}

/// What a check after the end of a sandbox found left of it.
///
/// Written as `ok`, or as `left: ` and what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cleanup {
    /// Each thing that should be gone and is not.
    pub left: Vec<String>,
}

impl Cleanup {
    /// Nothing was left.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        self.left.is_empty()
    }
}

impl fmt::Display for Cleanup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_ok() { f.write_str("ok") } else { write!(f, "left: {}", self.left.join("; ")) }
    }
}

impl Serialize for Cleanup {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The end of a sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The limit that ended it, if one did.
    pub limit_hit: Option<Limit>,
    /// Whether output was cut at the output limit.
    pub truncated: bool,
    /// What it used.
    pub usage: Usage,
    /// What was left of it.
    pub cleanup: Cleanup,
}

/// Bytes a program wrote: untrusted, any bytes at all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output(pub Vec<u8>);

impl Output {
    /// As text, invalid UTF-8 replaced by U+FFFD.
    #[must_use]
    pub fn to_text(&self) -> String {
        String::from_utf8_lossy(&self.0).into_owned()
    }

    /// As base64, if the bytes are not UTF-8 and so the text loses something.
    #[must_use]
    pub fn to_base64_if_binary(&self) -> Option<String> {
        std::str::from_utf8(&self.0)
            .is_err()
            .then(|| base64::engine::general_purpose::STANDARD.encode(&self.0))
    }
}

/// All that is known of one run, from [`crate::run`].
///
/// Serialized with `stdout` and `stderr` as text; where one is not UTF-8,
/// `stdout_base64` or `stderr_base64` has the bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct RunResult {
    /// The sandbox it ran in.
    pub id: SandboxId,
    /// How the program ended.
    pub exit: ExitStatus,
    /// Whether the wall-clock limit ended it.
    pub timed_out: bool,
    /// The limit that ended it, if one did.
    pub limit_hit: Option<Limit>,
    /// What it wrote to stdout (or to its terminal).
    pub stdout: Output,
    /// What it wrote to stderr.
    pub stderr: Output,
    /// Whether output was cut at the output limit.
    pub truncated: bool,
    /// The wall it ran behind.
    pub wall: WallName,
    /// The controls around it.
    pub controls: Vec<Control>,
    /// What it used.
    pub usage: Usage,
    /// How long the parts took.
    pub times: Times,
    /// What was left of the sandbox afterwards.
    pub cleanup: Cleanup,
}

impl RunResult {
    /// The process exit code that `casemate run` gives: 124 if the time limit
    /// ended the program, 137 if the memory limit did, else the shell's code.
    #[must_use]
    pub fn process_exit_code(&self) -> i32 {
        match self.limit_hit {
            Some(Limit::WallTime | Limit::CpuTime) => 124,
            Some(Limit::Memory) => 137,
            _ => self.exit.shell_code(),
        }
    }
}

impl Serialize for RunResult {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Wire<'a> {
            id: SandboxId,
            exit_code: Option<i32>,
            signal: Option<i32>,
            timed_out: bool,
            limit_hit: Option<Limit>,
            stdout: String,
            #[serde(skip_serializing_if = "Option::is_none")]
            stdout_base64: Option<String>,
            stderr: String,
            #[serde(skip_serializing_if = "Option::is_none")]
            stderr_base64: Option<String>,
            truncated: bool,
            wall: WallName,
            controls: &'a [Control],
            usage: Usage,
            times: Times,
            cleanup: &'a Cleanup,
        }
        let (exit_code, signal) = match self.exit {
            ExitStatus::Code(code) => (Some(code), None),
            ExitStatus::Signal(signal) => (None, Some(signal)),
        };
        Wire {
            id: self.id,
            exit_code,
            signal,
            timed_out: self.timed_out,
            limit_hit: self.limit_hit,
            stdout: self.stdout.to_text(),
            stdout_base64: self.stdout.to_base64_if_binary(),
            stderr: self.stderr.to_text(),
            stderr_base64: self.stderr.to_base64_if_binary(),
            truncated: self.truncated,
            wall: self.wall,
            controls: &self.controls,
            usage: self.usage,
            times: self.times,
            cleanup: &self.cleanup,
        }
        .serialize(serializer)
    }
}
