//! `POST /v1/exec` and batches: what goes in and what comes out.

use serde_json::{Value, json};

use crate::harness::{TestServer, error};

#[tokio::test]
async fn programs_and_their_ends() {
    let server = TestServer::start().await;
    let cases = [
        // name                 request                                                 what the result has
        (
            "default language",
            json!({"code": "print('hi')"}),
            json!({"stdout": "hi\n", "exit_code": 0, "cleanup": "ok", "wall": "jail", "signal": null, "limit_hit": null}),
        ),
        (
            "stderr",
            json!({"code": "import sys; print(1, file=sys.stderr)"}),
            json!({"stdout": "", "stderr": "1\n"}),
        ),
        (
            "exit code",
            json!({"code": "exit 7", "language": "bash"}),
            json!({"exit_code": 7, "timed_out": false}),
        ),
        ("exception", json!({"code": "1/0"}), json!({"exit_code": 1})),
        (
            "signal",
            json!({"code": "kill -9 $$", "language": "bash"}),
            json!({"exit_code": 137, "signal": 9}),
        ),
        (
            "time limit",
            json!({"code": "import time; time.sleep(9)", "timeout_seconds": 0.3}),
            json!({"exit_code": 124, "timed_out": true, "limit_hit": "wall_time"}),
        ),
        (
            "output limit",
            json!({"code": "print('x' * 9999)", "limits": {"output": 100}}),
            json!({"stdout": "x".repeat(100), "truncated": true, "limit_hit": "output"}),
        ),
        (
            "arguments",
            json!({"code": "echo \"$0 $*\"", "language": "bash", "argv": ["-x", "y"]}),
            json!({"stdout": "bash -x y\n"}),
        ),
        ("argv alone", json!({"argv": ["printf", "%s,", "a", "b"]}), json!({"stdout": "a,b,"})),
        ("stdin", json!({"argv": ["cat"], "stdin": "é"}), json!({"stdout": "é"})),
        (
            "stdin base64",
            json!({"argv": ["od", "-An", "-tx1"], "stdin_base64": "AP8="}),
            json!({"stdout": " 00 ff\n"}),
        ),
        ("empty stdin", json!({"argv": ["cat"]}), json!({"stdout": ""})),
        (
            "env",
            json!({"code": "echo $A", "language": "bash", "env": {"A": "b c"}}),
            json!({"stdout": "b c\n"}),
        ),
        (
            "not UTF-8",
            json!({"argv": ["printf", "a\\377"]}),
            json!({"stdout": "a\u{fffd}", "stdout_base64": "Yf8="}),
        ),
        ("wall by name", json!({"code": "", "wall": "jail"}), json!({"exit_code": 0})),
        (
            "long code",
            json!({"code": format!("{}\nprint('end')", "#".repeat(200_000))}),
            json!({"stdout": "end\n"}),
        ),
    ];
    for (name, request, want) in cases {
        let got = server.exec(request).await;
        for (field, value) in want.as_object().unwrap() {
            assert_eq!(&got[field], value, "{name}: {field} in {got}");
        }
    }
    let got = server.exec(json!({"code": ""})).await;
    assert!(got["usage"]["cpu_time_ms"].is_number() && got["usage"]["peak_memory_bytes"].is_u64());
    assert_eq!(got["controls"][0]["state"], "absent");
    assert!(got.get("stdout_base64").is_none() && got.get("error").is_none());
    server.until("all is gone", |server| server.wall.live() == 0).await;
}

