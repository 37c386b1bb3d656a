//! The project's chores: `cargo xtask test` does all that a change must pass.

#![forbid(unsafe_code)]
// A tool for the terminal: printing is its work.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod artifacts;
mod bench;
mod deps;
mod ordinary;
mod process;
mod steps;
mod supply_chain;
mod test;
mod tidy;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use steps::{Context, Outcome};

/// The project's chores.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Sets this machine up for the tests, then runs every check and every test
    Test(test::TestArgs),
    /// Finds what the tests need; as root on Debian or Ubuntu, installs it
    Deps,
    /// Formats the code, or with --check says what is not formatted
    Fmt {
        /// Change nothing; fail if something is not formatted
        #[arg(long)]
        check: bool,
    },
    /// Runs clippy over everything, with warnings denied
    Clippy,
    /// Checks the project's own rules: tiers, unsafe code, sizes, links
    Tidy,
    /// Checks licences, sources and known advisories of all dependencies, offline
    SupplyChain,
    /// Measures Casemate beside its peers on this machine
    Bench(bench::BenchArgs),
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> anyhow::Result<bool> {
    let one = |body: fn(&mut Context) -> anyhow::Result<Outcome>| {
        let outcome = body(&mut Context::new()?)?;
        print!("{}", outcome.notes());
        Ok(true)
    };
    match command {
        Command::Test(args) => steps::run(test::plan(&args), args.keep_going),
        Command::Deps => one(deps::step),
        Command::Fmt { check: true } => one(test::fmt_check),
        Command::Fmt { check: false } => one(test::fmt),
        Command::Clippy => one(test::clippy),
        Command::Tidy => one(tidy::step),
        Command::SupplyChain => one(supply_chain::step),
        Command::Bench(args) => bench::run_all(&args).map(|()| true),
    }
}
