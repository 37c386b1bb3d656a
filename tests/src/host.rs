//! Running things on the host without a wall, for positive controls.

use std::ffi::{OsStr, OsString};
use std::io::{Read, Write as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

/// A command on the host: fenced by nothing but a deadline, in a scratch
/// directory, with a small environment.
pub struct HostRun {
    command: Command,
    stdin: Vec<u8>,
    deadline: Duration,
    scratch: tempfile::TempDir,
}

/// A command that has ended.
pub struct Finished {
    /// How.
    pub status: ExitStatus,
    /// What it wrote to stdout.
    pub stdout: Vec<u8>,
    /// What it wrote to stderr.
    pub stderr: Vec<u8>,
    /// How long it took.
    pub elapsed: Duration,
    /// Whether the deadline ended it.
    pub overdue: bool,
}

impl std::fmt::Debug for Finished {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (out, err) = (self.text(), self.errors());
        write!(f, "{} after {:?}, stdout {out:?}, stderr {err:?}", self.status, self.elapsed)
    }
}

impl Finished {
    /// Its stdout as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Its stderr as text.
    #[must_use]
    pub fn errors(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    /// Its exit code as a shell shows it.
    #[must_use]
    pub fn code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| 128 + self.status.signal().unwrap_or(0))
    }
}

impl HostRun {
    /// A command with its arguments.
    ///
    /// # Panics
    ///
    /// If `argv` is empty or no scratch directory can be made.
    #[must_use]
    pub fn new<S: AsRef<OsStr>>(argv: &[S]) -> Self {
        let scratch = crate::scratch();
        let (program, args) = argv.split_first().expect("a program");
        let program = match program.as_ref() {
            python if python == "python3" => system_python().into_os_string(),
            other => other.to_os_string(),
        };
        let mut command = Command::new(program);
        command.args(args).current_dir(scratch.path()).env_clear();
        command.envs(small_environment(scratch.path()));
        Self { command, stdin: Vec::new(), deadline: Duration::from_secs(30), scratch }
    }

    /// Sets a variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// What it reads.
    #[must_use]
    pub fn stdin(mut self, bytes: &[u8]) -> Self {
        self.stdin = bytes.to_vec();
        self
    }

    /// Kills it and its process group when this has passed; 30 s by default.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Its working directory, which is also its home.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.scratch.path()
    }

    /// Runs it to its end.
    ///
    /// # Panics
    ///
    /// If it cannot be started.
    #[must_use]
    pub fn run(mut self) -> Finished {
        finish(&mut self.command, self.stdin, self.deadline)
    }
}

/// The environment of a control, as near to a sandbox's as the host has it.
fn small_environment(home: &Path) -> Vec<(&'static str, OsString)> {
    vec![
        ("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin".into()),
        ("HOME", home.into()),
        ("USER", "user".into()),
        ("LOGNAME", "user".into()),
        ("LANG", "C.UTF-8".into()),
    ]
}

/// The host's own Python: what a sandbox that shows `/usr` also runs.
#[must_use]
pub fn system_python() -> PathBuf {
    ["/usr/local/bin/python3", "/usr/bin/python3", "/bin/python3"]
        .iter()
        .map(PathBuf::from)
        .find(|path| path.exists())
        .unwrap_or_else(|| "python3".into())
}

/// Runs a command in a process group of its own until it ends and its output
/// is closed, or until `deadline`, when the group is killed.
pub(crate) fn finish(command: &mut Command, stdin: Vec<u8>, deadline: Duration) -> Finished {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.process_group(0);
    let begun = Instant::now();
    let program = command.get_program().to_string_lossy().into_owned();
    let mut child =
        command.spawn().unwrap_or_else(|error| panic!("{program} does not start: {error}"));
    let mut input = child.stdin.take().expect("stdin is a pipe");
    std::thread::spawn(move || {
        // A program that does not read its input is no failure.
        let _ = input.write_all(&stdin);
    });
    let stdout = drain(child.stdout.take().expect("stdout is a pipe"));
    let stderr = drain(child.stderr.take().expect("stderr is a pipe"));
    let (status, overdue) = wait(&mut child, begun, deadline);
    let elapsed = begun.elapsed();
    // Whoever still holds the pipes does so without us after a moment.
    let rest = Duration::from_secs(2);
    let stdout = collect(&stdout, rest);
    let stderr = collect(&stderr, rest);
    Finished { status, stdout, stderr, elapsed, overdue }
}

pub(crate) fn wait(child: &mut Child, begun: Instant, deadline: Duration) -> (ExitStatus, bool) {
    let mut overdue = false;
    loop {
        if let Some(status) = child.try_wait().expect("a child can be waited for") {
            return (status, overdue);
        }
        if begun.elapsed() > deadline && !overdue {
            overdue = true;
            kill_group(child);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Kills the process group that a child leads.
pub(crate) fn kill_group(child: &Child) {
    if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(pid, Signal::KILL);
    }
}

/// Reads all of `source` on a thread.
pub(crate) fn drain(mut source: impl Read + Send + 'static) -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(n @ 1..) = source.read(&mut buffer) {
            if sender.send(buffer[..n].to_vec()).is_err() {
                break;
            }
        }
    });
    receiver
}

/// What a [`drain`] has read by its end, or by `patience` without any more.
pub(crate) fn collect(chunks: &mpsc::Receiver<Vec<u8>>, patience: Duration) -> Vec<u8> {
    let mut all = Vec::new();
    while let Ok(chunk) = chunks.recv_timeout(patience) {
        all.extend_from_slice(&chunk);
    }
    all
}
