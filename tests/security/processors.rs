//! Processor time, measured from outside.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use tests::{Attack, Sandbox, marked_pids, trials, unique, wait_until};

trials! {
    ;
    alone: cpu_share, cpu_share_of_one_that_forks_anew, cpu_share_of_children_nobody_waits_for,
    cpu_share_of_short_children, cpu_share_of_orphans, cpu_share_of_one_whose_name_is_no_text,
    cpu_share_of_threads, cpu_time_limit, cpu_time_is_of_all_processes,
}

/// What marked processes use within `window`, as the host's scheduler counts
/// it: a little less than the truth, as the last moments of each are missed.
fn used_by(marker: &str, window: Duration) -> Duration {
    let mut used = HashMap::new();
    let begun = Instant::now();
    let first: HashMap<u32, u64> =
        marked_pids(marker).into_iter().filter_map(|pid| Some((pid, nanoseconds(pid)?))).collect();
    while begun.elapsed() < window {
        for pid in marked_pids(marker) {
            if let Some(now) = nanoseconds(pid) {
                used.insert(pid, now);
            }
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let since = |(pid, now): (&u32, &u64)| now.saturating_sub(*first.get(pid).unwrap_or(&0));
    Duration::from_nanos(used.iter().map(since).sum())
}

/// Time that all threads of a process have been on a processor.
fn nanoseconds(pid: u32) -> Option<u64> {
    let mut sum = 0;
    for task in std::fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
        let text = std::fs::read_to_string(task.path().join("schedstat")).unwrap_or_default();
        sum += text.split(' ').next()?.parse::<u64>().unwrap_or(0);
    }
    Some(sum)
}

/// CPUs that an attack gets for itself, measured for 3 s of its run.
fn share(attack: &Attack, marker: &str, sandbox: Option<Sandbox>) -> f64 {
    let window = Duration::from_secs(3);
    let used = std::thread::scope(|scope| {
        let run = scope.spawn(move || match sandbox {
            Some(sandbox) => drop(attack.run_in(sandbox)),
            None => drop(attack.on_host()),
        });
        assert!(wait_until(Duration::from_secs(5), || !marked_pids(marker).is_empty()));
        let used = used_by(marker, window);
        run.join().expect("the run ends");
        used
    });
    used.as_secs_f64() / window.as_secs_f64()
}

fn is_shared(file: &str, arguments: &[&str]) {
    let marker = unique("burn");
    let mut all = arguments.to_vec();
    all.push(&marker);
    let attack = Attack::new(file).args(&all);
    let free = share(&attack, &marker, None);
    if free < 0.5 {
        let why = format!("the host itself gives only {free:.2} CPUs now");
        tests::skip_control(&format!("{file} {}", arguments[0]), &why);
    }
    let sandbox = Sandbox::new().option("--cpus", "0.3").option("--timeout", "20s");
    let fenced = share(&attack, &marker, Some(sandbox));
    assert!(fenced < 0.45, "{fenced:.2} CPUs where 0.3 are granted, {free:.2} without the wall");
}

fn cpu_share() {
    is_shared("burn.py", &["2", "4"]);
}

fn cpu_share_of_one_that_forks_anew() {
    is_shared("evade_watcher.py", &["waited-children"]);
}

fn cpu_share_of_children_nobody_waits_for() {
    is_shared("evade_watcher.py", &["ignored-children"]);
}

fn cpu_share_of_short_children() {
    is_shared("evade_watcher.py", &["short-children"]);
}

fn cpu_share_of_orphans() {
    is_shared("evade_watcher.py", &["orphans"]);
}

fn cpu_share_of_one_whose_name_is_no_text() {
    is_shared("evade_watcher.py", &["name-processor"]);
}

fn cpu_share_of_threads() {
    is_shared("evade_watcher.py", &["threads"]);
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
