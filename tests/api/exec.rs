//! Running programs through `POST /v1/exec`.

use std::collections::HashMap;

use serde_json::{Value, json};
use tests::{HostRun, Server, suite_dir, trials, unique};

trials! {
    zeroboot_clients, fields, languages, further_fields, files, paths_that_leave, stdin, limits, batch_is_in_order,
    batch_runs_side_by_side, health, metrics, openapi, output_that_is_no_text, kept_alive,
    environment_of_the_server,
}

fn exec(body: &Value) -> Value {
    let server = Server::start(&[], &[]);
    let response = server.connect().post("/v1/exec", body);
    assert_eq!(response.status, 200, "{}", response.text());
    response.json()
}

/// The shapes that the zeroboot SDKs send and read, replayed.
fn zeroboot_clients() {
    let server = Server::start(&[], &[]);
    let script = suite_dir("api/clients/zeroboot.py");
    let base = format!("http://{}", server.address);
    let done = HostRun::new(&["python3", script.to_str().expect("a plain path"), &base]).run();
    let text = done.text();
    let answers: HashMap<String, Value> = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .map(|answer| (answer["name"].as_str().unwrap_or_default().to_owned(), answer))
        .collect();
    assert_eq!(answers.len(), 9, "{done:?}");
    let body = |name: &str| {
        let answer = &answers[name];
        assert_eq!(answer["status"], 200, "{name}: {answer}");
        &answer["body"]
    };
    let has_all_fields = |name: &str, body: &Value| {
        assert!(body["id"].as_str().is_some_and(|id| id.len() == 36), "{name}: {body}");
        for field in ["stdout", "stderr"] {
            assert!(body[field].is_string(), "{name}: {field}: {body}");
        }
        assert!(body["exit_code"].is_i64(), "{name}: {body}");
        for field in ["fork_time_ms", "exec_time_ms", "total_time_ms"] {
            assert!(body[field].is_f64(), "{name}: {field}: {body}");
        }
    };
    let want = [
        ("python", "2\n", 0),
        ("alias", "42\n", 0),
        ("node", "42\n", 0),
        ("javascript", "2,4\n", 0),
        ("failure", "partly\n", 3),
        ("exception", "", 1),
        ("timeout", "", 124),
    ];
    for (name, stdout, code) in want {
        let body = body(name);
        has_all_fields(name, body);
        assert_eq!(
            (body["stdout"].as_str(), body["exit_code"].as_i64()),
            (Some(stdout), Some(code)),
            "{name}: {body}"
        );
    }
    assert!(
        body("exception")["stderr"].as_str().is_some_and(|text| text.contains("ZeroDivisionError"))
    );
    let results = body("batch")["results"].as_array().expect("results");
    for (number, result) in results.iter().enumerate() {
        has_all_fields("batch", result);
        assert_eq!(result["stdout"], format!("{number}\n"));
    }
    assert_eq!(body("health")["status"], "ok");
}

fn fields() {
    let body = exec(&json!({"code": "print(1)"}));
    assert_eq!(body["wall"], "jail");
    assert_eq!((&body["timed_out"], &body["limit_hit"]), (&json!(false), &Value::Null));
    assert_eq!((&body["truncated"], &body["cleanup"]), (&json!(false), &json!("ok")));
    assert!(body["usage"]["cpu_time_ms"].is_f64(), "{body}");
    let total = body["total_time_ms"].as_f64().expect("a time");
    let exec = body["exec_time_ms"].as_f64().expect("a time");
    assert!(total >= exec && exec > 0.0, "{body}");
}

fn languages() {
    let server = Server::start(&[], &[]);
    let mut connection = server.connect();
    for (language, code) in
        [("python", "print('x')"), ("bash", "echo x"), ("node", "console.log('x')")]
    {
        let response = connection.post("/v1/exec", &json!({"code": code, "language": language}));
        assert_eq!(response.json()["stdout"], "x\n", "{language}: {}", response.text());
    }
    let response = connection.post("/v1/exec", &json!({"code": "x", "language": "cobol"}));
    assert_eq!(response.status, 400);
    assert!(response.json()["error"].as_str().is_some_and(|text| text.contains("language")));
}

