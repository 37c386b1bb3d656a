//! `POST /v1/exec` as server-sent events.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::StreamExt as _;
use reqwest::Response;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

use crate::harness::{TestServer, error};

/// Reads events as they come, with the time of each.
async fn events(response: Response) -> Vec<(String, Value, Instant)> {
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let mut body = response.bytes_stream();
    let (mut text, mut events) = (String::new(), Vec::new());
    while let Some(chunk) = body.next().await {
        text.push_str(std::str::from_utf8(&chunk.unwrap()).unwrap());
        while let Some((event, rest)) = text.split_once("\n\n") {
            let field = |name: &str| {
                let prefix = format!("{name}: ");
                event.lines().find_map(|line| line.strip_prefix(&prefix)).map(str::to_owned)
            };
            if let (Some(name), Some(data)) = (field("event"), field("data")) {
                events.push((name, serde_json::from_str(&data).unwrap(), Instant::now()));
            }
            text = rest.to_owned();
        }
    }
    assert_eq!(text, "");
    events
}

async fn stream(server: &TestServer, body: Value) -> Response {
    server.post("/v1/exec", &body).header("accept", "text/event-stream").send().await.unwrap()
}

/// All that one stream carried, byte for byte.
fn joined(events: &[(String, Value, Instant)], name: &str) -> Vec<u8> {
    let pieces = events.iter().filter(|event| event.0 == name).map(|(_, data, _)| {
        let text = data["data"].as_str().unwrap();
        match data.get("base64") {
            Some(flag) => {
                assert_eq!(flag, true);
                STANDARD.decode(text).unwrap()
            }
            None => text.as_bytes().to_vec(),
        }
    });
    pieces.flatten().collect()
}

#[tokio::test]
async fn events_come_as_they_happen() {
    let server = TestServer::start().await;
    let code = "import sys, time
print('one', flush=True); time.sleep(0.4)
print('two', file=sys.stderr, flush=True); time.sleep(0.4)
print('three', flush=True); sys.exit(5)";
    let events = events(stream(&server, json!({"code": code, "get": ["x"]})).await).await;
    let short: Vec<_> =
        events.iter().map(|(name, data, _)| (name.as_str(), data["data"].as_str())).collect();
    let want = [
        ("stdout", Some("one\n")),
        ("stderr", Some("two\n")),
        ("stdout", Some("three\n")),
        ("exit", None),
    ];
    assert_eq!(short, want);
    assert!(events[2].2 - events[0].2 > Duration::from_millis(600), "as it happens");
    let exit = &events[3].1;
    assert_eq!((&exit["exit_code"], &exit["cleanup"]), (&json!(5), &json!("ok")), "{exit}");
    assert!(
        exit["id"].is_string() && exit["total_time_ms"].is_number() && exit["usage"].is_object()
    );
    assert!(exit["files"][0]["error"].is_string());
    assert!(exit.get("stdout").is_none(), "output is not sent twice");
}

#[tokio::test]
async fn no_character_is_mangled() {
    let server = TestServer::start().await;
    let cases: [(&str, &str, &[u8], bool); 4] = [
        ("a character in two", r"b'\xe2\x82', b'\xac'", "€".as_bytes(), true),
        ("a byte at a time", r"b'\xf0', b'\x9f', b'\x98', b'\x80!'", "😀!".as_bytes(), true),
        ("not UTF-8", r"b'a\xff\xfe', b'b'", b"a\xff\xfeb", false),
        ("broken off", r"b'a', b'\xe2\x82'", b"a\xe2\x82", false),
    ];
    for (name, chunks, want, text) in cases {
        let code = format!(
            "import os, time\nfor c in [{chunks}]:\n os.write(1, c); os.write(2, c); time.sleep(0.05)"
        );
        let events = events(stream(&server, json!({"code": code})).await).await;
        for output in ["stdout", "stderr"] {
            assert_eq!(joined(&events, output), want, "{name}");
        }
        let binary = events.iter().any(|(_, data, _)| data.get("base64").is_some());
        assert_eq!(binary, !text, "{name}");
    }
}

#[tokio::test]
async fn output_cannot_forge_an_event() {
    let server = TestServer::start().await;
    let forged = "\n\nevent: exit\ndata: {\"exit_code\":0}\n\n\r\r: ";
    let code = format!("import sys; sys.stdout.write({forged:?}); sys.exit(9)");
    let events = events(stream(&server, json!({"code": code})).await).await;
    assert_eq!(joined(&events, "stdout"), forged.as_bytes());
    let exits: Vec<_> = events.iter().filter(|event| event.0 == "exit").collect();
    assert_eq!(exits.len(), 1);
    assert_eq!(exits[0].1["exit_code"], 9);
}

#[tokio::test]
async fn errors_before_and_in_a_stream() {
    let server = TestServer::start().await;
    // Before: an answer like any other.
    let (status, _) = error(stream(&server, json!({"code": "", "language": "x"})).await).await;
    assert_eq!(status, 400);
    // In: an event, the last.
    let response = stream(&server, json!({"argv": ["no-such-program"]})).await;
    let id = response.headers()["x-request-id"].to_str().unwrap().to_owned();
    let events = events(response).await;
    assert_eq!((events.len(), events[0].0.as_str()), (1, "error"));
    assert!(events[0].1["error"].as_str().unwrap().contains("not found"));
    assert_eq!(events[0].1["request_id"], id.as_str());
}

/// A client that does not read keeps neither the program nor its slot.
#[tokio::test]
async fn slow_readers_hold_no_slot() {
    let server = TestServer::with(|config| config.slots = 1).await;
    let code = "import sys; sys.stdout.write('x' * 8_000_000)";
    let response =
        stream(&server, json!({"code": code, "limits": {"output": "8M"}, "timeout_seconds": 60}))
            .await;
    server
        .until("the sandbox is gone", |server| server.created() == 1 && server.wall.live() == 0)
        .await;
    assert_eq!(server.exec(json!({"code": "print(1)"})).await["stdout"], "1\n");
    let events = events(response).await;
    assert_eq!(joined(&events, "stdout").len(), 8_000_000);
    assert_eq!(events.last().unwrap().1["exit_code"], 0);
}
