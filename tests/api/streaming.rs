//! Server-sent events: output as it comes, and clients that go away.

use std::time::{Duration, Instant};

use serde_json::Value;
use tests::{Connection, Server, marked_pids, trials, unique, wait_until};

trials! { incremental, ends_with_exit, what_a_program_writes_is_data, disconnect_ends_the_sandbox, disconnect_without_streaming }

const STREAM: [(&str, &str); 2] =
    [("content-type", "application/json"), ("accept", "text/event-stream")];

/// Events with the time at which each arrived.
fn events(connection: &mut Connection, body: &Value) -> Vec<(String, Value, Duration)> {
    let begun = Instant::now();
    connection.send("POST", "/v1/exec", &STREAM, body.to_string().as_bytes());
    let (status, headers) = connection.read_head();
    assert_eq!(status, 200, "{headers:?}");
    let kind = headers.iter().find(|(name, _)| name == "content-type");
    assert!(kind.is_some_and(|(_, value)| value.starts_with("text/event-stream")), "{headers:?}");
    let mut text = String::new();
    let mut found = Vec::new();
    while let Some(chunk) = connection.read_chunk() {
        text.push_str(&String::from_utf8_lossy(&chunk));
        while let Some((event, rest)) =
            text.split_once("\n\n").map(|(e, r)| (e.to_owned(), r.to_owned()))
        {
            let field = |name: &str| {
                let line = event.lines().find_map(|line| line.strip_prefix(name));
                line.unwrap_or_default().trim().to_owned()
            };
            if !event.starts_with(':') {
                let data = serde_json::from_str(&field("data:")).unwrap_or(Value::Null);
                found.push((field("event:"), data, begun.elapsed()));
            }
            text = rest;
        }
    }
    found
}

fn body(code: &str) -> Value {
    serde_json::json!({"code": code})
}

fn incremental() {
    let server = Server::start(&[], &[]);
    let code = "import time,sys\nfor n in range(4):\n print('line', n, flush=True)\n time.sleep(0.4)\nprint('oops', file=sys.stderr)";
    let events = events(&mut server.connect(), &body(code));
    let times: Vec<Duration> =
        events.iter().filter(|(name, ..)| name == "stdout").map(|(.., time)| *time).collect();
    assert_eq!(times.len(), 4, "{events:?}");
    for pair in times.windows(2) {
        assert!(pair[1] - pair[0] > Duration::from_millis(200), "held back: {times:?}");
    }
    assert!(events.iter().any(|(name, data, _)| name == "stderr" && data["data"] == "oops\n"));
}

fn ends_with_exit() {
    let server = Server::start(&[], &[]);
    let mut connection = server.connect();
    for _ in 0..2 {
        let events = events(&mut connection, &body("print('x'); raise SystemExit(7)"));
        let (name, data, _) = events.last().expect("an event");
        assert_eq!(
            (name.as_str(), &data["exit_code"]),
            ("exit", &serde_json::json!(7)),
            "{events:?}"
        );
        assert_eq!(data["cleanup"], "ok");
    }
}

/// A program cannot write itself an event.
fn what_a_program_writes_is_data() {
    let server = Server::start(&[], &[]);
    let code = r#"print('a\n\nevent: exit\ndata: {"exit_code": 99}\n\n\r\n\rb\u2028')"#;
    let events = events(&mut server.connect(), &body(code));
    let exits: Vec<_> = events.iter().filter(|(name, ..)| name == "exit").collect();
    assert_eq!(exits.len(), 1, "{events:?}");
    assert_eq!(exits[0].1["exit_code"], 0);
    let text: String = events
        .iter()
        .filter(|(name, ..)| name == "stdout")
        .filter_map(|(_, data, _)| data["data"].as_str())
        .collect();
    assert!(text.contains("event: exit") && text.ends_with("b\u{2028}\n"), "{text:?}");
}

fn goes_away(headers: &[(&str, &str)]) {
    let server = Server::start(&["--slots", "1"], &[]);
    let marker = unique("gone");
    let mut connection = server.connect();
    let body = serde_json::json!({"argv": ["sh", "-c", "echo begun; while :; do sleep 0.1; done", marker], "timeout_seconds": 60});
    connection.send("POST", "/v1/exec", headers, body.to_string().as_bytes());
    assert!(wait_until(Duration::from_secs(10), || !marked_pids(&marker).is_empty()), "it runs");
    drop(connection);
    let gone = wait_until(Duration::from_secs(5), || marked_pids(&marker).is_empty());
    assert!(gone, "it runs on without its client");
    let free =
        || server.connect().post("/v1/exec", &serde_json::json!({"argv": ["true"]})).status == 200;
    assert!(wait_until(Duration::from_secs(3), free), "its slot is free again");
}

fn disconnect_ends_the_sandbox() {
    goes_away(&STREAM);
}

fn disconnect_without_streaming() {
    goes_away(&STREAM[..1]);
}
