//! Requests that are refused, and keys.

use std::process::Command;

use serde_json::{Value, json};
use tests::{Server, casemate, scratch, trials};

trials! {
    bad_json_names_the_field, other_methods_and_paths, body_too_large, web_pages, keys, revoked_key,
    rate_limit, no_keys_and_an_open_address, unusual_requests,
}

fn error_of(text: &Value) -> String {
    text["error"].as_str().unwrap_or_else(|| panic!("no error in {text}")).to_owned()
}

fn bad_json_names_the_field() {
    let server = Server::start(&[], &[]);
    let mut connection = server.connect();
    let cases = [
        (r#"{"code": 5}"#, "code"),
        (r#"{"code": "1", "timeout_seconds": "soon"}"#, "timeout_seconds"),
        (r#"{"code": "1", "timeout_seconds": -1}"#, "timeout_seconds"),
        (r#"{"code": "1", "limits": {"memory": "lots"}}"#, "memory"),
        (r#"{"code": "1", "limits": {"processes": -3}}"#, "processes"),
        (r#"{"code": "1", "files": [{"path": 7}]}"#, "path"),
        (r#"{"code": "1", "env": {"A": 1}}"#, "env"),
        (r#"{"argv": []}"#, "argv"),
        (r"{}", "code"),
        (r#"{"code": "#, ""),
        ("", ""),
        ("[]", ""),
        ("\u{0}", ""),
    ];
    for (body, field) in cases {
        let headers = [("content-type", "application/json")];
        let response = connection.request("POST", "/v1/exec", &headers, body.as_bytes());
        assert_eq!(response.status, 400, "{body}: {}", response.text());
        let error = error_of(&response.json());
        assert!(error.contains(field), "{body}: {error}");
    }
}

fn other_methods_and_paths() {
    let server = Server::start(&[], &[]);
    let mut connection = server.connect();
    let cases = [
        ("GET", "/v1/exec", 405),
        ("DELETE", "/v1/exec", 405),
        ("GET", "/v1/nothing", 404),
        ("GET", "/", 404),
        ("GET", "/../../etc/passwd", 404),
        ("GET", "/v1/%2e%2e/%2e%2e/etc/passwd", 404),
    ];
    for (method, path, status) in cases {
        let response = connection.request(method, path, &[], b"");
        assert_eq!(response.status, status, "{method} {path}");
        if path != "/" {
            let _ = error_of(&response.json());
        }
    }
}

fn body_too_large() {
    let server = Server::start(&["--max-body", "64K"], &[]);
    let code = "#".repeat(100_000);
    let response = server.connect().post("/v1/exec", &json!({"code": code}));
    assert_eq!(response.status, 413, "{}", response.text());
    let _ = error_of(&response.json());
    assert_eq!(server.connect().post("/v1/exec", &json!({"code": "print(1)"})).status, 200);
}

/// A page in a browser on this machine must not reach an open server.
fn web_pages() {
    let server = Server::start(&[], &[]);
    let body = br#"{"code": "print(1)"}"#;
    let foreign: [&[(&str, &str)]; 3] = [
        &[("content-type", "application/json"), ("origin", "http://evil.example")],
        &[("content-type", "text/plain")],
        &[("content-type", "application/x-www-form-urlencoded")],
    ];
    for headers in foreign {
        let response = server.connect().request("POST", "/v1/exec", headers, body);
        assert!(matches!(response.status, 400 | 403 | 415), "{headers:?}: {}", response.status);
    }
    let mut stream = std::net::TcpStream::connect(server.address).expect("it listens");
    let rebound = "GET /v1/health HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n";
    std::io::Write::write_all(&mut stream, rebound.as_bytes()).expect("it is sent");
    let mut text = String::new();
    std::io::Read::read_to_string(&mut stream, &mut text).expect("an answer");
    assert!(text.starts_with("HTTP/1.1 4"), "{text}");
}

/// A database with one key, and the key.
fn with_key(home: &std::path::Path) -> (String, String) {
    let database = home.join("keys.sqlite").display().to_string();
    let output = Command::new(casemate())
        .args(["keys", "create", "laptop", "--database", &database])
        .env("HOME", home)
        .output()
        .expect("casemate runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    let key = text.split_whitespace().max_by_key(|word| word.len()).expect("a key").to_owned();
    let stored = std::fs::read(home.join("keys.sqlite")).expect("a database");
    let found = stored.windows(key.len()).any(|window| window == key.as_bytes());
    assert!(!found, "only its hash is stored");
    (database, key)
}

fn keys() {
    let home = scratch();
    let (database, key) = with_key(home.path());
    let server = Server::start(&["--database", &database], &[]);
    let send = |headers: &[(&str, &str)]| {
        let mut all = vec![("content-type", "application/json")];
        all.extend(headers);
        server.connect().request("POST", "/v1/exec", &all, br#"{"code": "print(1)"}"#)
    };
    let bearer = format!("Bearer {key}");
    assert_eq!(send(&[("authorization", &bearer)]).status, 200);
    let almost = format!("Bearer {}x", &key[..key.len() - 1]);
    for headers in [
        vec![],
        vec![("authorization", "Bearer wrong")],
        vec![("authorization", almost.as_str())],
        vec![("authorization", "Basic abc")],
        vec![("authorization", "Bearer ")],
        vec![("authorization", key.as_str())],
    ] {
        let response = send(&headers);
        assert_eq!(response.status, 401, "{headers:?}: {}", response.text());
        let _ = error_of(&response.json());
    }
    assert_eq!(server.connect().get("/v1/health").status, 200, "health needs no key");
}

fn revoked_key() {
    let home = scratch();
    let (database, key) = with_key(home.path());
    let server = Server::start(&["--database", &database], &[]);
    let bearer = format!("Bearer {key}");
    let headers = [("content-type", "application/json"), ("authorization", bearer.as_str())];
    let mut connection = server.connect();
    let body = br#"{"code": "print(1)"}"#;
    assert_eq!(connection.request("POST", "/v1/exec", &headers, body).status, 200);
    let revoke = ["keys", "revoke", "laptop", "--database", &database];
    let status = Command::new(casemate()).args(revoke).env("HOME", home.path()).status();
    assert!(status.is_ok_and(|status| status.success()));
    assert_eq!(connection.request("POST", "/v1/exec", &headers, body).status, 401);
}

fn rate_limit() {
    let home = scratch();
    let (database, key) = with_key(home.path());
    let server = Server::start(&["--database", &database, "--rate-limit", "5"], &[]);
    let bearer = format!("Bearer {key}");
    let headers = [("content-type", "application/json"), ("authorization", bearer.as_str())];
    // A refusal may close its connection.
    let send = || server.connect().request("POST", "/v1/exec", &headers, br#"{"argv": ["true"]}"#);
    let mut refused = 0;
    for _ in 0..30 {
        let response = send();
        if response.status == 429 {
            refused += 1;
            let after = response.header("retry-after").and_then(|text| text.parse::<u64>().ok());
            assert!(after.is_some_and(|seconds| seconds <= 60), "{:?}", response.headers);
            let _ = error_of(&response.json());
        } else {
            assert_eq!(response.status, 200, "{}", response.text());
        }
    }
    assert!(refused > 5, "{refused} of 30 at once at 5 a second");
    std::thread::sleep(std::time::Duration::from_millis(1500));
    let response = send();
    assert_eq!(response.status, 200, "it recovers");
}

fn no_keys_and_an_open_address() {
    let home = scratch();
    let database = home.path().join("none.sqlite").display().to_string();
    let output = Command::new("timeout")
        .args(["10"])
        .arg(casemate())
        .args(["serve", "--listen", "0.0.0.0:0", "--database", &database])
        .env("HOME", home.path())
        .output()
        .expect("casemate runs");
    assert!(!output.status.success() && output.status.code() != Some(124), "{output:?}");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("keys create"), "it says what to do: {text}");
}

fn unusual_requests() {
    let server = Server::start(&[], &[]);
    // What is no HTTP closes its connection and harms nobody.
    for garbage in [
        "\u{16}\u{3}\u{1}\u{2}",
        "GET / HTTP/9.9\r\n\r\n",
        "\r\n\r\n\r\n",
        "POST /v1/exec HTTP/1.1\r\nhost: localhost\r\ncontent-length: 99999999999999999999\r\n\r\n",
    ] {
        let mut stream = std::net::TcpStream::connect(server.address).expect("it listens");
        let _ = std::io::Write::write_all(&mut stream, garbage.as_bytes());
    }
    let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    let headers = [("content-type", "application/json")];
    let response = server.connect().request("POST", "/v1/exec", &headers, deep.as_bytes());
    assert_eq!(response.status, 400);
    let nul = json!({"argv": ["echo", "a\u{0}b"]});
    let response = server.connect().post("/v1/exec", &nul);
    assert!(matches!(response.status, 400 | 422), "{}", response.text());
    let many: Vec<String> = (0..50_000).map(|n| n.to_string()).collect();
    let response = server.connect().post("/v1/exec", &json!({"argv": many}));
    assert!(response.status >= 400 || response.status == 200, "{}", response.status);
    assert_eq!(server.connect().post("/v1/exec", &json!({"argv": ["true"]})).status, 200);
}
