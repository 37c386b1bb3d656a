//! How failures are told: what went wrong, what to do, and the exit code.

use std::fmt;
use std::process::ExitCode;

use sandbox::{CreateError, RunError, StartError};

use crate::ui;

/// A command other than `run` failed.
pub(crate) const FAILED: u8 = 1;
/// The words on the command line make no sense.
pub(crate) const USAGE: u8 = 2;
/// `casemate run` itself failed, and not the program it was to run.
pub(crate) const RUN_FAILED: u8 = 125;
/// The program is there and cannot be executed.
pub(crate) const NOT_EXECUTABLE: u8 = 126;
/// There is no such program.
pub(crate) const NOT_FOUND: u8 = 127;

/// A failure that knows what would help.
#[derive(Debug)]
pub(crate) struct Failure {
    what: String,
    fix: Option<String>,
    code: Option<u8>,
}

impl Failure {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), fix: None, code: None }
    }

    /// What the reader can do about it.
    #[must_use]
    pub(crate) fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }

    /// Another exit code than the command's own.
    #[must_use]
    pub(crate) fn code(mut self, code: u8) -> Self {
        self.code = Some(code);
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for Failure {}

impl From<CreateError> for Failure {
    fn from(error: CreateError) -> Self {
        match error {
            CreateError::Unavailable { wall, unavailable } => Self {
                what: format!("the {wall} wall does not work here: {}", unavailable.reason),
                fix: unavailable
                    .fix
                    .or_else(|| Some("`casemate doctor` says what is missing".into())),
                code: None,
            },
            CreateError::NotBuilt(wall) => Self::new(format!("the {wall} wall is not built yet"))
                .fix("use --wall jail or auto"),
            CreateError::Control { .. } => {
                Self::new(error.to_string()).fix("`casemate doctor` says what is missing")
            }
            other => Self::new(other.to_string()),
        }
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Create(error) => error.into(),
            RunError::Start(StartError::NotFound { ref program }) => {
                let failure = Self::new(error.to_string()).code(NOT_FOUND);
                match package_of(program) {
                    Some(package) => failure.fix(format!("apt-get install -y {package}")),
                    None => failure,
                }
            }
            RunError::Start(StartError::Exec { .. }) => {
                Self::new(error.to_string()).code(NOT_EXECUTABLE)
            }
            other => Self::new(other.to_string()),
        }
    }
}

/// The Debian package of an interpreter. It must come from there: a sandbox
/// sees the host's `/usr` and no interpreter elsewhere.
fn package_of(program: &str) -> Option<&'static str> {
    match program {
        "python3" => Some("python3"),
        "node" => Some("nodejs"),
        "bash" => Some("bash"),
        _ => None,
    }
}

/// A failure with its causes, but for those that it names itself.
fn told(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

/// Tells a failure on stderr and gives its exit code, `code` if it has none of
/// its own.
pub(crate) fn report(error: &anyhow::Error, code: u8) -> ExitCode {
    if error.is::<ui::OutputClosed>() {
        return ExitCode::from(ui::OutputClosed::CODE);
    }
    let failure = error.downcast_ref::<Failure>();
    if error.is::<server::ConfigError>() {
        // It shows the user's own file, with a mark under the mistake.
        ui::note_lines(&told(error));
    } else {
        ui::note(&told(error));
    }
    if let Some(fix) = failure.and_then(|failure| failure.fix.as_deref()) {
        ui::fix(fix);
    }
    ExitCode::from(failure.and_then(|failure| failure.code).unwrap_or(code))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandbox::{Unavailable, WallName};

    #[test]
    fn errors_of_a_run_become_codes_and_advice() {
        let unavailable = Unavailable { reason: "no".into(), fix: Some("sysctl".into()) };
        let exec = StartError::Exec { program: "x".into(), reason: "EACCES".into() };
        let missing = |program: &str| StartError::NotFound { program: program.into() };
        let cases: [(RunError, Option<u8>, Option<&str>); 4] = [
            (
                CreateError::Unavailable { wall: WallName::Jail, unavailable }.into(),
                None,
                Some("sysctl"),
            ),
            (missing("node").into(), Some(NOT_FOUND), Some("apt-get install -y nodejs")),
            (missing("x").into(), Some(NOT_FOUND), None),
            (exec.into(), Some(NOT_EXECUTABLE), None),
        ];
        for (error, code, fix) in cases {
            let name = error.to_string();
            let failure = Failure::from(error);
            assert_eq!((failure.code, failure.fix.as_deref()), (code, fix), "{name}");
        }
    }
}
