//! What callers ask for.

use std::collections::BTreeMap;

use serde::Deserialize;
use utoipa::ToSchema;

use super::bounded;
use crate::units::{Size, Time};

/// The most executions in one batch, whatever the settings say.
pub(crate) const MAX_EXECUTIONS: usize = 4096;

/// The most files that one request may put.
const MAX_FILES: usize = 1024;

/// The most files that one request may get back.
const MAX_GET: usize = 16;

/// The most arguments of one program.
const MAX_ARGUMENTS: usize = 4096;

/// A program to run in a fresh sandbox.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExecRequest {
    /// The program's text. Needed unless there is `argv`.
    #[schema(example = "print(1+1)")]
    pub(crate) code: Option<String>,
    /// `python` (the default), `node`, `javascript` or `bash`.
    #[schema(example = "python")]
    pub(crate) language: Option<String>,
    /// How long the program may run. Clamped to the server's maximum. Default 10.
    #[schema(exclusive_minimum = 0)]
    pub(crate) timeout_seconds: Option<f64>,
    /// What the sandbox may use.
    #[serde(default, deserialize_with = "bounded::object_or_null")]
    pub(crate) limits: Option<LimitsRequest>,
    /// Files to write before the program starts.
    #[serde(default, deserialize_with = "bounded::objects::<_, _, MAX_FILES>")]
    pub(crate) files: Vec<FileRequest>,
    /// Variables for the program.
    #[serde(default)]
    pub(crate) env: BTreeMap<String, String>,
    /// What the program reads from its stdin, as text.
    pub(crate) stdin: Option<String>,
    /// What the program reads from its stdin, as base64.
    pub(crate) stdin_base64: Option<String>,
    /// With `code`: arguments for the program. Without: the program to run, and
    /// its arguments.
    #[serde(default, deserialize_with = "bounded::list_or_null::<_, _, MAX_ARGUMENTS>")]
    pub(crate) argv: Option<Vec<String>>,
    /// `auto` (the default) or `jail`.
    pub(crate) wall: Option<String>,
    /// Files to give back after the program has ended. Relative paths start
    /// from the home directory.
    #[serde(default, deserialize_with = "bounded::list::<_, _, MAX_GET>")]
    pub(crate) get: Vec<String>,
}

/// Limits of a sandbox. What is not named is at the server's default.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LimitsRequest {
    /// Memory of all processes and of files written. Default 128 MiB.
    pub(crate) memory: Option<Size>,
    /// Share of processor time; 1.0 is one whole CPU. Default 0.5.
    pub(crate) cpus: Option<f64>,
    /// Processes and threads at once. Default 64.
    pub(crate) processes: Option<u32>,
    /// Bytes of stdout and stderr together. Default 64 KiB.
    pub(crate) output: Option<Size>,
    /// All files written. Default 64 MiB.
    pub(crate) disk: Option<Size>,
    /// Processor time of all processes together. Default: no bound of its own.
    pub(crate) cpu_time: Option<Time>,
    /// Open descriptors of one process. Default 1024.
    pub(crate) open_files: Option<u64>,
    /// Largest single file. Default: as large as `disk`.
    pub(crate) file_size: Option<Size>,
}

/// A file to write into the sandbox.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileRequest {
    /// Where. A relative path starts from the home directory; missing parent
    /// directories are made.
    #[schema(example = "data/input.csv")]
    pub(crate) path: String,
    /// What it holds, as text.
    pub(crate) content: Option<String>,
    /// What it holds, as base64.
    pub(crate) content_base64: Option<String>,
    /// Permission bits in octal. Default `644`.
    #[schema(example = "755")]
    pub(crate) mode: Option<String>,
}

/// Programs to run side by side, each in a sandbox of its own.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BatchRequest {
    /// The programs.
    #[serde(deserialize_with = "bounded::objects::<_, _, MAX_EXECUTIONS>")]
    pub(crate) executions: Vec<ExecRequest>,
}
