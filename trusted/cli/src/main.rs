//! The `casemate` program: the command line of Casemate.

#![forbid(unsafe_code)]

mod cli;
mod commands;
mod failure;
mod signals;
mod ui;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    // Started as a wall's helper, this program becomes one here and goes no
    // further. That needs a process with one thread, so nothing may come first.
    walls::helper_main();

    let words: Vec<OsString> = std::env::args_os().collect();
    let cli = match cli::Cli::try_parse_from(&words) {
        Ok(cli) => cli,
        Err(error) => return cli::refuse(&error, &words),
    };
    let failed = cli.command.failure_code();
    match commands::execute(cli.command, &words) {
        Ok(code) => code,
        Err(error) => failure::report(&error, failed),
    }
}