fn further_fields() {
    let body = exec(&json!({"argv": ["sh", "-c", "echo $GIVEN; exit 5"], "env": {"GIVEN": "a b"}}));
    assert_eq!((&body["stdout"], &body["exit_code"]), (&json!("a b\n"), &json!(5)), "{body}");
    let body =
        exec(&json!({"code": "import sys; print(sys.argv[1:])", "argv": ["one", "two words"]}));
    assert_eq!(body["stdout"], "['one', 'two words']\n", "{body}");
}

fn files() {
    let body = exec(&json!({
        "code": "import os; open('out','w').write(open('data/in').read().upper()); os.symlink('/etc/shadow','bad')",
        "files": [{"path": "data/in", "content": "text"}],
        "get": ["out", "bad", "missing", "/dev/zero", "/proc/1/environ"],
    }));
    let files = body["files"].as_array().unwrap_or_else(|| panic!("{body}"));
    let out =
        files.iter().find(|file| file["path"].as_str().is_some_and(|path| path.ends_with("/out")));
    assert_eq!(out.map(|file| &file["content"]), Some(&json!("TEXT")), "{body}");
    for file in files {
        let path = file["path"].as_str().unwrap_or_default();
        let harmless =
            path.ends_with("/out") || file["content"].is_null() && file["content_base64"].is_null();
        assert!(harmless, "{path} came out: {file}");
    }
}

/// Refused as a whole, before anything is run.
fn paths_that_leave() {
    let server = Server::start(&[], &[]);
    for path in ["../../../../etc/shadow", "/..", "", "a\u{0}b"] {
        let get = json!({"argv": ["echo", "ran"], "get": [path]});
        let put = json!({"argv": ["echo", "ran"], "files": [{"path": path, "content": "x"}]});
        for body in [get, put] {
            let response = server.connect().post("/v1/exec", &body);
            assert_eq!(response.status, 400, "{body}: {}", response.text());
            assert!(response.json()["error"].is_string(), "{}", response.text());
        }
    }
}

fn stdin() {
    let code = "import sys; print(sys.stdin.read()[::-1])";
    assert_eq!(exec(&json!({"code": code, "stdin": "abc"}))["stdout"], "cba\n");
    assert_eq!(exec(&json!({"code": code}))["stdout"], "\n");
    let body = exec(&json!({"argv": ["cat"], "stdin_base64": "AP/+"}));
    assert_eq!(body["stdout_base64"], "AP/+", "{body}");
}

fn limits() {
    let body = exec(&json!({"code": "print('x'*5000)", "limits": {"output": "1K"}}));
    assert_eq!(
        (&body["limit_hit"], &body["truncated"]),
        (&json!("output"), &json!(true)),
        "{body}"
    );
    assert_eq!(body["stdout"].as_str().map(str::len), Some(1024));
    let body = exec(
        &json!({"code": "x = bytearray(100_000_000); print('held')", "limits": {"memory": "32M"}}),
    );
    assert!(!body["stdout"].as_str().is_some_and(|text| text.contains("held")), "{body}");
    let server = Server::start(&[], &[]);
    let body = json!({"code": "1", "limits": {"memory": "100T"}});
    let response = server.connect().post("/v1/exec", &body);
    assert!(
        response.status == 200
            || response.json()["error"].as_str().is_some_and(|text| text.contains("memory"))
    );
}

fn batch_is_in_order() {
    let server = Server::start(&[], &[]);
    let executions: Vec<Value> = (0..8)
        .map(|n| json!({"code": format!("import time; time.sleep({}); print({n})", 0.05 * f64::from(8 - n))}))
        .chain([json!({"code": "raise SystemExit(9)"}), json!({"argv": ["no-such-program"]})])
        .collect();
    let response = server.connect().post("/v1/exec/batch", &json!({"executions": executions}));
    assert_eq!(response.status, 200, "{}", response.text());
    let body = response.json();
    let results = body["results"].as_array().expect("results");
    assert_eq!(results.len(), 10);
    for (number, result) in results.iter().take(8).enumerate() {
        assert_eq!(result["stdout"], format!("{number}\n"), "{result}");
    }
    assert_eq!(results[8]["exit_code"], 9);
    assert_ne!(results[9]["exit_code"], 0);
}

