//! Who may use the server: keys, rates, and web pages.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use server::ServeError;

use crate::harness::{TestServer, config, error};
use crate::wall::UnfencedWall;

#[tokio::test]
async fn keys_open_and_close_a_running_server() {
    let server = TestServer::start().await;
    let keys = server.keys().await;
    let ask = async |key: Option<&str>| {
        let mut request = server.post("/v1/exec", &json!({"argv": ["true"]}));
        if let Some(key) = key {
            request = request.bearer_auth(key);
        }
        request.send().await.unwrap()
    };
    // Without keys it is open, to a client that sends one too.
    assert_eq!(ask(None).await.status(), 200);
    assert_eq!(ask(Some("anything")).await.status(), 200);

    let first = keys.create("first").await.unwrap();
    let second = keys.create("second").await.unwrap();
    assert_eq!(error(ask(None).await).await, (401, "Missing Authorization header".into()));
    let refused = ask(Some("cm_0000")).await;
    assert_eq!(refused.headers()["www-authenticate"], "Bearer");
    assert_eq!(error(refused).await, (401, "Invalid API key".into()));
    assert_eq!(ask(Some(&first)).await.status(), 200);
    assert_eq!(ask(Some(&second)).await.status(), 200);

    // What needs no key still needs none.
    for path in ["/v1/health", "/v1/metrics", "/v1/openapi.json"] {
        assert_eq!(server.get(path).await.status(), 200, "{path}");
    }

    // Revocation holds from the next request on, for this key alone.
    keys.revoke("first").await.unwrap();
    assert_eq!(error(ask(Some(&first)).await).await.0, 401);
    assert_eq!(ask(Some(&second)).await.status(), 200);
    // Without a valid key the server is shut, not open again.
    keys.revoke("second").await.unwrap();
    assert_eq!(error(ask(None).await).await.0, 401);
    assert_eq!(server.metric("casemate_unauthorized_total").await, 4.0);
}

#[tokio::test]
async fn wrong_headers_are_wrong_keys() {
    let server = TestServer::start().await;
    let key = server.keys().await.create("k").await.unwrap();
    let cases = [
        (format!("Bearer {key}"), 200),
        (format!("bearer {key}"), 200),
        (format!("Basic {key}"), 401),
        (key.clone(), 401),
        (format!("Bearer {}", &key[..42]), 401),
        (format!("Bearer {key}0"), 401),
        (format!("Bearer {}", key.to_uppercase()), 401),
        ("Bearer ' OR 1=1 --".into(), 401),
    ];
    for (header, want) in cases {
        let request = server.post("/v1/exec", &json!({"argv": ["true"]}));
        let response = request.header("authorization", &header).send().await.unwrap();
        assert_eq!(response.status(), want, "{header}");
    }
}

#[tokio::test]
async fn each_key_has_a_rate() {
    let server = TestServer::with(|config| config.rate_limit = 3).await;
    let keys = server.keys().await;
    let (first, second) = (keys.create("a").await.unwrap(), keys.create("b").await.unwrap());
    // Requests that make no sense count too, and start nothing.
    let ask = async |key: &str| {
        server.post("/v1/exec", &json!({})).bearer_auth(key).send().await.unwrap()
    };
    for _ in 0..3 {
        assert_eq!(ask(&first).await.status(), 400);
    }
    let refused = ask(&first).await;
    assert_eq!(refused.headers()["retry-after"], "1");
    let (status, said) = error(refused).await;
    assert_eq!((status, said.as_str()), (429, "rate limit exceeded: 3 requests a second"));
    assert_eq!(ask(&second).await.status(), 400);
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert_eq!(ask(&first).await.status(), 400);
    assert_eq!(server.metric("casemate_rate_limited_total").await, 1.0);
}

#[tokio::test]
async fn an_open_server_refuses_web_pages() {
    let server = TestServer::start().await;
    let port = server.address.port();
    let own = format!("localhost:{port}");
    let cases = [
        // host                             origin                              status
        (own.clone(), None, 200),
        (format!("[::1]:{port}"), None, 200),
        (own.clone(), Some(format!("http://{own}")), 200),
        (format!("evil.example:{port}"), None, 403),
        ("127.0.0.1.evil.example".into(), None, 403),
        (own.clone(), Some("http://evil.example".into()), 403),
        (own.clone(), Some("null".into()), 403),
        (own.clone(), Some("http://localhost:1".into()), 403),
    ];
    for (host, origin, want) in &cases {
        for path in ["/v1/exec", "/v1/health", "/nothing"] {
            let mut request = match path {
                "/v1/exec" => server.post(path, &json!({"argv": ["true"]})),
                _ => server.client.get(server.url(path)),
            };
            request = request.header("host", host);
            if let Some(origin) = origin {
                request = request.header("origin", origin);
            }
            let status = request.send().await.unwrap().status().as_u16();
            let want = if *want == 200 && path == "/nothing" { 404 } else { *want };
            assert_eq!(status, want, "{host} {origin:?} {path}");
        }
    }

    // A page may send these types to any server without asking it first.
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""] {
        let response = server
            .client
            .post(server.url("/v1/exec"))
            .header("content-type", kind)
            .body(r#"{"argv":["true"]}"#)
            .send()
            .await
            .unwrap();
        assert_eq!(error(response).await.0, 415, "{kind}");
    }

    // No answer lets a page of another origin read it or send JSON.
    let response = server
        .client
        .request(reqwest::Method::OPTIONS, server.url("/v1/exec"))
        .header("access-control-request-method", "POST")
        .send()
        .await
        .unwrap();
    assert!(response.headers().keys().all(|name| !name.as_str().starts_with("access-control")));

    // With keys it is they that keep pages out, and any name will do.
    let key = server.keys().await.create("k").await.unwrap();
    let request = server.post("/v1/exec", &json!({"argv": ["true"]})).bearer_auth(key);
    let response = request.header("host", "casemate.example").send().await.unwrap();
    assert_eq!(response.status(), 200);
}

#[tokio::test]
async fn starts_that_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let everywhere = SocketAddr::from(([0, 0, 0, 0], 0));
    let good = || config(&directory);
    let text = directory.path().join("text");
    std::fs::write(&text, "no database at all, ".repeat(100)).unwrap();

    let mut open = good();
    open.listen = everywhere;
    let mut busy = good();
    busy.listen = taken.local_addr().unwrap();
    let mut slots = good();
    slots.slots = 0;
    let mut database = good();
    database.database = text;
    let cases = [
        ("open to the network", open.clone(), false, "there is no API key"),
        ("address in use", busy, false, "cannot listen on 127.0.0.1:"),
        ("no slots", slots, false, "`slots`"),
        ("no database", database, false, "not a database"),
        ("no wall", good(), true, "it is broken; to fix it: mend it"),
    ];
    for (name, config, broken, said) in cases {
        let wall = UnfencedWall { broken, ..UnfencedWall::default() };
        let error = server::bind(config, Arc::new(wall)).await.map(|_| ()).unwrap_err();
        assert!(error.to_string().contains(said), "{name}: {error}");
    }

    // With a key it starts; with none but a revoked one it does not.
    let keys = server::KeyStore::open(&open.database).await.unwrap();
    keys.create("k").await.unwrap();
    assert!(server::bind(open.clone(), Arc::new(UnfencedWall::default())).await.is_ok());
    keys.revoke("k").await.unwrap();
    let refused = server::bind(open, Arc::new(UnfencedWall::default())).await.map(|_| ());
    assert!(matches!(refused, Err(ServeError::OpenToNetwork(_))));
}
