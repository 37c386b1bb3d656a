//! Attacks: small programs under `security/attacks`, run on either side of
//! the wall.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock};

use crate::host::{Finished, HostRun};
use crate::sandbox::{Live, Ran, Sandbox};

/// A program that tries something.
pub struct Attack {
    program: PathBuf,
    interpreter: Option<&'static str>,
    arguments: Vec<String>,
    stdin: Vec<u8>,
}

impl Attack {
    /// The attack in `security/attacks/<file>`. A `.c` file is compiled; `None`,
    /// said aloud, if this host cannot.
    #[must_use]
    pub fn maybe(file: &str) -> Option<Self> {
        let source = crate::suite_dir("security/attacks").join(file);
        assert!(source.is_file(), "no attack at {}", source.display());
        let (program, interpreter) = match source.extension().and_then(|name| name.to_str()) {
            Some("py") => (source, Some("python3")),
            Some("sh") => (source, Some("bash")),
            Some("c") => match compile(&source) {
                Ok(program) => (program, None),
                Err(why) => {
                    crate::skip_attack(file, &why);
                    return None;
                }
            },
            _ => panic!("{file} is neither Python, C nor shell"),
        };
        Some(Self { program, interpreter, arguments: Vec::new(), stdin: Vec::new() })
    }

    /// An attack that needs no compiler.
    ///
    /// # Panics
    ///
    /// If it does.
    #[must_use]
    pub fn new(file: &str) -> Self {
        assert!(!file.ends_with(".c"), "{file} may not compile everywhere: use `maybe`");
        Self::maybe(file).expect("only compiling can fail")
    }

    /// Its arguments.
    #[must_use]
    pub fn args<S: AsRef<str>>(mut self, arguments: &[S]) -> Self {
        self.arguments = arguments.iter().map(|argument| argument.as_ref().to_owned()).collect();
        self
    }

    /// What it reads.
    #[must_use]
    pub fn stdin(mut self, bytes: &[u8]) -> Self {
        self.stdin = bytes.to_vec();
        self
    }

    fn argv(&self, program: &str) -> Vec<String> {
        let interpreter = self.interpreter.map(str::to_owned);
        let mut argv: Vec<String> = interpreter.into_iter().collect();
        argv.push(program.to_owned());
        argv.extend(self.arguments.iter().cloned());
        argv
    }

    /// The command that runs it on the host.
    #[must_use]
    pub fn host_argv(&self) -> Vec<String> {
        let program = self.program.to_str().expect("attacks have plain names");
        self.argv(program)
    }

    /// The control: runs it on the host, as the user that runs the tests.
    pub fn on_host(&self) -> Finished {
        self.host_run().run()
    }

    /// The control, to be adjusted first.
    #[must_use]
    pub fn host_run(&self) -> HostRun {
        crate::suite::count_control();
        HostRun::new(&self.host_argv()).stdin(&self.stdin)
    }

    /// The control within user, mount, UTS, IPC and network namespaces of its
    /// own, where it is root: an attack on what only namespaces fence.
    #[must_use]
    pub fn in_namespaces(&self) -> Finished {
        crate::suite::count_control();
        let unshare = ["unshare", "-U", "-r", "-m", "--uts", "--ipc", "--net", "--pid", "--fork"];
        let mut argv: Vec<String> = unshare.iter().map(|&part| part.to_owned()).collect();
        argv.extend(self.host_argv());
        HostRun::new(&argv).stdin(&self.stdin).run()
    }

    /// The file name it has inside.
    fn guest(&self) -> String {
        let name = self.program.file_name().and_then(|name| name.to_str());
        format!("/home/user/{}", name.expect("attacks have plain names"))
    }

    /// A sandbox with the attack put in, and its command line there.
    #[must_use]
    pub fn prepared(&self, sandbox: Sandbox) -> (Sandbox, Vec<String>) {
        crate::suite::count_attack();
        let guest = self.guest();
        let argv = self.argv(&guest);
        (sandbox.put(&self.program, &guest).stdin(&self.stdin), argv)
    }

    /// Runs it behind the wall with the default limits.
    #[must_use]
    pub fn in_sandbox(&self) -> Ran {
        self.run_in(Sandbox::new())
    }

    /// Runs it behind the wall.
    #[must_use]
    pub fn run_in(&self, sandbox: Sandbox) -> Ran {
        let (sandbox, argv) = self.prepared(sandbox);
        sandbox.run(&argv)
    }

    /// Starts it behind the wall.
    #[must_use]
    pub fn start_in(&self, sandbox: Sandbox) -> Live {
        let (sandbox, argv) = self.prepared(sandbox);
        sandbox.start(&argv)
    }
}

/// What became of each C file, and the directory that the programs are in.
type Compiled = (tempfile::TempDir, Mutex<HashMap<PathBuf, Result<PathBuf, String>>>);

/// Compiles a C file once.
fn compile(source: &Path) -> Result<PathBuf, String> {
    static DONE: OnceLock<Compiled> = OnceLock::new();
    let (directory, done) = DONE.get_or_init(|| (crate::scratch(), Mutex::default()));
    let mut done = done.lock().expect("compiling does not panic");
    done.entry(source.to_owned())
        .or_insert_with(|| {
            let program = directory.path().join(source.file_stem().expect("a file name"));
            let output = Command::new("gcc")
                .args(["-O1", "-w", "-pthread", "-o"])
                .arg(&program)
                .arg(source)
                .output()
                .map_err(|error| format!("no C compiler: {error}"))?;
            if output.status.success() {
                Ok(program)
            } else {
                panic!("{}: {}", source.display(), String::from_utf8_lossy(&output.stderr))
            }
        })
        .clone()
}

/// Compiles `security/attacks/<file>` to `program` so that it needs no library;
/// whether this host can.
#[must_use]
pub fn compile_static(file: &str, program: &Path) -> bool {
    let source = crate::suite_dir("security/attacks").join(file);
    let mut gcc = Command::new("gcc");
    gcc.args(["-static", "-O1", "-w", "-o"]).arg(program).arg(source);
    gcc.output().is_ok_and(|output| output.status.success())
}

/// What an attack that tries many things says of each: lines `name result`,
/// the result being `ok` or the name of an error.
#[derive(Debug)]
pub struct Report(BTreeMap<String, String>);

impl Report {
    /// Reads an attack's output.
    #[must_use]
    pub fn read(output: &str) -> Self {
        let lines = output.lines().filter_map(|line| line.split_once(' '));
        Self(lines.map(|(name, result)| (name.to_owned(), result.to_owned())).collect())
    }

    /// What it says of one thing.
    ///
    /// # Panics
    ///
    /// If it says nothing of it.
    #[must_use]
    pub fn of(&self, name: &str) -> &str {
        self.0.get(name).unwrap_or_else(|| panic!("nothing on {name} in {:?}", self.0))
    }

    /// All names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Every name with its result.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, result)| (name.as_str(), result.as_str()))
    }
}
