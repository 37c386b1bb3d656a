//! Registering tests, running them, and the summary of what was skipped.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Mutex, RwLock};

use libtest_mimic::{Arguments, Trial};

/// Held shared by ordinary tests, and exclusively by those that measure time
/// or count everything on the host.
static ALONE: RwLock<()> = RwLock::new(());
static COUNTS: Mutex<Counts> = Mutex::new(Counts { attacks: 0, controls: 0, skipped: Vec::new() });

struct Counts {
    attacks: usize,
    controls: usize,
    skipped: Vec<String>,
}

/// Lists tests of a module as `trials()`: `trials! { a, b; alone: c }`.
#[macro_export]
macro_rules! trials {
    ($($name:ident),* $(,)? $(; alone: $($serial:ident),* $(,)?)?) => {
        pub(crate) fn trials() -> Vec<libtest_mimic::Trial> {
            vec![
                $($crate::trial(concat!(module_path!(), "::", stringify!($name)), $name),)*
                $($($crate::trial_alone(concat!(module_path!(), "::", stringify!($serial)), $serial),)*)?
            ]
        }
    };
}

/// A test that may run beside others.
#[must_use]
pub fn trial(name: &str, body: fn()) -> Trial {
    named(name, move || {
        let _shared = ALONE.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        body();
    })
}

/// A test that runs while no other of this executable does.
#[must_use]
pub fn trial_alone(name: &str, body: fn()) -> Trial {
    named(name, move || {
        let _alone = ALONE.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        body();
    })
}

fn named(name: &str, body: impl FnOnce() + Send + 'static) -> Trial {
    // `security::network::tcp` reads better without the executable's own name.
    let short = name.split_once("::").map_or(name, |(_, rest)| rest);
    Trial::test(short, move || {
        body();
        Ok(())
    })
}

/// One test executable.
pub struct Suite {
    name: &'static str,
}

impl Suite {
    /// Names it.
    #[must_use]
    pub fn new(name: &'static str) -> Self {
        Self { name }
    }

    /// Runs the tests that the command line asks for and prints the summary.
    #[must_use]
    pub fn run(self, trials: Vec<Trial>) -> ExitCode {
        let arguments = Arguments::from_args();
        let listing = arguments.list;
        let conclusion = libtest_mimic::run(&arguments, trials);
        if !listing {
            self.summarize();
        }
        conclusion.exit_code()
    }

    fn summarize(&self) {
        let counts = COUNTS.lock().expect("no test panics while counting");
        let mut stderr = std::io::stderr().lock();
        let user = if is_root() { "root" } else { "an ordinary user" };
        let (attacks, controls) = (counts.attacks, counts.controls);
        let tried = if attacks > 0 {
            format!("{attacks} attacks, {controls} controls worked, ")
        } else {
            String::new()
        };
        let skipped = counts.skipped.len();
        let _ = writeln!(stderr, "{}: {tried}{skipped} skipped, as {user}", self.name);
        for line in &counts.skipped {
            let _ = writeln!(stderr, "{}:   {line}", self.name);
        }
    }
}

/// Counts an attack that was run against a sandbox.
pub(crate) fn count_attack() {
    COUNTS.lock().expect("no test panics while counting").attacks += 1;
}

/// Counts a control: the attack worked without a wall.
pub(crate) fn count_control() {
    COUNTS.lock().expect("no test panics while counting").controls += 1;
}

/// Says, visibly and in the summary, that an attack runs without its control.
pub fn skip_control(attack: &str, why: &str) {
    skip(format!("control of {attack}: skipped: {why}"));
}

/// Says, visibly and in the summary, that an attack was not run at all.
pub fn skip_attack(attack: &str, why: &str) {
    skip(format!("{attack}: skipped: {why}"));
}

fn skip(line: String) {
    // Not `eprintln!`, which test harnesses capture.
    let _ = writeln!(std::io::stderr(), "{line}");
    COUNTS.lock().expect("no test panics while counting").skipped.push(line);
}

/// Whether the tests run as root.
#[must_use]
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A path below the `tests` folder.
#[must_use]
pub fn suite_dir(below: &str) -> PathBuf {
    let base = std::env::var_os("CASEMATE_TESTS_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    base.join(below)
}

/// How often a long loop runs: `usual`, or what `CASEMATE_TEST_RUNS` says.
#[must_use]
pub fn runs(usual: u32) -> u32 {
    let asked = std::env::var("CASEMATE_TEST_RUNS").ok().and_then(|text| text.parse().ok());
    asked.unwrap_or(usual)
}