#[tokio::test]
async fn files_in_and_out() {
    let server = TestServer::with(|config| config.max_get = 100).await;
    let got = server
        .exec(json!({
            "code": "import os
print(open('in/a').read(), os.stat('run').st_mode & 0o777 == 0o755)
open('text', 'w').write('é'); open('bytes', 'wb').write(b'\\xff'); open('big', 'w').write('x' * 101)",
            "files": [
                {"path": "in/a", "content": "ä"},
                {"path": "~/run", "content_base64": "AA==", "mode": "755"},
            ],
            "get": ["text", "bytes", "~/text", "absent", "big"],
        }))
        .await;
    assert_eq!(got["stdout"], "ä True\n", "{got}");
    let files = json!([
        {"path": "/home/user/text", "content": "é"},
        {"path": "/home/user/bytes", "content_base64": "/w=="},
        {"path": "/home/user/absent", "error": "/home/user/absent does not exist in the sandbox"},
        {"path": "/home/user/big", "error": "/home/user/big holds more than 100 bytes"},
    ]);
    assert_eq!(got["files"], files);
}

#[tokio::test]
async fn requests_that_make_no_sense() {
    let server = TestServer::with(|config| config.max_batch = 3).await;
    let four = vec![json!({"code": ""}); 4];
    let cases = [
        ("/v1/exec", json!({}), 400, "code: missing"),
        ("/v1/exec", json!({"code": 5}), 400, "code: invalid type: integer `5`"),
        ("/v1/exec", json!({"code": "", "colour": "red"}), 400, "unknown field `colour`"),
        (
            "/v1/exec",
            json!({"code": "", "language": "cobol"}),
            400,
            "choose python, node, javascript or bash",
        ),
        ("/v1/exec", json!({"code": "", "wall": "vm"}), 400, "not built yet"),
        (
            "/v1/exec",
            json!({"code": "", "limits": {"memory": "99T"}}),
            400,
            "limits.memory: this server gives at most",
        ),
        ("/v1/exec", json!({"argv": ["no-such-program"]}), 422, "`no-such-program` was not found"),
        (
            "/v1/exec/batch",
            json!({"executions": [{"code": ""}, {"code": "", "language": "x"}]}),
            400,
            "executions[1].language: ",
        ),
        (
            "/v1/exec/batch",
            json!({"executions": [{"code": ""}, {"files": [{}]}]}),
            400,
            "executions[1].files[0]: missing field `path`",
        ),
        ("/v1/exec/batch", json!({"executions": four}), 400, "more than the 3"),
        ("/v1/exec/batch", json!({}), 400, "missing field `executions`"),
    ];
    for (path, body, status, said) in cases {
        let got = error(server.post(path, &body).send().await.unwrap()).await;
        assert!(got.0 == status && got.1.contains(said), "{body}: {got:?}");
    }
    // All but the program that was not found were refused before a sandbox.
    assert_eq!(server.created(), 1);
}

#[tokio::test]
async fn batches() {
    let server = TestServer::with(|config| config.slots = 2).await;
    let executions: Vec<Value> = (0..7)
        .map(|n| match n {
            3 => json!({"argv": ["no-such-program"]}),
            5 => json!({"code": "import time; time.sleep(9)", "timeout_seconds": 0.2}),
            _ => json!({"code": format!("import time; time.sleep({}); print({n})", 0.3 / f64::from(n + 1))}),
        })
        .collect();
    let response =
        server.post("/v1/exec/batch", &json!({"executions": executions})).send().await.unwrap();
    assert_eq!(response.status(), 200);
    let body: Value = response.json().await.unwrap();
    let results = body["results"].as_array().unwrap();
    assert_eq!(results.len(), 7);
    for (n, result) in results.iter().enumerate() {
        match n {
            3 => {
                assert_eq!(result["exit_code"], -1);
                assert!(result["error"].as_str().unwrap().contains("not found"), "{result}");
                assert_eq!(result["stderr"], result["error"]);
            }
            5 => assert_eq!(result["exit_code"], 124),
            _ => assert_eq!(result["stdout"], format!("{n}\n")),
        }
    }
    assert_eq!(server.wall.most(), 2, "side by side, in all slots and no more");
    let response = server.post("/v1/exec/batch", &json!({"executions": []})).send().await.unwrap();
    assert_eq!(response.json::<Value>().await.unwrap(), json!({"results": []}));
}
