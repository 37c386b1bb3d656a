//! HTTP itself: wrong paths, wrong bodies, slow and large requests.

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

use crate::harness::{TestServer, error};

#[tokio::test]
async fn every_refusal_has_the_same_shape() {
    let server = TestServer::start().await;
    let cases = [
        (Method::GET, "/", "", 404),
        (Method::POST, "/v1/exec/", "{}", 404),
        (Method::GET, "/v1/exec/x%0a%1b", "", 404),
        (Method::GET, "/v1/exec", "", 405),
        (Method::PUT, "/v1/exec/batch", "{}", 405),
        (Method::POST, "/v1/health", "{}", 405),
        (Method::POST, "/v1/exec", "", 400),
        (Method::POST, "/v1/exec", "{", 400),
        (Method::POST, "/v1/exec", "[\"print(42)\",null]", 400),
        (Method::POST, "/v1/exec", "{\"code\":\"\\ud800\"}", 400),
    ];
    for (method, path, body, want) in cases {
        let request = server.client.request(method.clone(), server.url(path));
        let request = request.header("content-type", "application/json").body(body);
        let (status, said) = error(request.send().await.unwrap()).await;
        assert_eq!(status, want, "{method} {path} {body}: {said}");
        if want == 400 {
            let what =
                if body.starts_with('[') { "must be a JSON object" } else { "line 1 column" };
            assert!(said.contains(what), "{body}: {said}");
        }
    }
}

#[tokio::test]
async fn request_ids() {
    let server = TestServer::start().await;
    let ask = async |id: &str| {
        let request = server.client.get(server.url("/v1/health")).header("x-request-id", id);
        request.send().await.unwrap().headers()["x-request-id"].to_str().unwrap().to_owned()
    };
    assert_eq!(ask("my-id.7").await, "my-id.7");
    for id in ["with space", "a;b", &"x".repeat(200)] {
        assert_eq!(ask(id).await.len(), 36, "{id}");
    }
}

#[tokio::test]
async fn large_bodies_are_refused() {
    let server = TestServer::with(|config| config.max_body = 100_000).await;
    let of = |size: usize| json!({"argv": ["echo", "ok"], "stdin": "x".repeat(size)}).to_string();
    let post = |body: reqwest::Body| {
        let request = server.client.post(server.url("/v1/exec"));
        request.header("content-type", "application/json").body(body).send()
    };
    assert_eq!(post(of(99_000).into()).await.unwrap().status(), 200);
    let (status, said) = error(post(of(200_000).into()).await.unwrap()).await;
    assert!(status == 413 && said.contains("100000"), "{status} {said}");
    // In chunks, without a length.
    let chunks = (0..4).map(|_| Ok::<_, std::io::Error>(vec![b' '; 50_000]));
    let body = reqwest::Body::wrap_stream(futures_util::stream::iter(chunks));
    assert_eq!(error(post(body).await.unwrap()).await.0, 413);
    // Far too large by its own account: refused before it is sent.
    let mut raw = TcpStream::connect(server.address).await.unwrap();
    raw.write_all(
        b"POST /v1/exec HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
          Content-Length: 99999999999\r\n\r\n",
    )
    .await
    .unwrap();
    let mut answer = String::new();
    raw.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    assert_eq!(server.created(), 1);
}

/// A refusal that needs no body reaches a client that sends all of it first.
#[tokio::test]
async fn refusals_reach_clients_that_still_send() {
    let server = TestServer::start().await;
    let key = server.keys().await.create("k").await.unwrap();
    let body = vec![b' '; 5 << 20];
    let (json, wrong) = ("application/json", "cm_wrong");
    let cases = [
        // path           key    type          status
        ("/v1/exec", wrong, json, "401"),
        ("/v1/exec", &key, "text/plain", "415"),
        ("/v1/nothing", &key, json, "404"),
        ("/v1/health", &key, json, "405"),
    ];
    for (path, key, kind, status) in cases {
        let mut raw = TcpStream::connect(server.address).await.unwrap();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n\
             Content-Type: {kind}\r\nContent-Length: {}\r\n",
            body.len()
        );
        for _ in 0..2 {
            raw.write_all(format!("{head}\r\n").as_bytes()).await.unwrap();
            raw.write_all(&body).await.unwrap();
            let mut answer = [0; 12];
            raw.read_exact(&mut answer).await.unwrap();
            assert_eq!(answer, format!("HTTP/1.1 {status}").as_bytes(), "{path}");
            // The connection is still good.
            let mut rest = Vec::new();
            while !rest.ends_with(b"\"}") {
                assert_ne!(raw.read_buf(&mut rest).await.unwrap(), 0, "{path}");
            }
        }
        // Who asks first is told without sending.
        let asking = format!("{head}Expect: 100-continue\r\n\r\n");
        raw.write_all(asking.as_bytes()).await.unwrap();
        let mut answer = String::new();
        raw.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
        assert!(answer.contains("connection: close"), "{answer}");
    }
}

