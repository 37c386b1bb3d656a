//! Steps of a long check: each with a headline and its time, all with a summary.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use crate::artifacts::Artifacts;
use crate::workspace::Workspace;

/// One step.
pub(crate) struct Step {
    /// Its name.
    pub(crate) name: &'static str,
    /// What it does, in a few words.
    pub(crate) about: &'static str,
    /// Does it. An error is the step's failure.
    pub(crate) body: fn(&mut Context) -> anyhow::Result<Outcome>,
}

/// How a step that did not fail ended.
pub(crate) enum Outcome {
    /// Well. The warnings go into the summary.
    Passed {
        /// What was found, in one line.
        found: String,
        /// What should be looked at.
        warnings: Vec<String>,
    },
    /// It could not be done here, and need not be.
    Skipped(String),
}

impl Outcome {
    /// It went well and there is nothing to say.
    pub(crate) fn passed() -> Self {
        Self::found("")
    }

    /// It went well; says what was seen.
    pub(crate) fn found(found: impl Into<String>) -> Self {
        Self::Passed { found: found.into(), warnings: Vec::new() }
    }

    /// What there is to say, in lines.
    pub(crate) fn notes(&self) -> String {
        let mut text = String::new();
        let (said, warnings) = match self {
            Self::Passed { found, warnings } => (found, warnings.as_slice()),
            Self::Skipped(why) => (why, [].as_slice()),
        };
        if !said.is_empty() {
            let _ = writeln!(text, "{said}");
        }
        for warning in warnings {
            let _ = writeln!(text, "warning: {warning}");
        }
        text
    }
}

/// What steps share.
pub(crate) struct Context {
    /// The project.
    pub(crate) workspace: Workspace,
    artifacts: Option<Artifacts>,
}

impl Context {
    /// For a run that has not begun.
    pub(crate) fn new() -> anyhow::Result<Self> {
        Ok(Self { workspace: Workspace::find()?, artifacts: None })
    }

    /// Tells later steps what was built.
    pub(crate) fn set_artifacts(&mut self, artifacts: Artifacts) {
        self.artifacts = Some(artifacts);
    }

    /// What was built.
    ///
    /// # Errors
    ///
    /// If nothing was.
    pub(crate) fn artifacts(&self) -> anyhow::Result<&Artifacts> {
        self.artifacts.as_ref().ok_or_else(|| anyhow::anyhow!("nothing was built to test"))
    }
}

/// A step that was tried, for the summary.
struct Done {
    name: &'static str,
    time: Duration,
    result: anyhow::Result<Outcome>,
}

/// Runs steps in order, up to the first that fails unless `keep_going`; prints
/// a summary; says whether all went well.
pub(crate) fn run(steps: Vec<Step>, keep_going: bool) -> anyhow::Result<bool> {
    run_in(Context::new()?, steps, keep_going)
}

fn run_in(mut context: Context, steps: Vec<Step>, keep_going: bool) -> anyhow::Result<bool> {
    let begun = Instant::now();
    let count = steps.len();
    let mut done: Vec<Done> = Vec::new();
    let mut untried = Vec::new();
    for (index, step) in steps.into_iter().enumerate() {
        if !keep_going && done.iter().any(|done| done.result.is_err()) {
            untried.push(step.name);
            continue;
        }
        println!("\n== {}/{count} {}: {}", index + 1, step.name, step.about);
        let step_begun = Instant::now();
        let result = (step.body)(&mut context);
        let time = step_begun.elapsed();
        match &result {
            Ok(outcome) => print!("{}", outcome.notes()),
            Err(error) => println!("{error:#}"),
        }
        println!("-- {}: {}, {}", step.name, word(&result), seconds(time));
        done.push(Done { name: step.name, time, result });
    }
    let all_well = done.iter().all(|done| done.result.is_ok());
    print!("{}", summary(&done, &untried, begun.elapsed()));
    Ok(all_well)
}

fn summary(done: &[Done], untried: &[&str], total: Duration) -> String {
    let width = done.iter().map(|done| done.name.len()).max().unwrap_or(0);
    let mut text = String::from("\n== summary\n");
    for done in done {
        let said = match &done.result {
            Ok(Outcome::Passed { found, .. }) => found.clone(),
            Ok(Outcome::Skipped(why)) => why.clone(),
            Err(error) => error.to_string(),
        };
        let said = said.lines().next().unwrap_or_default();
        let line = format!(
            "{:7} {:width$} {:>9}  {said}",
            word(&done.result),
            done.name,
            seconds(done.time)
        );
        let _ = writeln!(text, "{}", line.trim_end());
    }
    for done in done {
        if let Ok(Outcome::Passed { warnings, .. }) = &done.result {
            for warning in warnings {
                let _ = writeln!(text, "warning {}: {warning}", done.name);
            }
        }
    }
    if !untried.is_empty() {
        let _ = writeln!(text, "not run: {} (--keep-going runs them)", untried.join(", "));
    }
    let failed = done.iter().filter(|done| done.result.is_err()).count();
    let verdict = match failed {
        0 => "all well".to_owned(),
        1 => "1 step failed".to_owned(),
        many => format!("{many} steps failed"),
    };
    let _ = writeln!(text, "{verdict}, {} in all", seconds(total));
    text
}

fn word(result: &anyhow::Result<Outcome>) -> &'static str {
    match result {
        Ok(Outcome::Passed { .. }) => "ok",
        Ok(Outcome::Skipped(_)) => "skipped",
        Err(_) => "FAILED",
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    static RUNS: AtomicU32 = AtomicU32::new(0);

    fn good(_: &mut Context) -> anyhow::Result<Outcome> {
        RUNS.fetch_add(1, Ordering::Relaxed);
        Ok(Outcome::passed())
    }

    fn bad(_: &mut Context) -> anyhow::Result<Outcome> {
        anyhow::bail!("broken")
    }

    #[test]
    fn a_failure_stops_unless_told_to_keep_going() {
        let plan = || {
            let step = |name, body| Step { name, about: "a test", body };
            vec![step("one", good as fn(&mut Context) -> _), step("two", bad), step("three", good)]
        };
        for (keep_going, want) in [(false, 1), (true, 2)] {
            RUNS.store(0, Ordering::Relaxed);
            let all_well = run_in(Context::new().unwrap(), plan(), keep_going).unwrap();
            assert!(!all_well);
            assert_eq!(RUNS.load(Ordering::Relaxed), want, "keep going: {keep_going}");
        }
    }

    #[test]
    fn the_summary_says_what_happened() {
        let done = |name, result| Done { name, time: Duration::from_millis(1500), result };
        let all = [
            done("fmt", Ok(Outcome::passed())),
            done(
                "tidy",
                Ok(Outcome::Passed { found: "9 files".into(), warnings: vec!["long".into()] }),
            ),
            done("root", Ok(Outcome::Skipped("not root".into()))),
            done("build", Err(anyhow::anyhow!("cargo failed"))),
        ];
        assert_eq!(
            summary(&all, &["unit"], Duration::from_secs(6)),
            "\n== summary\n\
             ok      fmt       1.5 s\n\
             ok      tidy      1.5 s  9 files\n\
             skipped root      1.5 s  not root\n\
             FAILED  build     1.5 s  cargo failed\n\
             warning tidy: long\n\
             not run: unit (--keep-going runs them)\n\
             1 step failed, 6.0 s in all\n"
        );
    }
}
