//! The commands, one file or folder each.

pub(crate) mod bench;
pub(crate) mod completions;
pub(crate) mod doctor;
pub(crate) mod keys;
pub(crate) mod man;
pub(crate) mod run;
pub(crate) mod serve;
mod values;

use std::ffi::OsString;
use std::process::ExitCode;

use crate::cli::Command;

/// Does what `command`, parsed from `words`, says.
///
/// # Errors
///
/// What went wrong; nothing has been told yet.
pub(crate) fn execute(command: Command, words: &[OsString]) -> anyhow::Result<ExitCode> {
    match command {
        Command::Run(args) => run::execute(*args, words),
        Command::Doctor(args) => doctor::execute(&args),
        Command::Serve(args) => serve::execute(*args),
        Command::Keys(args) => keys::execute(args),
        Command::Bench(args) => bench::execute(&args),
        Command::Completions(args) => completions::execute(&args),
        Command::Man(args) => man::execute(&args),
    }
}
