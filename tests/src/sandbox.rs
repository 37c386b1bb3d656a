//! Running things behind the wall, through `casemate run --json`.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::host::{Finished, collect, drain, finish, kill_group, wait};

/// A run to be made. Limits are Casemate's defaults unless set, but for the
/// CPU share: tests take turns on few processors.
#[derive(Clone)]
pub struct Sandbox {
    options: Vec<OsString>,
    variables: Vec<(OsString, OsString)>,
    wrapper: Vec<OsString>,
    binary: PathBuf,
    stdin: Vec<u8>,
    deadline: Duration,
    cleanup_checked: bool,
    directory: Option<PathBuf>,
}

/// A run that has ended.
pub struct Ran {
    /// The result as printed, or `Null` if there was none.
    pub json: Value,
    /// The `casemate` process itself.
    pub process: Finished,
}

/// Without the controls, which are the same each time, and as text.
impl std::fmt::Debug for Ran {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut json = self.json.clone();
        if let Some(fields) = json.as_object_mut() {
            fields.remove("controls");
            fields.remove("id");
            return write!(f, "{json}, stderr {:?}", self.process.errors());
        }
        self.process.fmt(f)
    }
}

impl Default for Sandbox {
    fn default() -> Self {
        Self::new()
    }
}

impl Sandbox {
    /// A run with the defaults.
    #[must_use]
    pub fn new() -> Self {
        Self {
            options: Vec::new(),
            variables: Vec::new(),
            wrapper: Vec::new(),
            binary: crate::casemate().to_owned(),
            stdin: Vec::new(),
            deadline: Duration::from_secs(60),
            cleanup_checked: true,
            directory: None,
        }
    }

    /// Adds an option of `casemate run` with its value.
    #[must_use]
    pub fn option(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.options.push(name.into());
        self.options.push(value.as_ref().into());
        self
    }

    /// Adds an option without a value.
    #[must_use]
    pub fn flag(mut self, name: &str) -> Self {
        self.options.push(name.into());
        self
    }

    /// Puts a file in.
    #[must_use]
    pub fn put(self, host: &Path, guest: &str) -> Self {
        let value = format!("{}:{guest}", host.display());
        self.option("--put", value)
    }

    /// Sets a variable of the `casemate` process, not of the sandbox.
    #[must_use]
    pub fn outer_env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.variables.push((name.into(), value.as_ref().into()));
        self
    }

    /// Starts `casemate` through another program, such as a shell that leaves
    /// descriptors open: its arguments are the `casemate` command line.
    #[must_use]
    pub fn wrapper(mut self, argv: &[&str]) -> Self {
        self.wrapper = argv.iter().map(OsString::from).collect();
        self
    }

    /// Uses this copy of `casemate`.
    #[must_use]
    pub fn binary(mut self, path: &Path) -> Self {
        path.clone_into(&mut self.binary);
        self
    }

    /// The working directory of the `casemate` process.
    #[must_use]
    pub fn directory(mut self, path: &Path) -> Self {
        self.directory = Some(path.to_owned());
        self
    }

    /// What the program reads.
    #[must_use]
    pub fn stdin(mut self, bytes: &[u8]) -> Self {
        self.stdin = bytes.to_vec();
        self
    }

    /// When the harness gives up on `casemate`; 60 s by default.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Does not require that there is a result with a clean `cleanup`.
    #[must_use]
    pub fn may_fail(mut self) -> Self {
        self.cleanup_checked = false;
        self
    }

    fn command<S: AsRef<OsStr>>(&self, argv: &[S]) -> Command {
        let mut line = self.wrapper.clone();
        line.push(self.binary.clone().into());
        line.extend(["run".into(), "--json".into(), "--wall".into(), "jail".into()]);
        line.extend(self.options.iter().cloned());
        if !argv.is_empty() {
            line.push("--".into());
        }
        line.extend(argv.iter().map(|arg| arg.as_ref().to_os_string()));
        let mut command = Command::new(&line[0]);
        command.args(&line[1..]).envs(self.variables.iter().cloned());
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        command
    }

    /// Runs a command to its end.
    ///
    /// # Panics
    ///
    /// If `casemate` outlives the deadline or, unless [`Self::may_fail`], gives
    /// no result or leaves something behind.
    #[must_use]
    pub fn run<S: AsRef<OsStr>>(&self, argv: &[S]) -> Ran {
        let process = finish(&mut self.command(argv), self.stdin.clone(), self.deadline);
        self.judge(process)
    }

    fn judge(&self, process: Finished) -> Ran {
        assert!(
            !process.overdue,
            "casemate did not end within {:?}: {}",
            self.deadline,
            process.errors()
        );
        let json = serde_json::from_slice(&process.stdout).unwrap_or(Value::Null);
        let ran = Ran { json, process };
        if self.cleanup_checked {
            assert!(
                ran.json.is_object(),
                "no result: exit {}, stdout {:?}, stderr {:?}",
                ran.process.code(),
                ran.process.text(),
                ran.process.errors()
            );
            assert_eq!(ran.json["cleanup"], "ok", "something was left: {}", ran.json);
        }
        ran
    }

    /// Starts a command and returns while it runs.
    ///
    /// # Panics
    ///
    /// If `casemate` cannot be started.
    #[must_use]
    pub fn start<S: AsRef<OsStr>>(&self, argv: &[S]) -> Live {
        use std::os::unix::process::CommandExt as _;
        let mut command = self.command(argv);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.process_group(0).spawn().expect("casemate starts");
        let stdout = drain(child.stdout.take().expect("stdout is a pipe"));
        let stderr = drain(child.stderr.take().expect("stderr is a pipe"));
        Live { child, stdout, stderr, sandbox: self.clone(), begun: Instant::now() }
    }
}

