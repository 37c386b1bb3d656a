//! `casemate bench`: Casemate beside its peers, measured in one go.
//!
//! A ratio says something only if both sides were measured under the same
//! conditions. So all ways of doing one thing take turns, one run each a round.

mod http;
mod machine;
mod report;
mod run;

use std::process::ExitCode;

use report::Report;

use crate::failure::Failure;
use crate::ui;

const AFTER: &str = "\
Examples:
  casemate bench run
  casemate bench run --runs 1000 --json > run.json
  casemate bench http";

/// Measures Casemate beside its peers on this machine.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    what: What,

    /// Runs of each kind
    #[arg(long, value_name = "NUMBER", default_value_t = 200, global = true,
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    runs: u32,

    /// Print the figures as JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Clone, Copy, Debug, clap::Subcommand)]
enum What {
    /// Create, run and destroy a sandbox, beside bubblewrap and no sandbox at all
    Run,
    /// POST /v1/exec on one connection, beside no sandbox at all
    Http,
}

pub(crate) fn execute(args: &BenchArgs) -> anyhow::Result<ExitCode> {
    // As the server has it.
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let report = runtime.block_on(async {
        // `run` tells what a sandbox costs, `http` what a server's client sees.
        let warm = match args.what {
            What::Run => 0,
            What::Http => server::ServerConfig::default().warm,
        };
        let helper = walls::Helper::this_program();
        let wall = walls::open_warm(sandbox::WallChoice::Auto, &helper, warm)
            .await
            .map_err(Failure::from)?;
        let report = match args.what {
            What::Run => run::measure(&wall, args.runs).await,
            What::Http => http::measure(&wall, args.runs).await,
        };
        wall.shutdown().await;
        report
    })?;
    print(&report, args.json)?;
    Ok(ExitCode::SUCCESS)
}

fn print(report: &Report, json: bool) -> anyhow::Result<()> {
    if json { ui::print_json(report) } else { ui::print(&report.to_string()) }
}
