//! Real programs give in a sandbox what they give on the host.
//!
//! Each program of the [table](table::CASES) is run on the host, in a scratch
//! directory with the same environment, and in a sandbox. Output and exit code
//! must be equal, or be the refusal that the table documents.

#![forbid(unsafe_code)]

mod table;

use std::path::Path;

use libtest_mimic::Trial;
use table::{CASES, Case, Expected};
use tests::{Finished, HostRun, Ran, Sandbox, suite_dir, system_python};

fn main() -> std::process::ExitCode {
    // A file that is not in the table would be a case that never runs.
    let files = std::fs::read_dir(suite_dir("programs/cases")).expect("the cases");
    for file in files.flatten() {
        let name = file.file_name();
        let known = CASES.iter().any(|case| name == case.file);
        assert!(known, "{} is not in the table", name.display());
    }
    let trials = CASES.iter().map(|case| named(case.file, move || run(case)));
    tests::Suite::new("programs").run(trials.collect())
}

fn named(name: &str, body: impl FnOnce() + Send + 'static) -> Trial {
    Trial::test(name, move || {
        body();
        Ok(())
    })
}

/// The interpreter of a case and the file name that it is run under.
fn argv(case: &Case, path: &str) -> Vec<String> {
    let extension = Path::new(case.file).extension().and_then(|name| name.to_str());
    let interpreter = match extension {
        Some("py") => "python3",
        Some("js" | "mjs") => "node",
        Some("sh") => "bash",
        Some("pl") => "perl",
        other => panic!("{}: no interpreter for {other:?}", case.file),
    };
    vec![interpreter.to_owned(), path.to_owned()]
}

/// Whether the host has what a case needs in the directories that a sandbox
/// sees; otherwise why not.
fn missing(case: &Case) -> Option<String> {
    let interpreter = argv(case, "").remove(0);
    let folders = ["/usr/local/bin", "/usr/bin", "/bin"];
    for program in case.needs.iter().copied().chain([interpreter.as_str()]) {
        if let Some(module) = program.strip_prefix("python:") {
            let import = ["-c".to_owned(), format!("import {module}")];
            let probe = std::process::Command::new(system_python()).args(import).output();
            if !probe.is_ok_and(|output| output.status.success()) {
                return Some(format!("the system's Python has no {module}"));
            }
        } else if !folders.iter().any(|folder| Path::new(folder).join(program).exists()) {
            return Some(format!("the system has no {program}"));
        }
    }
    None
}

fn run(case: &Case) {
    if let Some(why) = missing(case) {
        tests::skip_attack(case.file, &why);
        return;
    }
    let source = suite_dir("programs/cases").join(case.file);
    let ran = in_sandbox(case, &source);
    assert_eq!(ran.limit_hit(), None, "{ran:?}");
    match case.expected {
        Expected::SameAsHost => {
            let host = on_host(case, &source);
            let code = ran.process.code();
            assert_eq!(ran.stdout(), host.text(), "stdout; {ran:?}\non the host: {host:?}");
            assert_eq!(code, host.code(), "exit code; {ran:?}\non the host: {host:?}");
            let quiet = host.stderr.is_empty();
            assert!(!quiet || ran.stderr().is_empty(), "stderr; {ran:?}");
        }
        Expected::Refused { stdout, code, why } => {
            assert_eq!(ran.stdout(), stdout, "{why}; {ran:?}");
            assert_eq!(ran.process.code(), code, "{why}; {ran:?}");
        }
    }
}

fn on_host(case: &Case, source: &Path) -> Finished {
    let host = HostRun::new(&argv(case, case.file)).stdin(case.stdin.as_bytes());
    std::fs::copy(source, host.directory().join(case.file)).expect("the case can be copied");
    host.run()
}

fn in_sandbox(case: &Case, source: &Path) -> Ran {
    let mut sandbox = Sandbox::new().put(source, case.file).stdin(case.stdin.as_bytes());
    // Tests share few processors: twice the default, to be done in time.
    sandbox = sandbox.option("--cpus", "1").option("--timeout", "30s");
    for (option, value) in case.options {
        sandbox = sandbox.option(option, value);
    }
    sandbox.run(&argv(case, case.file))
}