#[tokio::test]
async fn slow_requests_are_ended() {
    let server = TestServer::with(|config| {
        config.header_timeout = Duration::from_millis(300);
        config.body_timeout = Duration::from_millis(300);
    })
    .await;
    let head = "POST /v1/exec HTTP/1.1\r\nHost: localhost\r\n";
    let body = format!("{head}Content-Type: application/json\r\nContent-Length: 9\r\n\r\n{{");
    for (name, sent, want) in
        [("nothing", "", ""), ("head", head, ""), ("body", &body, "HTTP/1.1 408")]
    {
        let mut raw = TcpStream::connect(server.address).await.unwrap();
        raw.write_all(sent.as_bytes()).await.unwrap();
        let (asked, mut answer) = (Instant::now(), String::new());
        raw.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with(want), "{name}: {answer}");
        assert!((200..3000).contains(&asked.elapsed().as_millis()), "{name}");
    }
    // A program may run for longer than that.
    let got = server.exec(json!({"code": "import time; time.sleep(0.8); print(1)"})).await;
    assert_eq!(got["stdout"], "1\n");
}

#[tokio::test]
async fn heads_and_connections_are_bounded() {
    let server = TestServer::with(|config| config.max_connections = 2).await;
    let mut raw = TcpStream::connect(server.address).await.unwrap();
    let long =
        format!("GET /v1/health HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n", "x".repeat(40_000));
    raw.write_all(long.as_bytes()).await.unwrap();
    let mut answer = String::new();
    let _ = raw.read_to_string(&mut answer).await;
    assert!(answer.starts_with("HTTP/1.1 431"), "{answer}");
    drop(raw);

    let held = [
        TcpStream::connect(server.address).await.unwrap(),
        TcpStream::connect(server.address).await.unwrap(),
    ];
    tokio::time::sleep(Duration::from_millis(50)).await;
    let third = tokio::spawn(server.client.get(server.url("/v1/health")).send());
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(!third.is_finished(), "waits");
    drop(held);
    let body: Value = third.await.unwrap().unwrap().json().await.unwrap();
    assert_eq!(body["status"], "ok");
}

/// A client that asks for much and reads nothing.
#[tokio::test]
async fn unread_answers_are_given_up() {
    let server = TestServer::with(|config| {
        config.max_connections = 1;
        config.write_timeout = Duration::from_millis(300);
    })
    .await;
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    // The harness's own connection, kept alive, has the only place.
    drop(server.client);
    let mut deaf = socket.connect(server.address).await.unwrap();
    let body = json!({
        "code": "print('x' * 16_000_000)", "limits": {"output": "16M"}, "timeout_seconds": 60,
    });
    let (body, kind) = (body.to_string(), "Content-Type: application/json");
    let head = format!("Host: localhost\r\n{kind}\r\nContent-Length: {}", body.len());
    deaf.write_all(format!("POST /v1/exec HTTP/1.1\r\n{head}\r\n\r\n{body}").as_bytes())
        .await
        .unwrap();
    // The next connection gets the place, though the first was not closed.
    let mut next = TcpStream::connect(server.address).await.unwrap();
    next.write_all(b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    let mut answer = [0; 12];
    let reading = tokio::time::timeout(Duration::from_secs(20), next.read_exact(&mut answer));
    reading.await.unwrap().unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200");
    assert_eq!(server.wall.created() - server.tried, 1);
    drop(deaf);
}

/// A wall that panics is a mistake of ours, and no reason to end.
#[tokio::test]
async fn a_panic_is_an_answer() {
    let server = TestServer::with(|config| config.slots = 1).await;
    let body = json!({"code": "", "files": [{"path": "panic", "content": ""}]});
    for _ in 0..2 {
        let (status, said) = error(server.post("/v1/exec", &body).send().await.unwrap()).await;
        assert!(status == 500 && said.contains("mistake in casemate"), "{status} {said}");
    }
    assert_eq!(server.exec(json!({"argv": ["echo"]})).await["stdout"], "\n");
    assert_eq!(server.metric("casemate_sandboxes_live").await, 0.0);
}

/// Measures what a request costs beside its program, on a kept-alive
/// connection with a key. The bound leaves room for slow machines.
#[tokio::test]
async fn a_request_costs_little() {
    let server = TestServer::with(|config| config.rate_limit = 0).await;
    let key = server.keys().await.create("k").await.unwrap();
    let mut times = Vec::new();
    for _ in 0..300 {
        let request = server.post("/v1/exec", &json!({})).bearer_auth(&key);
        let asked = Instant::now();
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 400);
        response.bytes().await.unwrap();
        times.push(asked.elapsed());
    }
    times.sort();
    let median = times[times.len() / 2];
    tracing::info!(?median, "a refused request, round trip");
    assert!(median < Duration::from_millis(5), "{median:?}");
}