fn batch_runs_side_by_side() {
    let server = Server::start(&[], &[]);
    let executions: Vec<Value> = (0..6).map(|_| json!({"argv": ["sleep", "1"]})).collect();
    let begun = std::time::Instant::now();
    let response = server.connect().post("/v1/exec/batch", &json!({"executions": executions}));
    assert_eq!(response.status, 200, "{}", response.text());
    assert!(begun.elapsed() < std::time::Duration::from_secs(4), "{:?}", begun.elapsed());
}

fn health() {
    let server = Server::start(&[], &[]);
    let mut connection = server.connect();
    for path in ["/v1/health", "/health"] {
        let response = connection.get(path);
        assert_eq!(response.status, 200, "{path}");
        assert_eq!(response.json()["status"], "ok");
        let python = &response.json()["templates"]["python"];
        assert!(python["ready"].is_boolean(), "{path}: {}", response.text());
        assert!(python["memory_mb"].is_number(), "{path}: {}", response.text());
    }
}

fn metrics() {
    let server = Server::start(&[], &[]);
    let mut connection = server.connect();
    for code in ["print(1)", "raise SystemExit(1)"] {
        assert_eq!(connection.post("/v1/exec", &json!({"code": code})).status, 200);
    }
    let text = connection.get("/v1/metrics").text();
    for line in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let (_, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("{line}"));
        assert!(value.parse::<f64>().is_ok(), "{line}");
    }
    let sum: f64 = text
        .lines()
        .filter(|line| line.contains("total_executions{") || line.contains("executions_total{"))
        .filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok())
        .sum();
    assert!(sum >= 2.0, "{text}");
}

fn openapi() {
    let server = Server::start(&[], &[]);
    let document = server.connect().get("/v1/openapi.json").json();
    assert!(
        document["openapi"].as_str().is_some_and(|version| version.starts_with('3')),
        "{document}"
    );
    for path in ["/v1/exec", "/v1/exec/batch", "/v1/health", "/v1/metrics"] {
        assert!(document["paths"][path].is_object(), "{path}");
    }
}

fn output_that_is_no_text() {
    let body = exec(&json!({"argv": ["printf", "\\377\\000a"]}));
    assert_eq!(body["stdout_base64"], "/wBh", "{body}");
}

fn kept_alive() {
    let server = Server::start(&[], &[]);
    let mut connection = server.connect();
    for number in 0..20 {
        let response = connection.post("/v1/exec", &json!({"argv": ["echo", number.to_string()]}));
        assert_eq!(response.json()["stdout"], format!("{number}\n"), "{}", response.text());
    }
}

fn environment_of_the_server() {
    let secret = unique("secret");
    let reversed: String = secret.chars().rev().collect();
    let sweep = std::fs::read_to_string(suite_dir("security/attacks/sweep_processes.py"))
        .expect("the attack");
    let control = HostRun::new(&["sh", "-c", "tr '\\0' '\\n' < /proc/$PPID/environ; env"]);
    assert!(control.env("PLANTED_SECRET", &secret).run().text().contains(&secret));
    let server = Server::start(&[], &[("PLANTED_SECRET", &secret), ("DATABASE_URL", &secret)]);
    for _ in 0..3 {
        let body = json!({"code": sweep, "argv": [reversed], "timeout_seconds": 30});
        let response = server.connect().post("/v1/exec", &body);
        assert!(response.text().contains("looked at"), "{}", response.text());
        assert!(!response.text().contains(&secret), "{}", response.text());
    }
    let response = server.connect().post("/v1/exec", &json!({"argv": ["env"]}));
    assert!(!response.text().contains(&secret), "{}", response.text());
}
