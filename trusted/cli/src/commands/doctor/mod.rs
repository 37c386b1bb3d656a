//! `casemate doctor`: what works on this host, and how to make the rest work.

mod host;
mod tools;
mod walls;

use std::process::ExitCode;

use serde::Serialize;

use crate::failure::FAILED;
use crate::ui::{self, Colour, Paint};

const AFTER: &str = "\
Exit code: 0 if at least one wall works here, else 1.

Commands that fix something are for Debian and Ubuntu, and want root. A sysctl
lasts until the next boot; a line in a file of /etc/sysctl.d makes it stay.";

/// Says what works on this machine, and how to make the rest work.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER)]
pub(crate) struct DoctorArgs {
    /// Print the facts as JSON
    #[arg(long)]
    json: bool,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Fact {
    /// Its group: `walls`, `host` or `tools`.
    group: &'static str,
    name: String,
    state: State,
    /// What was found, or why it does not work.
    detail: String,
    /// The command that would make it work.
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
}

/// How well something works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum State {
    Ok,
    /// In part, or with a drawback.
    Warn,
    No,
}

impl Fact {
    fn new(
        group: &'static str,
        name: impl Into<String>,
        state: State,
        detail: impl Into<String>,
    ) -> Self {
        Self { group, name: name.into(), state, detail: detail.into(), fix: None }
    }

    #[must_use]
    fn fix(mut self, fix: Option<impl Into<String>>) -> Self {
        self.fix = fix.map(Into::into);
        self
    }
}

pub(crate) fn execute(args: &DoctorArgs) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut facts = runtime.block_on(walls::facts());
    let works = facts.iter().any(|fact| fact.state != State::No);
    facts.extend(host::facts());
    facts.extend(tools::facts());

    if args.json {
        #[derive(Serialize)]
        struct Report<'a> {
            works: bool,
            facts: &'a [Fact],
        }
        ui::print_json(&Report { works, facts: &facts })?;
    } else {
        ui::print(&render(&facts, Paint::stdout(), ui::unicode()))?;
    }
    Ok(if works { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

/// One line a fact, aligned, and one below it for what would fix it.
fn render(facts: &[Fact], paint: Paint, unicode: bool) -> String {
    let width = facts.iter().map(|fact| fact.name.chars().count()).max().unwrap_or_default();
    let mut text = String::new();
    let mut group = "";
    for fact in facts {
        if fact.group != group {
            group = fact.group;
            text += &format!("{}\n", paint.paint(Colour::Bold, group));
        }
        let (mark, plain, colour) = match fact.state {
            State::Ok => ("✓", "ok  ", Colour::Green),
            State::Warn => ("!", "warn", Colour::Yellow),
            State::No => ("✗", "no  ", Colour::Red),
        };
        let mark = if unicode { mark } else { plain };
        let indent = mark.chars().count();
        let (mark, detail) = (paint.paint(colour, mark), ui::visible(&fact.detail));
        text += &format!("  {mark} {:width$}  {detail}\n", fact.name);
        if let Some(fix) = &fact.fix {
            let label = paint.paint(Colour::Dim, "fix:");
            text += &format!("{:indent$}     {:width$}{label} {}\n", "", "", ui::visible(fix));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_aligned() {
        let facts = [
            Fact::new("walls", "jail", State::Ok, "works"),
            Fact::new("host", "user namespaces", State::No, "off").fix(Some("sysctl -w x=1")),
        ];
        let plain = Paint::of(&std::fs::File::open("/dev/null").unwrap());
        assert_eq!(
            render(&facts, plain, true),
            "walls\n  ✓ jail             works\nhost\n  ✗ user namespaces  off\n\
             \x20                    fix: sysctl -w x=1\n"
        );
        assert!(render(&facts, plain, false).is_ascii());
    }
}
