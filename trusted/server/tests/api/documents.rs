//! The OpenAPI document and the metrics.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::harness::TestServer;

/// Finds every `$ref` below `value`.
fn references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::Object(map) => {
            found.extend(map.get("$ref").and_then(Value::as_str));
            map.values().for_each(|value| references(value, found));
        }
        Value::Array(list) => list.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}

#[tokio::test]
async fn openapi_describes_what_there_is() {
    let server = TestServer::start().await;
    let response = server.get("/v1/openapi.json").await;
    assert_eq!(response.headers()["content-type"], "application/json");
    let text = response.text().await.unwrap();
    assert_eq!(text, server::openapi_json());
    let document: Value = serde_json::from_str(&text).unwrap();
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1."), "{document}");
    assert_eq!(document["info"]["title"], "Casemate");

    let mut found = Vec::new();
    references(&document, &mut found);
    assert!(found.len() > 10);
    for reference in found {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference} leads nowhere");
    }

    let routes = [
        ("/v1/exec", "post", true),
        ("/v1/exec/batch", "post", true),
        ("/v1/health", "get", false),
        ("/v1/metrics", "get", false),
        ("/v1/openapi.json", "get", false),
    ];
    let paths = document["paths"].as_object().unwrap();
    assert_eq!(paths.len(), routes.len());
    for (path, method, runs) in routes {
        let operation = &paths[path][method];
        assert!(operation["responses"]["200"].is_object(), "{path}");
        assert!(operation["operationId"].is_string() && operation["summary"].is_string(), "{path}");
        // What is described is there.
        let method = method.to_uppercase().parse().unwrap();
        let response = server.client.request(method, server.url(path)).send().await.unwrap();
        assert_eq!(response.status(), if runs { 415 } else { 200 }, "{path}");
        if runs {
            assert_eq!(operation["security"], json!([{"key": []}, {}]), "{path}");
            assert!(operation["requestBody"]["content"]["application/json"].is_object());
            for status in ["400", "401", "403", "408", "413", "415", "422", "429", "500", "503"] {
                let schema =
                    &operation["responses"][status]["content"]["application/json"]["schema"];
                assert_eq!(schema["$ref"], "#/components/schemas/ErrorBody", "{path} {status}");
            }
        }
    }
    let scheme = &document["components"]["securitySchemes"]["key"];
    assert_eq!((&scheme["type"], &scheme["scheme"]), (&json!("http"), &json!("bearer")));
    let exec = &paths["/v1/exec"]["post"]["responses"]["200"]["content"];
    assert!(exec["text/event-stream"].is_object() && exec["application/json"].is_object());
}

/// The schema names exactly the fields that a result has.
#[tokio::test]
async fn openapi_results_are_results() {
    let document: Value = serde_json::from_str(&server::openapi_json()).unwrap();
    let schemas = &document["components"]["schemas"];
    let mut described: Vec<&str> = Vec::new();
    for part in schemas["ExecResponse"]["allOf"].as_array().unwrap() {
        let part = match part["$ref"].as_str() {
            Some(reference) => document.pointer(&reference[1..]).unwrap(),
            None => part,
        };
        described.extend(part["properties"].as_object().unwrap().keys().map(String::as_str));
    }
    let server = TestServer::start().await;
    let result = server.exec(json!({"argv": ["printf", "\\377"], "get": ["x"]})).await;
    for field in result.as_object().unwrap().keys() {
        assert!(described.contains(&field.as_str()), "{field} is not described");
    }
    for field in described {
        let optional = ["stderr_base64", "error"].contains(&field);
        assert!(optional || result.get(field).is_some(), "{field} is not there");
    }
}

#[tokio::test]
async fn metrics_are_prometheus_text() {
    let server = TestServer::start().await;
    for body in [
        json!({"argv": ["true"]}),
        json!({"argv": ["true"]}),
        json!({"argv": ["false"]}),
        json!({"argv": ["sleep", "9"], "timeout_seconds": 0.1}),
    ] {
        server.exec(body).await;
    }
    assert_eq!(server.get("/metrics").await.status(), 200);
    let response = server.get("/v1/metrics").await;
    assert!(response.headers()["content-type"].to_str().unwrap().starts_with("text/plain"));
    let text = response.text().await.unwrap();

    // Each sample is below the head of its family, and a number.
    let (mut kinds, mut samples) = (BTreeMap::new(), BTreeMap::new());
    for line in text.lines() {
        if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').unwrap();
            assert!(kinds.insert(name.to_owned(), kind.to_owned()).is_none(), "{name} twice");
        } else if !line.starts_with("# HELP ") {
            let (name, value) = line.rsplit_once(' ').unwrap();
            let value: f64 = value.parse().unwrap();
            assert!(samples.insert(name.to_owned(), value).is_none(), "{name} twice");
            let family = name.split('{').next().unwrap();
            let histogram = ["_bucket", "_sum", "_count"].iter().any(|end| {
                family
                    .strip_suffix(end)
                    .is_some_and(|base| kinds.get(base).is_some_and(|k| k == "histogram"))
            });
            assert!(histogram || kinds.contains_key(family), "{name} has no type");
        }
    }
    let want = [
        ("casemate_total_executions", "counter"),
        ("casemate_concurrent_forks", "gauge"),
        ("casemate_fork_time_microseconds_total", "counter"),
        ("casemate_exec_time_microseconds_total", "counter"),
        ("casemate_memory_usage_bytes", "gauge"),
        ("casemate_fork_time_milliseconds", "histogram"),
        ("casemate_exec_time_milliseconds", "histogram"),
        ("casemate_total_time_milliseconds", "histogram"),
    ];
    for (name, kind) in want {
        assert_eq!(kinds[name], kind, "{name}");
    }
    let values = [
        ("casemate_total_executions{status=\"success\"}", 2.0),
        ("casemate_total_executions{status=\"error\"}", 1.0),
        ("casemate_total_executions{status=\"timeout\"}", 1.0),
        ("casemate_exec_time_milliseconds_bucket{le=\"+Inf\"}", 4.0),
        ("casemate_exec_time_milliseconds_count", 4.0),
        ("casemate_concurrent_forks", 0.0),
        ("casemate_cleanup_failures_total", 0.0),
    ];
    for (name, value) in values {
        assert_eq!(samples[name], value, "{name}");
    }
}
