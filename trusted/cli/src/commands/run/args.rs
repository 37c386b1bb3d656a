//! What `casemate run` takes, and what it means for a sandbox.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use sandbox::{
    GuestPath, Language, Limit, LimitError, Limits, NetworkPolicy, Root, SandboxSpec, WallChoice,
    parse_duration, parse_size,
};

use super::get::Get;
use super::put::Put;
use crate::commands::values;
use crate::failure::Failure;
use crate::ui;

const USAGE: &str = "\
casemate run [OPTIONS] -c CODE [ARGS]...
       casemate run [OPTIONS] FILE [ARGS]...
       casemate run [OPTIONS] - [ARGS]...
       casemate run [OPTIONS] -- CMD [ARGS]...";

const AFTER: &str = "\
The program sees a read-only system, a private home and /tmp, and no network. Its
output comes as it writes it. Afterwards nothing of it is left.

Options come first: what follows FILE, `-` or CMD belongs to the program.
Sizes are numbers with K, M or G; times are numbers with ms, s, m or h.

Exit code:
  the program's own, or 128 + the signal that ended it
  124  a time limit ended it
  137  the memory limit ended it
  125  Casemate itself failed, or does not understand its arguments
  126  the program cannot be executed
  127  there is no such program
  130, 143, 129  Ctrl-C, SIGTERM or SIGHUP ended the run

Examples:
  casemate run -c 'print(1+1)'
  casemate run --put data.csv --get out.png plot.py data.csv
  echo 'echo $((6*7))' | casemate run --lang bash -
  casemate run --timeout 1m --memory 1G -- gcc --version
  casemate run -t -- bash
  casemate run --json -c 'print(1)' | jq .controls";

const WHAT: &str = "What to run";
const LIMITS: &str = "Limits";
const SEES: &str = "What the program sees";
const RESULT: &str = "Result";

/// Runs a program in a fresh sandbox.
#[derive(Debug, clap::Args)]
#[command(override_usage = USAGE, after_help = AFTER)]
pub(crate) struct RunArgs {
    /// Code to run
    #[arg(short = 'c', value_name = "CODE", allow_hyphen_values = true, help_heading = WHAT)]
    pub(super) code: Option<String>,

    /// A file, or `-` for code on stdin, or after `--` any command; then arguments
    #[arg(value_name = "FILE", trailing_var_arg = true, help_heading = WHAT)]
    pub(super) rest: Vec<String>,

    /// Language of the code [default: from the file's name or `#!`, else python]
    #[arg(long, value_name = "LANGUAGE", value_parser = values::languages(), help_heading = WHAT)]
    pub(super) lang: Option<Language>,

    /// Wall around the program
    #[arg(long, default_value = "auto", value_parser = values::walls(), help_heading = WHAT)]
    pub(super) wall: WallChoice,

    /// Wall-clock time
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_duration, help_heading = LIMITS)]
    timeout: Duration,

    /// Memory of all processes and files together
    #[arg(long, value_name = "SIZE", default_value = "128M", value_parser = parse_size, help_heading = LIMITS)]
    memory: u64,

    /// Share of processor time; 1 is one whole CPU
    #[arg(long, value_name = "NUMBER", default_value_t = 0.5, help_heading = LIMITS)]
    cpus: f64,

    /// Processes and threads alive at once
    #[arg(long, value_name = "NUMBER", default_value_t = 64, help_heading = LIMITS)]
    pids: u32,

    /// Bytes of stdout and stderr together
    #[arg(long, value_name = "SIZE", default_value = "64K", value_parser = parse_size, help_heading = LIMITS)]
    output_limit: u64,

    /// Bytes of all files written
    #[arg(long, value_name = "SIZE", default_value = "64M", value_parser = parse_size, help_heading = LIMITS)]
    disk: u64,

    /// Processor time of all processes together [default: none]
    #[arg(long, value_name = "TIME", value_parser = parse_duration, help_heading = LIMITS)]
    cpu_time: Option<Duration>,

    /// Bytes of one file [default: that of --disk]
    #[arg(long, value_name = "SIZE", value_parser = parse_size, help_heading = LIMITS)]
    file_size: Option<u64>,

    /// Descriptors open at once in one process
    #[arg(long, value_name = "NUMBER", default_value_t = 1024, help_heading = LIMITS)]
    open_files: u64,

    /// Set a variable; NAME alone takes the value it has here; may be repeated
    #[arg(long, value_name = "NAME[=VALUE]", value_parser = variable, help_heading = SEES)]
    env: Vec<(String, String)>,

    /// Copy a file or directory in [default GUEST: its name, in the home]; may be repeated
    #[arg(long, value_name = "HOST[:GUEST]", value_parser = Put::parse, help_heading = SEES)]
    pub(super) put: Vec<Put>,

    /// Directory it starts in
    #[arg(long, value_name = "GUEST", default_value = GuestPath::HOME, help_heading = SEES)]
    pub(super) cwd: GuestPath,

    /// Network it can reach
    #[arg(long, default_value = "none", value_parser = values::networks(), help_heading = SEES)]
    net: NetworkPolicy,

    /// Root file system: a directory or an unpacked OCI image [default: this system's]
    #[arg(long, value_name = "DIR", help_heading = SEES)]
    root: Option<PathBuf>,

    /// Give it a terminal
    #[arg(short, long, conflicts_with = "json", help_heading = SEES)]
    pub(super) tty: bool,

    /// Copy a file out afterwards [default HOST: its name, here]; may be repeated
    #[arg(long, value_name = "GUEST[:HOST]", value_parser = Get::parse, help_heading = RESULT)]
    pub(super) get: Vec<Get>,

    /// Print the whole result as JSON instead of the program's output
    #[arg(long, help_heading = RESULT)]
    pub(super) json: bool,
}

