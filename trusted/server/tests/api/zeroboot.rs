//! What the zeroboot project's SDKs send and read, replayed.
//!
//! Source: zeroboot `sdk/python/zeroboot/__init__.py`, `sdk/node/src/index.ts`.

use std::process::Stdio;

use serde_json::{Value, json};
use tokio::process::Command;

use crate::harness::TestServer;

/// The fields that the SDKs read, and their types.
fn check_shape(result: &Value) {
    for field in ["id", "stdout", "stderr"] {
        assert!(result[field].is_string(), "{field} in {result}");
    }
    let id = result["id"].as_str().unwrap();
    assert_eq!((id.len(), &id[14..15]), (36, "7"), "a UUID of version 7: {id}");
    assert!(result["exit_code"].is_i64(), "{result}");
    for field in ["fork_time_ms", "exec_time_ms", "total_time_ms"] {
        let millis = result[field].as_f64().unwrap();
        assert!((millis * 100.0 - (millis * 100.0).round()).abs() < 1e-6, "{field}: {millis}");
    }
}

#[tokio::test]
async fn sdk_requests() {
    let server = TestServer::start().await;
    let key = server.keys().await.create("sdk").await.unwrap();
    let cases = [
        // agent                    body                                                       stdout, exit code
        (
            "zeroboot-python/0.1.0",
            json!({"code": "print(1+1)", "language": "python", "timeout_seconds": 30}),
            "2\n",
            0,
        ),
        (
            "zeroboot-node/0.1.0",
            json!({"code": "print(1+1)", "language": "python", "timeout_seconds": 30}),
            "2\n",
            0,
        ),
        (
            "zeroboot-node/0.1.0",
            json!({"code": "console.log(1+1)", "language": "node", "timeout_seconds": 30}),
            "2\n",
            0,
        ),
        (
            "zeroboot-node/0.1.0",
            json!({"code": "console.log(1+1)", "language": "javascript"}),
            "2\n",
            0,
        ),
        ("zeroboot-python/0.1.0", json!({"code": "import sys; sys.exit(3)"}), "", 3),
    ];
    for (agent, body, stdout, exit_code) in cases {
        for path in ["/v1/exec", "/exec"] {
            let response = server
                .post(path, &body)
                .header("user-agent", agent)
                .bearer_auth(&key)
                .send()
                .await
                .unwrap();
            assert_eq!(response.status(), 200);
            assert_eq!(response.headers()["content-type"], "application/json");
            let result: Value = response.json().await.unwrap();
            check_shape(&result);
            assert_eq!(result["stdout"], stdout, "{body}");
            assert_eq!(result["exit_code"], exit_code, "{body}");
        }
    }
}

#[tokio::test]
async fn sdk_batches() {
    let server = TestServer::start().await;
    let executions: Vec<Value> = (0..5)
        .map(
            |n| json!({"code": format!("print({n})"), "language": "python", "timeout_seconds": 30}),
        )
        .collect();
    for path in ["/v1/exec/batch", "/exec/batch"] {
        let response = server.post(path, &json!({"executions": executions})).send().await.unwrap();
        assert_eq!(response.status(), 200);
        let body: Value = response.json().await.unwrap();
        let results = body["results"].as_array().unwrap();
        for (n, result) in results.iter().enumerate() {
            check_shape(result);
            assert_eq!(result["stdout"], format!("{n}\n"));
        }
        assert_eq!(results.len(), 5);
    }
}

#[tokio::test]
async fn sdk_errors() {
    let server = TestServer::start().await;
    server.keys().await.create("sdk").await.unwrap();
    let cases = [
        (Some("Bearer cm_wrong"), "Invalid API key"),
        (Some("Bearer zb_demo_hn2026"), "Invalid API key"),
        (None, "Missing Authorization header"),
    ];
    for (header, said) in cases {
        let mut request = server.post("/v1/exec", &json!({"code": "print(1)"}));
        if let Some(header) = header {
            request = request.header("authorization", header);
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 401);
        let body: Value = response.json().await.unwrap();
        assert_eq!(body["error"], said);
    }
    assert_eq!(server.created(), 0);
}

#[tokio::test]
async fn health() {
    let server = TestServer::start().await;
    for path in ["/v1/health", "/health"] {
        let response = server.get(path).await;
        assert_eq!(response.status(), 200);
        let body: Value = response.json().await.unwrap();
        assert_eq!(body["status"], "ok");
        assert_eq!(body["templates"]["python"]["ready"], true, "{body}");
        assert!(body["templates"]["python"]["memory_mb"].is_number(), "{body}");
        assert!(body["templates"]["python"]["numpy"].is_boolean(), "{body}");
    }
}

/// The HTTP clients that the SDKs use, not just their headers: Python's
/// standard library and Node's `fetch`, which decide for themselves what else
/// to send. Without keys, as an SDK always sends one.
#[tokio::test]
async fn sdk_clients() {
    let server = TestServer::start().await;
    let python = "import json, sys, urllib.request as u
body = json.dumps({'code': 'print(1+1)', 'language': 'python', 'timeout_seconds': 30}).encode()
request = u.Request(sys.argv[1] + '/v1/exec', data=body, headers={'Authorization': 'Bearer k',
    'Content-Type': 'application/json', 'User-Agent': 'zeroboot-python/0.1.0'}, method='POST')
print(json.load(u.urlopen(request))['stdout'], end='')";
    let node = "(async () => {
const response = await fetch(process.argv[1] + '/v1/exec', { method: 'POST',
    headers: { Authorization: 'Bearer k', 'Content-Type': 'application/json',
               'User-Agent': 'zeroboot-node/0.1.0' },
    body: JSON.stringify({ code: 'print(1+1)', language: 'python', timeout_seconds: 30 }) });
process.stdout.write((await response.json()).stdout);
})()";
    for (program, argument, script) in [("python3", "-c", python), ("node", "-e", node)] {
        for host in [server.url(""), server.url("").replace("127.0.0.1", "localhost")] {
            let output = Command::new(program)
                .args([argument, script, &host])
                .env("no_proxy", "*")
                .stderr(Stdio::inherit())
                .output()
                .await;
            // What is not on this machine is not a failure of the server.
            let Ok(output) = output else { continue };
            assert_eq!(String::from_utf8_lossy(&output.stdout), "2\n", "{program} {host}");
        }
    }
}
