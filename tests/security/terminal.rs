//! The terminal that `casemate` was started on.

use serde_json::Value;
use tests::{Attack, HostRun, Report, Sandbox, casemate, suite_dir, trials};

trials! { injection_without_a_terminal, injection_with_a_terminal, no_controlling_terminal, a_terminal_of_its_own }

/// Runs a command on a new terminal of the host.
fn on_terminal(argv: &[String]) -> Value {
    let script = suite_dir("security/host/on_terminal.py");
    let mut all = vec!["python3".to_owned(), script.display().to_string()];
    all.extend_from_slice(argv);
    let done = HostRun::new(&all).deadline(std::time::Duration::from_secs(40)).run();
    serde_json::from_str(&done.text()).unwrap_or_else(|_| panic!("{done:?}"))
}

fn sandboxed(attack: &Attack, options: &[&str]) -> Vec<String> {
    let program = attack.host_argv().remove(0);
    let mut argv = vec![casemate().display().to_string(), "run".to_owned()];
    argv.extend(options.iter().map(|&option| option.to_owned()));
    let put = format!("{program}:/home/user/inject");
    argv.extend(["--put", &put, "--", "/home/user/inject"].map(str::to_owned));
    argv
}

fn injection(options: &[&str]) {
    let Some(attack) = Attack::maybe("inject.c") else { return };
    let _ = attack.host_run();
    let control = on_terminal(&attack.host_argv());
    if control["queued"] == 0 {
        tests::skip_control("inject.c", "this kernel lets nobody type into a terminal");
    }
    let result = on_terminal(&sandboxed(&attack, options));
    assert_eq!(result["queued"], 0, "typed into the host's terminal: {result}");
    let shown = result["shown"].as_str().unwrap_or_default().replace('\r', "");
    let report = Report::read(&shown);
    assert_eq!(result["status"], 0, "{result}");
    for (name, got) in report.iter() {
        let typed = ["push", "wide", "linux", "console"].iter().any(|kind| name.starts_with(kind));
        assert!(!typed || got != "ok", "{name}: {got}");
    }
    assert!(report.names().any(|name| name == "push-stdin"), "it ran: {result}");
}

fn injection_without_a_terminal() {
    injection(&[]);
}

fn injection_with_a_terminal() {
    injection(&["--tty"]);
}

fn no_controlling_terminal() {
    let code = "try:\n open('/dev/tty'); print('opened')\nexcept OSError as e: print('refused', e.strerror)";
    let argv = |options: &[&str]| {
        let mut argv = vec![casemate().display().to_string(), "run".to_owned()];
        argv.extend(options.iter().map(|&option| option.to_owned()));
        argv.extend(["--", "python3", "-c", code].map(str::to_owned));
        argv
    };
    let control = on_terminal(&["python3", "-c", code].map(str::to_owned));
    assert!(control["shown"].as_str().is_some_and(|text| text.contains("opened")), "{control}");
    let result = on_terminal(&argv(&[]));
    assert!(result["shown"].as_str().is_some_and(|text| text.contains("refused")), "{result}");
    let ran = Sandbox::new().run(&["python3", "-c", code]);
    assert!(ran.stdout().starts_with("refused"), "{ran:?}");
}

fn a_terminal_of_its_own() {
    let mut argv = vec![casemate().display().to_string(), "run".to_owned(), "--tty".to_owned()];
    let code = "import os,sys; print(os.isatty(0), os.isatty(1), os.ttyname(0), os.tcgetpgrp(0) == os.getpgrp()); open('/dev/tty').close(); print('done')";
    argv.extend(["--", "python3", "-c", code].map(str::to_owned));
    let result = on_terminal(&argv);
    let shown = result["shown"].as_str().unwrap_or_default();
    assert!(shown.contains("True True /dev/pts/0 True") && shown.contains("done"), "{result}");
}
