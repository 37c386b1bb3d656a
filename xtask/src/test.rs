//! `cargo xtask test`: the list of steps, and those that are short.

use crate::artifacts;
use crate::ordinary;
use crate::process::{cargo, run};
use crate::steps::{Context, Outcome, Step};
use crate::{deps, supply_chain, tidy};

/// The test target with the attacks.
const SECURITY: &str = "security";

/// How `cargo xtask test` is to go about it.
#[derive(Debug, clap::Args)]
pub(crate) struct TestArgs {
    /// Go on after a step that failed, and fail at the end
    #[arg(long)]
    pub(crate) keep_going: bool,
}

/// All steps: what is quick to fail first.
pub(crate) fn plan(_: &TestArgs) -> Vec<Step> {
    let step = |name, about, body| Step { name, about, body };
    vec![
        step("deps", "what the tests need of this machine", deps::step as fn(&mut Context) -> _),
        step("fmt", "everything is formatted", fmt_check),
        step("tidy", "the project's own rules", tidy::step),
        step("supply-chain", "licences, sources, known advisories", supply_chain::step),
        step("clippy", "lints of everything, warnings denied", clippy),
        step("build", "the program and all tests", artifacts::step),
        step("unit", "each crate from inside", unit),
        step("doc", "the examples in the documentation", doc),
        step("integration", "each crate, programs and the server from outside", integration),
        step("security", "attacks, as the user that runs this", security),
        step("security-user", "the same attacks, as an ordinary user", security_as_user),
    ]
}

/// Formats the code.
pub(crate) fn fmt(context: &mut Context) -> anyhow::Result<Outcome> {
    run(cargo(&["fmt", "--all"]).current_dir(&context.workspace.root))?;
    Ok(Outcome::passed())
}

/// Says what is not formatted.
pub(crate) fn fmt_check(context: &mut Context) -> anyhow::Result<Outcome> {
    run(cargo(&["fmt", "--all", "--check"]).current_dir(&context.workspace.root))?;
    Ok(Outcome::passed())
}

/// Runs clippy over everything.
pub(crate) fn clippy(context: &mut Context) -> anyhow::Result<Outcome> {
    let args = ["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"];
    run(cargo(&args).current_dir(&context.workspace.root))?;
    Ok(Outcome::passed())
}

fn unit(context: &mut Context) -> anyhow::Result<Outcome> {
    cargo_test(context, &["--lib", "--bins"])
}

fn doc(context: &mut Context) -> anyhow::Result<Outcome> {
    cargo_test(context, &["--doc"])
}

fn integration(context: &mut Context) -> anyhow::Result<Outcome> {
    let names = context.artifacts()?.test_names();
    let names: Vec<&str> = names.into_iter().filter(|name| *name != SECURITY).collect();
    let args: Vec<&str> = names.iter().flat_map(|name| ["--test", name]).collect();
    cargo_test(context, &args)?;
    Ok(Outcome::found(names.join(", ")))
}

fn security(context: &mut Context) -> anyhow::Result<Outcome> {
    cargo_test(context, &["--test", SECURITY])?;
    let root = rustix::process::geteuid().is_root();
    Ok(Outcome::found(if root { "as root" } else { "as an ordinary user" }))
}

fn security_as_user(context: &mut Context) -> anyhow::Result<Outcome> {
    if !rustix::process::geteuid().is_root() {
        return Ok(Outcome::Skipped("this was no root: it has been done".into()));
    }
    let artifacts = context.artifacts()?;
    ordinary::run(artifacts.test(SECURITY)?, &artifacts.casemate)?;
    Ok(Outcome::found(format!("as user {}", ordinary::ID)))
}

/// Runs tests that were built before. Always of the whole workspace: for a part
/// of it, cargo would build dependencies anew, with fewer features.
fn cargo_test(context: &Context, which: &[&str]) -> anyhow::Result<Outcome> {
    let words = ["test", "--workspace", "--locked", "--no-fail-fast"];
    let args = [words.as_slice(), which, &["--", "--quiet"]].concat();
    let mut command = cargo(&args);
    command.current_dir(&context.workspace.root);
    command.env("CASEMATE_BIN", &context.artifacts()?.casemate);
    run(&mut command)?;
    Ok(Outcome::passed())
}
