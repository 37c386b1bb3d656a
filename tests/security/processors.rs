//! Processor time, measured from outside.

use std::time::{Duration, Instant};

use tests::{Attack, Sandbox, trials, unique};

trials! { ; alone: cpu_share, cpu_share_of_one_that_forks_anew, cpu_time_limit, cpu_time_is_of_all_processes }

/// CPU time of this process's waited-for children cannot tell them apart, so
/// each run's own is read from the result, and compared with what the
/// processes themselves have used as the host counts it.
fn used_by(marker: &str, wall: Duration) -> Duration {
    let mut used = std::collections::HashMap::new();
    let begun = Instant::now();
    while begun.elapsed() < wall {
        for pid in tests::marked_pids(marker) {
            if let Some(ticks) = ticks(pid) {
                used.insert(pid, ticks);
            }
        }
        std::thread::sleep(Duration::from_millis(30));
    }
    Duration::from_millis(used.values().sum::<u64>() * 10)
}

/// User and system time of a process in hundredths of a second.
fn ticks(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    Some(fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?)
}

fn share(sandboxed: bool) -> f64 {
    let marker = unique("burn");
    let attack = Attack::new("burn.py").args(&["2", "4", &marker]);
    let window = Duration::from_millis(3000);
    let used = std::thread::scope(|scope| {
        let run = scope.spawn(|| {
            if sandboxed {
                let sandbox = Sandbox::new().option("--cpus", "0.5").option("--timeout", "20s");
                drop(attack.run_in(sandbox));
            } else {
                drop(attack.on_host());
            }
        });
        let started = || !tests::marked_pids(&marker).is_empty();
        assert!(tests::wait_until(Duration::from_secs(5), started));
        let used = used_by(&marker, window);
        run.join().expect("the run ends");
        used
    });
    used.as_secs_f64() / window.as_secs_f64()
}

fn cpu_share() {
    let free = share(false);
    if free < 0.8 {
        tests::skip_control("burn.py", &format!("the host itself gives only {free:.2} CPUs now"));
    }
    let fenced = share(true);
    assert!(fenced < 0.7, "{fenced:.2} CPUs where 0.5 are granted, {free:.2} without the wall");
}

/// A watcher that looks at processes one by one must count those that ended.
fn cpu_share_of_one_that_forks_anew() {
    let code = "import os,time\nend=time.monotonic()+4\nwhile time.monotonic()<end:\n p=os.fork()\n if p==0:\n  t=time.monotonic()+.03\n  while time.monotonic()<t:\n   pass\n  os._exit(0)\n os.waitpid(p,0)";
    let sandbox = Sandbox::new().option("--cpus", "0.3").option("--timeout", "20s");
    let ran = sandbox.run(&["python3", "-c", code]);
    let used = ran.json["usage"]["cpu_time_ms"].as_f64().expect("a number") / 1000.0;
    let wall = ran.json["times"]["run_ms"].as_f64().expect("a number") / 1000.0;
    assert!(used / wall < 0.45, "{used:.2} s in {wall:.2} s where 0.3 are granted: {ran:?}");
}

fn cpu_time_limit() {
    let marker = unique("burn");
    let attack = Attack::new("burn.py").args(&["1", "4", &marker]);
    let control = attack.on_host();
    assert!(control.elapsed > Duration::from_secs(3), "on the host it burns on");
    let sandbox = Sandbox::new().option("--cpus", "2").option("--cpu-time", "1s");
    let ran = attack.run_in(sandbox.option("--timeout", "20s"));
    assert_eq!(ran.limit_hit(), Some("cpu_time"), "{ran:?}");
    assert_eq!(ran.process.code(), 124);
    let used = ran.json["usage"]["cpu_time_ms"].as_f64().expect("a number");
    assert!((700.0..2500.0).contains(&used), "{used} ms");
}

fn cpu_time_is_of_all_processes() {
    let marker = unique("burn");
    let attack = Attack::new("burn.py").args(&["4", "6", &marker]);
    let sandbox = Sandbox::new().option("--cpus", "2").option("--cpu-time", "1s");
    let ran = attack.run_in(sandbox.option("--timeout", "20s"));
    assert_eq!(ran.limit_hit(), Some("cpu_time"), "{ran:?}");
    let used = ran.json["usage"]["cpu_time_ms"].as_f64().expect("a number");
    assert!(used < 3000.0, "{used} ms of 1000 granted");
}
