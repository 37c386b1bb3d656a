//! Starting, stopping, and being killed.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;
use tests::{Server, Snapshot, marked_pids, private_copy, scratch, trials, unique, wait_until};

trials! { graceful_stop, drain_time_is_bounded, nothing_of_programs_in_the_log; alone: killed_and_started_again, killed_with_its_group }

fn linger(marker: &str, seconds: &str) -> serde_json::Value {
    let code = format!("import time; time.sleep({seconds}); print('done')");
    json!({"argv": ["python3", "-c", code, marker], "timeout_seconds": 60})
}

fn graceful_stop() {
    let mut server = Server::start(&["--drain", "20s"], &[]);
    let marker = unique("graceful");
    let address = server.address;
    let running = std::thread::spawn({
        let body = linger(&marker, "2");
        move || tests::Connection::open(address).post("/v1/exec", &body)
    });
    assert!(wait_until(Duration::from_secs(10), || !marked_pids(&marker).is_empty()));
    std::thread::sleep(Duration::from_millis(300));
    server.signal(Signal::TERM);
    let response = running.join().expect("an answer");
    assert_eq!(response.json()["stdout"], "done\n", "it gets its time: {}", response.text());
    assert_eq!(server.wait(Duration::from_secs(10)), 0, "{}", server.log());
    assert!(std::net::TcpStream::connect(address).is_err(), "nobody listens any more");
    assert!(marked_pids(&marker).is_empty());
}

fn drain_time_is_bounded() {
    let mut server = Server::start(&["--drain", "1s"], &[]);
    let marker = unique("drain");
    let mut connection = server.connect();
    let body = linger(&marker, "50").to_string();
    connection.send("POST", "/v1/exec", &[("content-type", "application/json")], body.as_bytes());
    assert!(wait_until(Duration::from_secs(10), || !marked_pids(&marker).is_empty()));
    server.signal(Signal::TERM);
    let begun = Instant::now();
    let _ = server.wait(Duration::from_secs(15));
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    let gone = wait_until(Duration::from_secs(2), || marked_pids(&marker).is_empty());
    assert!(gone, "it runs on after the server");
}

fn nothing_of_programs_in_the_log() {
    let server = Server::start(&["--log-level", "trace"], &[]);
    let (code, output, variable) = (unique("code"), unique("output"), unique("variable"));
    let reversed: String = output.chars().rev().collect();
    let body = json!({
        "code": format!("print('{reversed}'[::-1]) # {code}"),
        "env": {"GIVEN": variable},
        "stdin": variable,
    });
    let response = server.connect().post("/v1/exec", &body);
    assert!(response.text().contains(&output), "{}", response.text());
    std::thread::sleep(Duration::from_millis(300));
    let log = server.log();
    for secret in [&code, &output, &variable] {
        assert!(!log.contains(secret.as_str()), "{secret}: {log}");
    }
}

/// A copy of the program, a home for it, and what there was before.
struct Place {
    _folder: tempfile::TempDir,
    binary: PathBuf,
    home: PathBuf,
    marker: String,
    before: Snapshot,
}

impl Place {
    fn new() -> Self {
        let folder = scratch();
        let binary = private_copy(folder.path());
        let home = folder.path().join("home");
        std::fs::create_dir(&home).expect("a directory");
        let marker = unique("killed");
        let before = Snapshot::take(&binary, &marker, Path::new("/nonexistent"));
        Self { _folder: folder, binary, home, marker, before }
    }

    fn start_busy(&self) -> Server {
        let server = Server::start_at(&self.binary, &self.home, &[], &[]);
        for number in 0..3 {
            let mut connection = server.connect();
            let marker = format!("{}-{number}", self.marker);
            let body = linger(&marker, "50").to_string();
            let headers = [("content-type", "application/json")];
            connection.send("POST", "/v1/exec", &headers, body.as_bytes());
            assert!(wait_until(Duration::from_secs(10), || !marked_pids(&marker).is_empty()));
            std::mem::forget(connection);
        }
        server
    }

    fn left(&self) -> Vec<String> {
        self.before.left_after(
            Duration::from_secs(2),
            &self.binary,
            &self.marker,
            Path::new("/nonexistent"),
        )
    }
}

fn killed_and_started_again() {
    let place = Place::new();
    let server = place.start_busy();
    server.signal(Signal::KILL);
    drop(server);
    let programs = wait_until(Duration::from_secs(2), || marked_pids(&place.marker).is_empty());
    assert!(programs, "programs die with their server");
    let mut server = Server::start_at(&place.binary, &place.home, &[], &[]);
    let response = server.connect().post("/v1/exec", &json!({"code": "print(1)"}));
    assert_eq!(response.json()["stdout"], "1\n", "{}", response.text());
    server.signal(Signal::TERM);
    assert_eq!(server.wait(Duration::from_secs(10)), 0, "{}", server.log());
    let left = place.left();
    assert!(left.is_empty(), "{left:#?}");
}

fn killed_with_its_group() {
    let place = Place::new();
    // Dropping kills the whole process group, as a terminal that closes might.
    drop(place.start_busy());
    let programs = wait_until(Duration::from_secs(2), || marked_pids(&place.marker).is_empty());
    assert!(programs, "programs die with their server");
    let server = Server::start_at(&place.binary, &place.home, &[], &[]);
    drop(server.connect().post("/v1/exec", &json!({"argv": ["true"]})));
    server.signal(Signal::TERM);
    let mut server = server;
    assert_eq!(server.wait(Duration::from_secs(10)), 0, "{}", server.log());
    let left = place.left();
    assert!(left.is_empty(), "{left:#?}");
}