/// A `casemate run` that has not been waited for. Killed when dropped.
pub struct Live {
    child: Child,
    stdout: std::sync::mpsc::Receiver<Vec<u8>>,
    stderr: std::sync::mpsc::Receiver<Vec<u8>>,
    sandbox: Sandbox,
    begun: Instant,
}

impl Live {
    /// The process id of `casemate`.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal to `casemate` alone.
    ///
    /// # Panics
    ///
    /// If it is gone.
    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = i32::try_from(self.child.id()).expect("a pid fits");
        let pid = rustix::process::Pid::from_raw(pid).expect("a pid is positive");
        rustix::process::kill_process(pid, signal).expect("casemate is there to be signalled");
    }

    /// Kills the process group of `casemate`.
    pub fn kill_group(&self) {
        kill_group(&self.child);
    }

    /// Writes to its stdin.
    pub fn write(&mut self, bytes: &[u8]) {
        use std::io::Write as _;
        if let Some(stdin) = self.child.stdin.as_mut() {
            let _ = stdin.write_all(bytes);
            let _ = stdin.flush();
        }
    }

    /// Does not require a result; for a `casemate` that is ended from outside.
    #[must_use]
    pub fn may_fail(mut self) -> Self {
        self.sandbox.cleanup_checked = false;
        self
    }

    /// Waits for its end, having closed its stdin.
    ///
    /// # Panics
    ///
    /// If it outlives the deadline.
    #[must_use]
    pub fn wait(mut self) -> Ran {
        drop(self.child.stdin.take());
        let (status, overdue) = wait(&mut self.child, self.begun, self.sandbox.deadline);
        let elapsed = self.begun.elapsed();
        let stdout = collect(&self.stdout, Duration::from_secs(2));
        let stderr = collect(&self.stderr, Duration::from_secs(2));
        self.sandbox.judge(Finished { status, stdout, stderr, elapsed, overdue })
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            kill_group(&self.child);
            let _ = self.child.wait();
        }
    }
}

impl Ran {
    /// What the program wrote to stdout.
    #[must_use]
    pub fn stdout(&self) -> &str {
        self.json["stdout"].as_str().unwrap_or_default()
    }

    /// What the program wrote to stderr.
    #[must_use]
    pub fn stderr(&self) -> &str {
        self.json["stderr"].as_str().unwrap_or_default()
    }

    /// All that the program wrote and all that Casemate said.
    #[must_use]
    pub fn everything(&self) -> String {
        format!("{}{}{}", self.json, self.process.text(), self.process.errors())
    }

    /// The program's exit code, if it exited.
    #[must_use]
    pub fn exit_code(&self) -> Option<i64> {
        self.json["exit_code"].as_i64()
    }

    /// The signal that ended the program, if one did.
    #[must_use]
    pub fn signal(&self) -> Option<i64> {
        self.json["signal"].as_i64()
    }

    /// Whether the wall-clock limit ended it.
    #[must_use]
    pub fn timed_out(&self) -> bool {
        self.json["timed_out"].as_bool().unwrap_or_default()
    }

    /// The limit that ended it.
    #[must_use]
    pub fn limit_hit(&self) -> Option<&str> {
        self.json["limit_hit"].as_str()
    }

    /// Whether output was cut.
    #[must_use]
    pub fn truncated(&self) -> bool {
        self.json["truncated"].as_bool().unwrap_or_default()
    }

    /// The state and detail of a control.
    #[must_use]
    pub fn control(&self, name: &str) -> Option<(String, String)> {
        let controls = self.json["controls"].as_array()?;
        let control = controls.iter().find(|control| control["name"] == name)?;
        let text = |key: &str| control[key].as_str().unwrap_or_default().to_owned();
        Some((text("state"), text("detail")))
    }
}
