//! The one definition of the command line: parsing, help, completions and man
//! pages all come from it.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::commands::{bench, completions, doctor, keys, man, run, serve};
use crate::failure;

const EXAMPLES: &str = "\
Examples:
  casemate run -c 'print(1+1)'           a line of Python
  casemate run --memory 1G script.py     a program in a file
  casemate run -- ls -la /               any command
  casemate serve                         the same over HTTP
  casemate doctor                        what works on this machine";

/// Runs code that nobody should trust where it can hurt nothing.
#[derive(Debug, Parser)]
#[command(
    name = "casemate",
    version,
    after_help = EXAMPLES,
    arg_required_else_help = true,
    max_term_width = 100
)]
pub(crate) struct Cli {
    /// What to do
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What Casemate can do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Runs a program in a fresh sandbox
    Run(Box<run::RunArgs>),
    /// Says what works on this machine, and how to make the rest work
    Doctor(doctor::DoctorArgs),
    /// Serves POST /v1/exec and what belongs to it over HTTP
    Serve(Box<serve::ServeArgs>),
    /// Makes, lists and revokes the server's API keys
    Keys(keys::KeysArgs),
    /// Measures Casemate beside its peers on this machine
    Bench(bench::BenchArgs),
    /// Prints a shell's completions of this command line
    Completions(completions::CompletionsArgs),
    /// Prints or writes the man pages
    Man(man::ManArgs),
}

impl Command {
    /// The exit code when the command itself fails.
    pub(crate) fn failure_code(&self) -> u8 {
        match self {
            Self::Run(_) => failure::RUN_FAILED,
            _ => failure::FAILED,
        }
    }
}

/// Shows the help that was asked for, or says what is wrong with the words.
///
/// The exit code of a usage error is 2, as everywhere. `casemate run` gives the
/// code of the program it ran, which may be 2 as well, so its usage errors have
/// the code of its other failures.
pub(crate) fn refuse(error: &clap::Error, words: &[OsString]) -> ExitCode {
    // A reader that went away has nothing to be told.
    let _ = error.print();
    let is_run = words.get(1).is_some_and(|word| word == "run");
    match error.exit_code() {
        0 => ExitCode::SUCCESS,
        _ if is_run => ExitCode::from(failure::RUN_FAILED),
        _ => ExitCode::from(failure::USAGE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }
}