impl RunArgs {
    /// The limits, each within what can be enforced.
    pub(super) fn limits(&self) -> Result<Limits, Failure> {
        let limits = Limits {
            wall_time: self.timeout,
            cpus: self.cpus,
            cpu_time: self.cpu_time,
            memory: self.memory,
            processes: self.pids,
            file_size: self.file_size,
            disk: self.disk,
            open_files: self.open_files,
            output: self.output_limit,
        };
        limits.check().map_err(|error| {
            let LimitError::OutOfRange { limit, .. } = error else {
                return Failure::new(error.to_string());
            };
            Failure::new(format!("{}: {error}", flag_of_range(limit)))
        })?;
        Ok(limits)
    }

    /// The sandbox to make, without files.
    pub(super) fn spec(&self) -> Result<SandboxSpec, Failure> {
        Ok(SandboxSpec {
            wall: self.wall,
            root: match &self.root {
                None => Root::Host,
                // The wall's helper has a working directory of its own.
                Some(path) => Root::Directory(path.canonicalize().map_err(|error| {
                    Failure::new(format!("--root {}: {error}", path.display()))
                })?),
            },
            limits: self.limits()?,
            env: self.env.iter().cloned().collect::<BTreeMap<_, _>>(),
            network: self.net,
            ..SandboxSpec::default()
        })
    }

    /// What is said when `limit` ended the run.
    pub(super) fn limit_note(&self, limit: Limit) -> String {
        let (what, value, flag) = match limit {
            Limit::WallTime => ("time", ui::time(self.timeout), "--timeout"),
            Limit::CpuTime => {
                ("CPU time", self.cpu_time.map(ui::time).unwrap_or_default(), "--cpu-time")
            }
            Limit::Memory => ("memory", ui::size(self.memory), "--memory"),
            Limit::Processes => ("process", self.pids.to_string(), "--pids"),
            Limit::FileSize => {
                ("file size", ui::size(self.file_size.unwrap_or(self.disk)), "--file-size")
            }
            Limit::Disk => ("disk", ui::size(self.disk), "--disk"),
            Limit::Output => ("output", ui::size(self.output_limit), "--output-limit"),
        };
        format!("ended by the {what} limit ({value}); raise it with {flag}")
    }
}

/// The flag of a limit, by its name in [`LimitError::OutOfRange`].
fn flag_of_range(limit: &str) -> &'static str {
    match limit.split(" (").next().unwrap_or_default() {
        "wall time" => "--timeout",
        "CPU time" => "--cpu-time",
        "CPUs" => "--cpus",
        "memory" => "--memory",
        "processes" => "--pids",
        "file size" => "--file-size",
        "disk" => "--disk",
        "open files" => "--open-files",
        "output" => "--output-limit",
        _ => "limit",
    }
}

