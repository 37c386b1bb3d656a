//! Many requests: each gets a right answer or a prompt refusal, and nothing
//! piles up.

use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use tests::{Server, Snapshot, private_copy, scratch, trials, unique};

trials! { ; alone: two_hundred_requests, busy_is_said_at_once, a_queue_waits, thousands_of_runs }

/// 200 requests, 50 at a time, 16 slots.
fn two_hundred_requests() {
    let server = Server::start(&["--slots", "16"], &[]);
    let (right, busy, next) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..50 {
            scope.spawn(|| {
                let mut connection = server.connect();
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= 200 {
                        break;
                    }
                    let begun = Instant::now();
                    let body =
                        json!({"code": format!("print({number} * 3)"), "timeout_seconds": 60});
                    let response = connection.post("/v1/exec", &body);
                    match response.status {
                        200 => {
                            let want = format!("{}\n", number * 3);
                            assert_eq!(response.json()["stdout"], want, "{}", response.text());
                            assert_eq!(response.json()["cleanup"], "ok");
                            right.fetch_add(1, Ordering::Relaxed);
                        }
                        429 => {
                            assert!(begun.elapsed() < Duration::from_secs(2), "a prompt refusal");
                            assert!(response.header("retry-after").is_some());
                            assert!(response.text().contains("busy"), "{}", response.text());
                            busy.fetch_add(1, Ordering::Relaxed);
                        }
                        other => panic!("{other}: {}", response.text()),
                    }
                }
            });
        }
    });
    let (right, busy) = (right.into_inner(), busy.into_inner());
    assert_eq!(right + busy, 200);
    assert!(right >= 16, "{right} were run, {busy} refused");
    assert!(busy > 0, "50 at a time are more than 16");
}

fn busy_is_said_at_once() {
    let server = Server::start(&["--slots", "2"], &[]);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let response = server.connect().post("/v1/exec", &json!({"argv": ["sleep", "2"]}));
                assert_eq!(response.status, 200, "{}", response.text());
            });
        }
        std::thread::sleep(Duration::from_millis(800));
        let begun = Instant::now();
        let response = server.connect().post("/v1/exec", &json!({"argv": ["true"]}));
        assert_eq!(response.status, 429, "{}", response.text());
        assert!(begun.elapsed() < Duration::from_millis(500), "{:?}", begun.elapsed());
    });
    assert_eq!(server.connect().post("/v1/exec", &json!({"argv": ["true"]})).status, 200);
}

fn a_queue_waits() {
    let server = Server::start(&["--slots", "1", "--queue", "3", "--queue-wait", "20s"], &[]);
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..6)
            .map(|_| {
                scope.spawn(|| {
                    server.connect().post("/v1/exec", &json!({"argv": ["sleep", "0.7"]})).status
                })
            })
            .collect();
        all.into_iter().map(|one| one.join().expect("an answer")).collect()
    });
    let served = statuses.iter().filter(|&&status| status == 200).count();
    assert_eq!(served, 4, "one runs, three wait, two are refused: {statuses:?}");
    assert_eq!(statuses.iter().filter(|&&status| status == 429).count(), 2, "{statuses:?}");
}

/// Resident memory and descriptors of a process and all below it.
fn held(root: u32) -> (u64, usize) {
    let mut pids = vec![root];
    let mut at = 0;
    while at < pids.len() {
        let tasks = format!("/proc/{}/task", pids[at]);
        for task in std::fs::read_dir(tasks).into_iter().flatten().flatten() {
            let children =
                std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
            pids.extend(children.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
        }
        at += 1;
    }
    let mut memory = 0;
    let mut descriptors = 0;
    for pid in pids {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kibibytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        memory += kibibytes.unwrap_or(0);
        let path = format!("/proc/{pid}/fd");
        descriptors += std::fs::read_dir(Path::new(&path)).map_or(0, Iterator::count);
    }
    (memory, descriptors)
}

fn run_many(server: &Server, count: u32, marker: &str) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut connection = server.connect();
                while next.fetch_add(1, Ordering::Relaxed) < count as usize {
                    let response = connection.post("/v1/exec", &json!({"argv": ["true", marker]}));
                    assert_eq!(response.status, 200, "{}", response.text());
                    assert_eq!(response.json()["cleanup"], "ok", "{}", response.text());
                }
            });
        }
    });
}

/// Memory, descriptors, processes, cgroups, mounts and files stay as they are.
///
/// 1,500 runs by default; `CASEMATE_TEST_RUNS=5000` for the full measure.
fn thousands_of_runs() {
    let folder = scratch();
    let binary = private_copy(folder.path());
    let home = folder.path().join("home");
    std::fs::create_dir(&home).expect("a directory");
    let marker = unique("many");
    let before_start = Snapshot::take(&binary, &marker, Path::new("/nonexistent"));
    {
        let server =
            Server::start_at(&binary, &home, &["--log-level", "warn,server::serve=info"], &[]);
        // Caches and pools fill at first.
        run_many(&server, 200, &marker);
        std::thread::sleep(Duration::from_millis(500));
        let (memory_before, descriptors_before) = held(server.pid());
        let before = Snapshot::take(&binary, &marker, &home);

        let runs = tests::runs(1500);
        run_many(&server, runs, &marker);
        std::thread::sleep(Duration::from_millis(1000));
        let (memory_after, descriptors_after) = held(server.pid());
        let after = Snapshot::take(&binary, &marker, &home);

        let _ = writeln!(
            std::io::stderr(),
            "server and its helpers: {memory_before} KiB, after {runs} runs {memory_after} KiB"
        );
        // A leak of 500 bytes a run would show in the usual 1,500 runs.
        let grown = memory_after.saturating_sub(memory_before);
        assert!(grown < 1024 + u64::from(runs) / 2, "grown by {grown} KiB in {runs} runs");
        assert!(
            descriptors_after <= descriptors_before + 8,
            "from {descriptors_before} to {descriptors_after} descriptors"
        );
        assert!(after.processes.len() <= before.processes.len() + 4, "{:#?}", after.since(&before));
        assert!(after.cgroups.len() <= before.cgroups.len() + 16, "{:#?}", after.since(&before));
        assert_eq!(after.mounts, before.mounts);
        assert!(after.files.len() <= before.files.len() + 1, "{:#?}", after.since(&before));

        server.signal(rustix::process::Signal::TERM);
        let mut server = server;
        assert_eq!(server.wait(Duration::from_secs(10)), 0, "{}", server.log());
    }
    let left = before_start.left_after(
        Duration::from_secs(2),
        &binary,
        &marker,
        Path::new("/nonexistent"),
    );
    assert!(left.is_empty(), "{left:#?}");
}
