//! What callers get.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sandbox::{Collected, Control, ExitStatus, Limit, RunResult, SandboxId, Tree, Usage, WallName};
use serde::Serialize;
use utoipa::ToSchema;

/// The result of one execution.
///
/// The fields of the zeroboot API have its names and types. Where that server
/// reports 0 or -1 only, `exit_code` here is the program's own: 0 to 255, 128 +
/// the signal that ended it, 124 if the time limit did, 137 if the memory limit
/// did. It is -1 only in a batch, for a program that could not be started:
/// `error` and `stderr` say why.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ExecResponse {
    /// What the program wrote to stdout; bytes that are not UTF-8 are replaced
    /// by U+FFFD.
    pub(crate) stdout: String,
    /// What it wrote to stdout, if that is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stdout_base64: Option<String>,
    /// What the program wrote to stderr; bytes that are not UTF-8 are replaced
    /// by U+FFFD.
    pub(crate) stderr: String,
    /// What it wrote to stderr, if that is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stderr_base64: Option<String>,
    #[serde(flatten)]
    pub(crate) outcome: Outcome,
}

/// All of a result but the output: what the `exit` event of a stream holds.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Outcome {
    /// Names the sandbox: a UUID of version 7.
    #[schema(value_type = String, format = "uuid")]
    pub(crate) id: SandboxId,
    /// The program's exit code; 128 + the signal that ended it; 124 after the
    /// time limit, 137 after the memory limit.
    pub(crate) exit_code: i32,
    /// The signal that ended the program.
    pub(crate) signal: Option<i32>,
    /// Whether the time limit ended it.
    pub(crate) timed_out: bool,
    /// The limit that ended it: `wall_time`, `cpu_time`, `memory`, `processes`,
    /// `file_size`, `disk` or `output`.
    #[schema(value_type = Option<String>)]
    pub(crate) limit_hit: Option<Limit>,
    /// Whether output was cut at the output limit.
    pub(crate) truncated: bool,
    /// Time to create the sandbox.
    pub(crate) fork_time_ms: f64,
    /// Time the program ran.
    pub(crate) exec_time_ms: f64,
    /// Time from the sandbox's creation until nothing of it was left.
    pub(crate) total_time_ms: f64,
    /// The wall it ran behind.
    #[schema(value_type = String, example = "jail")]
    pub(crate) wall: WallName,
    /// `ok`, or `left: ` and what was left of the sandbox.
    pub(crate) cleanup: String,
    /// What it used.
    #[schema(value_type = UsageBody)]
    pub(crate) usage: Usage,
    /// The controls around it, each checked after it was set.
    #[schema(value_type = Vec<ControlBody>)]
    pub(crate) controls: Vec<Control>,
    /// The files that were asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub(crate) files: Vec<FileBody>,
    /// In a batch: why this program was not run to its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
}

/// What a sandbox used.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the schema of a type of the sandbox crate")]
pub(crate) struct UsageBody {
    /// Processor time of all its processes.
    cpu_time_ms: f64,
    /// The most memory it held at once.
    peak_memory_bytes: u64,
}

/// One control around a sandbox.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the schema of a type of the sandbox crate")]
pub(crate) struct ControlBody {
    /// Its name.
    #[schema(example = "seccomp")]
    name: String,
    /// `in_force`, `partial` or `absent`.
    state: String,
    /// How it holds, or why not.
    detail: String,
}

/// A file that was asked for.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FileBody {
    /// Where it is in the sandbox.
    pub(crate) path: String,
    /// What it holds, if that is UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) content: Option<String>,
    /// What it holds, if that is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) content_base64: Option<String>,
    /// Why it could not be had.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
}

/// The results of a batch.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BatchResponse {
    /// In the order of the request.
    pub(crate) results: Vec<ExecResponse>,
}

/// A piece of output in a stream: the data of `stdout` and `stderr` events.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OutputEvent {
    /// What the program wrote.
    pub(crate) data: String,
    /// Whether `data` is base64, as what the program wrote is not UTF-8.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub(crate) base64: bool,
}

impl ExecResponse {
    pub(crate) fn new(result: RunResult, files: Vec<Collected>) -> Self {
        Self {
            stdout: result.stdout.to_text(),
            stdout_base64: result.stdout.to_base64_if_binary(),
            stderr: result.stderr.to_text(),
            stderr_base64: result.stderr.to_base64_if_binary(),
            outcome: Outcome::new(result, files),
        }
    }

    /// The place in a batch's results of a program that was not run to its end.
    pub(crate) fn not_run(wall: WallName, error: String) -> Self {
        let outcome = Outcome {
            id: SandboxId::new(),
            exit_code: -1,
            signal: None,
            timed_out: false,
            limit_hit: None,
            truncated: false,
            fork_time_ms: 0.0,
            exec_time_ms: 0.0,
            total_time_ms: 0.0,
            wall,
            cleanup: "ok".into(),
            usage: Usage::default(),
            controls: Vec::new(),
            files: Vec::new(),
            error: Some(error.clone()),
        };
        Self {
            stdout: String::new(),
            stdout_base64: None,
            stderr: error,
            stderr_base64: None,
            outcome,
        }
    }
}

impl Outcome {
    pub(crate) fn new(result: RunResult, files: Vec<Collected>) -> Self {
        let millis = |time: std::time::Duration| (time.as_secs_f64() * 1e5).round() / 1e2;
        Self {
            id: result.id,
            exit_code: result.process_exit_code(),
            signal: match result.exit {
                ExitStatus::Signal(signal) => Some(signal),
                ExitStatus::Code(_) => None,
            },
            timed_out: result.timed_out,
            limit_hit: result.limit_hit,
            truncated: result.truncated,
            fork_time_ms: millis(result.times.create),
            exec_time_ms: millis(result.times.run),
            total_time_ms: millis(result.times.total()),
            wall: result.wall,
            cleanup: result.cleanup.to_string(),
            usage: result.usage,
            controls: result.controls,
            files: files.into_iter().map(FileBody::new).collect(),
            error: None,
        }
    }
}

impl FileBody {
    fn new(file: Collected) -> Self {
        let path = file.path.as_str().to_owned();
        let empty = Self { path, content: None, content_base64: None, error: None };
        match file.contents {
            Ok(Tree::File(bytes)) => match String::from_utf8(bytes.to_vec()) {
                Ok(text) => Self { content: Some(text), ..empty },
                Err(not_text) => {
                    Self { content_base64: Some(STANDARD.encode(not_text.as_bytes())), ..empty }
                }
            },
            Ok(Tree::Directory(_) | Tree::Other(_)) => {
                let error = format!("{} is not a regular file", empty.path);
                Self { error: Some(error), ..empty }
            }
            Err(error) => Self { error: Some(error.to_string()), ..empty },
        }
    }
}
