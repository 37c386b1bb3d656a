//! `casemate completions`: what shells complete.

use std::process::ExitCode;

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::cli::Cli;
use crate::ui;

const EXAMPLES: &str = "\
Examples:
  casemate completions bash > ~/.local/share/bash-completion/completions/casemate
  casemate completions zsh > ~/.zfunc/_casemate     (a directory of your $fpath)
  casemate completions fish > ~/.config/fish/completions/casemate.fish";

/// Prints a shell's completions of this command line.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn execute(args: &CompletionsArgs) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    let mut command = Cli::command().disable_help_subcommand(true);
    clap_complete::generate(args.shell, &mut command, "casemate", &mut script);
    ui::print(&String::from_utf8(script)?)?;
    Ok(ExitCode::SUCCESS)
}
