//! How runs end: by themselves, by a limit, and whatever the program does
//! against it. No process of a sandbox may outlive its run.

use std::time::Duration;

use tests::{Attack, Sandbox, marked_pids, trials, unique, wait_until};

trials! {
    success, exit_code, exception, signal, program_not_found,
    timeout, timeout_with_signals_ignored, timeout_while_stopped,
    grandchild_that_keeps_stdout_open, daemon_that_closed_everything,
    killing_everything, input_that_never_ends, many_processes, fork_bomb,
}

fn success() {
    let ran = Sandbox::new().run(&["python3", "-c", "print(1+1)"]);
    assert_eq!((ran.stdout(), ran.stderr()), ("2\n", ""));
    assert_eq!((ran.exit_code(), ran.limit_hit(), ran.timed_out()), (Some(0), None, false));
    assert_eq!(ran.process.code(), 0);
    assert_eq!(ran.json["wall"], "jail");
}

fn exit_code() {
    for code in [1, 3, 42, 255] {
        let ran = Sandbox::new().run(&["sh", "-c", &format!("exit {code}")]);
        assert_eq!((ran.exit_code(), ran.process.code()), (Some(i64::from(code)), code));
    }
}

fn exception() {
    let ran = Sandbox::new().run(&["python3", "-c", "raise ValueError('no good')"]);
    assert_eq!((ran.exit_code(), ran.process.code(), ran.stdout()), (Some(1), 1, ""));
    assert!(ran.stderr().ends_with("ValueError: no good\n"), "{}", ran.stderr());
}

fn signal() {
    let ran = Sandbox::new().run(&["sh", "-c", "kill -SEGV $$"]);
    assert_eq!((ran.exit_code(), ran.signal(), ran.process.code()), (None, Some(11), 139));
}

fn program_not_found() {
    let ran = Sandbox::new().may_fail().run(&["no-such-program"]);
    assert!([125, 126, 127].contains(&ran.process.code()), "{ran:?}");
    assert!(ran.everything().contains("no-such-program"), "{ran:?}");
}

/// Runs a program that would stay for minutes under a limit of 1 s.
fn ends_at_its_limit(mode: &str) {
    let marker = unique("linger");
    let attack = Attack::new("linger.py").args(&[mode, &marker]);

    let control = attack.host_run().deadline(Duration::from_millis(1500)).run();
    assert!(control.overdue, "on the host it stays: {control:?}");
    kill_marked(&marker);

    let ran = attack.run_in(Sandbox::new().option("--timeout", "1s"));
    assert!(marked_pids(&marker).is_empty(), "its processes live on");
    assert!(ran.timed_out());
    assert_eq!((ran.limit_hit(), ran.process.code()), (Some("wall_time"), 124));
    assert_eq!(ran.stdout(), "begun\n", "what came before the end is kept");
    assert!(ran.process.elapsed < Duration::from_secs(6), "{:?}", ran.process.elapsed);
}

fn timeout() {
    ends_at_its_limit("plain");
}

fn timeout_with_signals_ignored() {
    ends_at_its_limit("deaf");
}

fn timeout_while_stopped() {
    ends_at_its_limit("stopped");
}

/// The main process ends; what it left behind does not.
fn does_not_wait_for(mode: &str) {
    let marker = unique("linger");
    let attack = Attack::new("linger.py").args(&[mode, &marker]);

    let control = attack.host_run().deadline(Duration::from_secs(5)).run();
    assert_eq!(control.text(), "main ends\n");
    assert!(!marked_pids(&marker).is_empty(), "on the host it outlives the main process");
    kill_marked(&marker);

    let ran = attack.run_in(Sandbox::new().option("--timeout", "30s"));
    assert!(marked_pids(&marker).is_empty(), "its processes live on");
    assert_eq!((ran.stdout(), ran.exit_code(), ran.timed_out()), ("main ends\n", Some(0), false));
    assert!(ran.process.elapsed < Duration::from_secs(8), "{:?}", ran.process.elapsed);
}

fn grandchild_that_keeps_stdout_open() {
    does_not_wait_for("grandchild");
}

fn daemon_that_closed_everything() {
    does_not_wait_for("daemon");
}

/// A program that ends does not wait for whoever feeds it.
fn input_that_never_ends() {
    let endless = ["bash", "-c", "exec 0< <(yes); exec \"$@\"", "sh"];
    let sandbox = Sandbox::new().wrapper(&endless).deadline(Duration::from_secs(10));
    let ran = sandbox.run(&["head", "-n1"]);
    assert_eq!((ran.stdout(), ran.exit_code()), ("y\n", Some(0)), "{ran:?}");
    let ran = sandbox.run(&["true"]);
    assert_eq!(ran.exit_code(), Some(0), "{ran:?}");
}

/// No control: on the host this would kill everything that the user has.
fn killing_everything() {
    tests::skip_control("kill_all.py", "it would kill what runs on this host");
    let ran = Attack::new("kill_all.py").in_sandbox();
    assert!(ran.stdout().starts_with("still here\n"), "init survives its children: {ran:?}");
}

/// The most processes with a marker that were seen while `work` ran.
fn most_processes(marker: &str, work: impl FnOnce()) -> usize {
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let counter = scope.spawn(|| {
            let mut most = 0;
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                most = most.max(marked_pids(marker).len());
                std::thread::sleep(Duration::from_millis(20));
            }
            most
        });
        work();
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        counter.join().expect("counting does not panic")
    })
}

fn many_processes() {
    let marker = unique("fork");
    let control = Attack::new("fork_many.py").args(&["100", &marker, "3"]);
    let most = most_processes(&marker, || drop(control.on_host()));
    assert!(most >= 90, "the host has no such limit: {most}");

    let marker = unique("fork");
    let attack = Attack::new("fork_many.py").args(&["1000", &marker, "3"]);
    // The harness's own `casemate` carries the marker on its command line too.
    let own = 3;
    let sandbox = Sandbox::new().option("--pids", "20").option("--timeout", "8s");
    let most = most_processes(&marker, || drop(attack.run_in(sandbox)));
    assert!(most <= 20 + own, "{most} processes at once");
    assert!(marked_pids(&marker).is_empty());
}

fn fork_bomb() {
    let marker = unique("bomb");
    let attack = Attack::new("fork_bomb.sh").args(&[&marker]);
    let mut ended = None;
    let most = most_processes(&marker, || {
        ended = Some(attack.run_in(Sandbox::new().option("--timeout", "2s")));
    });
    let ran = ended.expect("it ran");
    assert!(most <= 64 + 3, "{most} processes at once");
    assert!(ran.timed_out() || ran.limit_hit() == Some("processes"), "{ran:?}");
    assert!(ran.process.elapsed < Duration::from_secs(10), "{:?}", ran.process.elapsed);
    assert!(marked_pids(&marker).is_empty());
}

/// Kills what a control left, all of which the test started.
fn kill_marked(marker: &str) {
    for pid in marked_pids(marker) {
        let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
        if let Some(pid) = pid {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }
    assert!(wait_until(Duration::from_secs(2), || marked_pids(marker).is_empty()));
}
