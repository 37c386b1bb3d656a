//! `cargo xtask bench`: Casemate beside its peers.

use crate::process::{cargo, run};
use crate::steps::Context;

/// What to measure.
#[derive(Debug, clap::Args)]
pub(crate) struct BenchArgs {
    /// Runs of each kind
    #[arg(long, value_name = "NUMBER", default_value_t = 200)]
    runs: u32,
    /// Also the benches of single crates, which take longer
    #[arg(long)]
    all: bool,
}

/// Builds the release program and measures with it.
pub(crate) fn run_all(args: &BenchArgs) -> anyhow::Result<()> {
    let context = Context::new()?;
    let runs = args.runs.to_string();
    for what in ["run", "http"] {
        let words = ["run", "--locked", "--release", "--quiet", "--package", "casemate", "--"];
        let bench = ["bench", what, "--runs", &runs];
        run(cargo(&[words.as_slice(), &bench].concat()).current_dir(&context.workspace.root))?;
    }
    if args.all {
        run(cargo(&["bench", "--workspace", "--locked"]).current_dir(&context.workspace.root))?;
    }
    Ok(())
}