/// Reads `NAME=VALUE`, or takes the value of `NAME` from our environment.
fn variable(text: &str) -> Result<(String, String), String> {
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, value.to_owned()),
        None => match std::env::var(text) {
            Ok(value) => (text, value),
            Err(std::env::VarError::NotPresent) => {
                return Err(format!("`{text}` is not set here; write {text}=VALUE"));
            }
            Err(std::env::VarError::NotUnicode(_)) => {
                return Err(format!("the value `{text}` has here is not UTF-8"));
            }
        },
    };
    if name.is_empty() {
        return Err("the variable has no name".into());
    }
    Ok((name.to_owned(), value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;

    #[derive(clap::Parser)]
    struct Program {
        #[command(flatten)]
        run: RunArgs,
    }

    fn parse(words: &[&str]) -> Result<RunArgs, String> {
        Program::try_parse_from(["run"].iter().chain(words))
            .map(|program| program.run)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn defaults_are_those_of_the_interface() {
        assert_eq!(parse(&["x"]).unwrap().limits().unwrap(), Limits::default());
    }

    #[test]
    fn values_become_limits() {
        let args = parse(&[
            "--timeout",
            "1m",
            "--memory",
            "1G",
            "--cpus",
            "2",
            "--pids",
            "9",
            "--disk",
            "2M",
            "--output-limit",
            "1M",
            "--cpu-time",
            "500ms",
            "--file-size",
            "1M",
            "--open-files",
            "20",
            "x",
        ]);
        let want = Limits {
            wall_time: Duration::from_secs(60),
            cpus: 2.0,
            cpu_time: Some(Duration::from_millis(500)),
            memory: 1 << 30,
            processes: 9,
            file_size: Some(1 << 20),
            disk: 2 << 20,
            open_files: 20,
            output: 1 << 20,
        };
        assert_eq!(args.unwrap().limits().unwrap(), want);
    }

    #[test]
    fn errors_name_the_flag() {
        let cases = [
            (&["--timeout", "soon", "x"][..], "--timeout"),
            (&["--memory", "12q", "x"], "--memory"),
            (&["--env", "=x", "x"], "--env"),
            (&["--env", "CASEMATE_NO_SUCH_VARIABLE", "x"], "--env"),
            (&["--wall", "docker", "x"], "--wall"),
            (&["--net", "all", "x"], "--net"),
            (&["--cwd", "/..", "x"], "--cwd"),
            (&["--tiemout", "1", "x"], "--tiemout"),
            (&["--json", "--tty", "x"], "--tty"),
        ];
        for (words, flag) in cases {
            let error = parse(words).unwrap_err();
            assert!(error.contains(flag), "{words:?}: {error}");
        }
        let out_of_range = [
            (["--timeout", "0"], "--timeout: "),
            (["--cpu-time", "0"], "--cpu-time: "),
            (["--memory", "1K"], "--memory: "),
            (["--cpus", "NaN"], "--cpus: "),
            (["--pids", "0"], "--pids: "),
            (["--file-size", "0"], "--file-size: "),
            (["--disk", "0"], "--disk: "),
            (["--open-files", "1"], "--open-files: "),
            (["--output-limit", "0"], "--output-limit: "),
        ];
        for ([flag, value], prefix) in out_of_range {
            let error = parse(&[flag, value, "x"]).unwrap().limits().unwrap_err().to_string();
            assert!(error.starts_with(prefix), "{error}");
        }
    }

    #[test]
    fn variables() {
        let args = parse(&["--env", "A=1=2", "--env", "B=", "--env", "CARGO_PKG_NAME", "x"]);
        let env = args.unwrap().spec().unwrap().env;
        assert_eq!(env["A"], "1=2");
        assert_eq!(env["B"], "");
        assert_eq!(env["CARGO_PKG_NAME"], "casemate");
    }

    #[test]
    fn what_follows_the_program_is_its_own() {
        let cases: [(&[&str], Option<&str>, &[&str]); 5] = [
            (&["-c", "-1", "a", "--json"], Some("-1"), &["a", "--json"]),
            (&["f.py", "--timeout", "1"], None, &["f.py", "--timeout", "1"]),
            (&["-", "-x"], None, &["-", "-x"]),
            (&["--", "ls", "-l", "--", "x"], None, &["ls", "-l", "--", "x"]),
            (&["f.py", "--", "x"], None, &["f.py", "--", "x"]),
        ];
        for (words, code, rest) in cases {
            let args = parse(words).unwrap();
            assert_eq!(args.code.as_deref(), code, "{words:?}");
            assert_eq!(args.rest, rest, "{words:?}");
            assert!(!args.json);
        }
    }
}
