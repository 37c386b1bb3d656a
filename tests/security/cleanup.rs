//! Nothing is left: after ordinary ends, after signals, and after `casemate`
//! itself was killed.

use std::path::PathBuf;
use std::time::Duration;

use rustix::process::Signal;
use tests::{
    Attack, Live, Sandbox, Sleeper, Snapshot, marked_pids, scratch, trials, unique, wait_until,
};

trials! {
    terminated, interrupted, hung_up;
    alone: killed, killed_while_it_starts, process_group_killed, killed_with_a_daemon_inside,
    a_hundred_runs, many_at_once,
}

/// A copy of `casemate` with a `TMPDIR` of its own, so that what it leaves can
/// be told from what others leave.
struct Bench {
    _folder: tempfile::TempDir,
    binary: PathBuf,
    temporary: PathBuf,
    marker: String,
    before: Snapshot,
}

impl Bench {
    fn new() -> Self {
        let folder = scratch();
        let binary = tests::private_copy(folder.path());
        let temporary = folder.path().join("tmp");
        std::fs::create_dir(&temporary).expect("a directory");
        let marker = unique("cleanup");
        let before = Snapshot::take(&binary, &marker, &temporary);
        Self { _folder: folder, binary, temporary, marker, before }
    }

    fn sandbox(&self) -> Sandbox {
        let sandbox = Sandbox::new().binary(&self.binary).outer_env("TMPDIR", &self.temporary);
        sandbox.option("--timeout", "60s")
    }

    fn start(&self, mode: &str) -> Live {
        let attack = Attack::new("linger.py").args(&[mode, &self.marker]);
        let live = attack.start_in(self.sandbox());
        let inside = || {
            marked_pids(&self.marker).into_iter().any(|pid| {
                std::fs::read_link(format!("/proc/{pid}/exe"))
                    .is_ok_and(|exe| exe.to_string_lossy().contains("python"))
            })
        };
        assert!(wait_until(Duration::from_secs(10), inside), "it runs");
        live
    }

    fn assert_clean(&self, limit: Duration) {
        let left = self.before.left_after(limit, &self.binary, &self.marker, &self.temporary);
        assert!(left.is_empty(), "left: {left:#?}");
    }
}

const PROMPTLY: Duration = Duration::from_secs(2);

fn ends_on(signal: Signal) {
    let bench = Bench::new();
    let live = bench.start("deaf");
    let begun = std::time::Instant::now();
    live.signal(signal);
    let ran = live_end(live);
    assert!(begun.elapsed() < Duration::from_secs(5), "{ran:?}");
    bench.assert_clean(PROMPTLY);
}

fn live_end(live: Live) -> tests::Ran {
    // Ended from outside, it need not print a result.
    live.may_fail().wait()
}

fn terminated() {
    ends_on(Signal::TERM);
}

fn interrupted() {
    ends_on(Signal::INT);
}

fn hung_up() {
    ends_on(Signal::HUP);
}

/// Without a wall, the child of a killed parent lives on: the control of all
/// the tests below.
fn control_orphan() {
    let marker = unique("orphan");
    let mut parent = std::process::Command::new("sh")
        .args(["-c", "sh -c 'while :; do sleep 1; done' \"$0\" & wait", &marker])
        .spawn()
        .expect("a shell");
    assert!(wait_until(Duration::from_secs(5), || marked_pids(&marker).len() >= 2));
    parent.kill().expect("it can be killed");
    parent.wait().expect("it is gone");
    std::thread::sleep(Duration::from_millis(300));
    let orphans = marked_pids(&marker);
    assert!(!orphans.is_empty(), "the orphan lives");
    for pid in orphans {
        let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw).expect("a pid");
        let _ = rustix::process::kill_process(pid, Signal::KILL);
    }
}

fn killed() {
    control_orphan();
    for mode in ["plain", "deaf", "stopped"] {
        let bench = Bench::new();
        let live = bench.start(mode);
        live.signal(Signal::KILL);
        drop(live_end(live));
        bench.assert_clean(PROMPTLY);
    }
}

fn killed_while_it_starts() {
    for wait in [0, 1, 2, 3, 5, 8, 12, 18, 25, 35, 50] {
        let bench = Bench::new();
        let attack = Attack::new("linger.py").args(&["plain", &bench.marker]);
        let live = attack.start_in(bench.sandbox());
        std::thread::sleep(Duration::from_millis(wait));
        live.signal(Signal::KILL);
        drop(live_end(live));
        bench.assert_clean(PROMPTLY);
    }
}

fn process_group_killed() {
    let bench = Bench::new();
    let live = bench.start("deaf");
    live.kill_group();
    drop(live_end(live));
    bench.assert_clean(PROMPTLY);
}

fn killed_with_a_daemon_inside() {
    let bench = Bench::new();
    let code = "import os,sys,time\nif os.fork()==0:\n os.setsid()\n if os.fork()==0:\n  os.closerange(0,64)\n  time.sleep(600)\n os._exit(0)\ntime.sleep(600)";
    let live = bench.sandbox().start(&["python3", "-c", code, &bench.marker]);
    assert!(wait_until(Duration::from_secs(5), || marked_pids(&bench.marker).len() >= 3));
    std::thread::sleep(Duration::from_millis(300));
    live.signal(Signal::KILL);
    drop(live_end(live));
    bench.assert_clean(PROMPTLY);
}

fn a_hundred_runs() {
    let bench = Bench::new();
    let runs = tests::runs(100);
    for number in 0..runs {
        let ran =
            bench.sandbox().run(&["sh", "-c", "echo $0 $1", &bench.marker, &number.to_string()]);
        assert_eq!(ran.stdout(), format!("{} {number}\n", bench.marker), "{ran:?}");
    }
    bench.assert_clean(PROMPTLY);
}

fn many_at_once() {
    let bench = Bench::new();
    let sleeper = Sleeper::new(&unique("sleeper"), "none");
    let live: Vec<Live> = (0..12)
        .map(|number: u32| {
            let text = number.to_string();
            bench.sandbox().start(&["sh", "-c", "sleep 0.5; echo $1", &bench.marker, &text])
        })
        .collect();
    for (number, live) in live.into_iter().enumerate() {
        assert_eq!(live.wait().stdout(), format!("{number}\n"));
    }
    bench.assert_clean(PROMPTLY);
    drop(sleeper);
}
