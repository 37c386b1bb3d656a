//! `casemate man`: the man pages.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::CommandFactory as _;

use crate::cli::Cli;
use crate::ui;

const EXAMPLES: &str = "\
Examples:
  casemate man | man -l -
  casemate man --dir ~/.local/share/man/man1";

/// Prints the main man page, or writes the pages of all commands.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ManArgs {
    /// Write a page for each command into this directory
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub(crate) fn execute(args: &ManArgs) -> anyhow::Result<ExitCode> {
    let command = Cli::command().disable_help_subcommand(true);
    match &args.dir {
        Some(dir) => {
            std::fs::create_dir_all(dir)
                .and_then(|()| clap_mangen::generate_to(command, dir))
                .with_context(|| format!("the pages cannot be written to {}", dir.display()))?;
        }
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(command).render(&mut page)?;
            ui::print(&String::from_utf8(page)?)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
