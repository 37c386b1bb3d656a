//! More requests than slots, and clients that go away.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::harness::{TestServer, error};

const SLEEP: &str = "import time; time.sleep(1); print('done')";

#[tokio::test]
async fn busy_is_said_at_once() {
    let server = TestServer::with(|config| config.slots = 2).await;
    let body = json!({"code": SLEEP});
    let (first, second) = (server.post("/v1/exec", &body), server.post("/v1/exec", &body));
    let held = tokio::spawn(async move { (first.send().await, second.send().await) });
    let third = server.post("/v1/exec", &body).send();
    let held2 = tokio::spawn(third);
    server.until("both slots are taken", |server| server.wall.live() == 2).await;

    for (path, body) in
        [("/v1/exec", body.clone()), ("/v1/exec/batch", json!({"executions": [body]}))]
    {
        let asked = Instant::now();
        let response = server.post(path, &body).send().await.unwrap();
        assert!(asked.elapsed() < Duration::from_millis(700), "{path}: at once");
        assert_eq!(response.headers()["retry-after"], "1");
        let (status, said) = error(response).await;
        assert!(status == 429 && said.starts_with("busy"), "{path}: {status} {said}");
    }
    assert_eq!(server.metric("casemate_busy_rejections_total").await, 2.0);
    assert_eq!(server.metric("casemate_concurrent_forks").await, 2.0);
    let (first, second) = held.await.unwrap();
    for response in [first, second, held2.await.unwrap()] {
        assert_eq!(response.unwrap().json::<Value>().await.unwrap()["stdout"], "done\n");
    }
    assert_eq!(server.metric("casemate_sandboxes_live").await, 0.0);
}

#[tokio::test]
async fn a_queue_is_bounded() {
    let server = TestServer::with(|config| {
        config.slots = 1;
        config.queue = 2;
        config.queue_wait = Duration::from_millis(700);
    })
    .await;
    let body = json!({"argv": ["sleep", "0.45"]});
    let ask = |after: u64| {
        let request = server.post("/v1/exec", &body);
        async move {
            tokio::time::sleep(Duration::from_millis(after)).await;
            let asked = Instant::now();
            let response = request.send().await.unwrap();
            (response.status().as_u16(), asked.elapsed())
        }
    };
    // The first runs; the second waits for it; the third waits too long; the
    // fourth finds the queue full.
    let got = join_all([ask(0), ask(50), ask(100), ask(150)]).await;
    let statuses: Vec<u16> = got.iter().map(|got| got.0).collect();
    assert_eq!(statuses, [200, 200, 429, 429]);
    assert!(got[2].1 >= Duration::from_millis(700), "{:?}", got[2]);
    assert!(got[3].1 < Duration::from_millis(500), "{:?}", got[3]);
    assert_eq!(server.created(), 2);
}

/// The case: 200 requests, 50 at a time, 16 slots.
#[tokio::test]
async fn each_of_many_gets_a_result_or_busy() {
    let server = TestServer::start().await;
    let work = (0..50).map(|worker| {
        let server = &server;
        async move {
            let mut counts = (0, 0);
            for round in 0..4 {
                let text = format!("{worker}-{round}");
                let request = server.post("/v1/exec", &json!({"argv": ["echo", text]}));
                let response = request.send().await.unwrap();
                if response.status() == 429 {
                    assert!(error(response).await.1.starts_with("busy"));
                    counts.1 += 1;
                } else {
                    let result: Value = response.json().await.unwrap();
                    assert_eq!(result["stdout"], format!("{text}\n"), "{result}");
                    counts.0 += 1;
                }
            }
            counts
        }
    });
    let counts = join_all(work).await;
    let (ran, busy) = counts.iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    assert_eq!(ran + busy, 200);
    assert!(ran >= 16, "{ran} ran");
    assert_eq!(server.created(), ran);
    assert!(server.wall.most() <= 16);
    assert_eq!(server.wall.live(), 0);
}

#[tokio::test]
async fn a_client_that_leaves_takes_its_program_along() {
    let server = TestServer::with(|config| config.slots = 2).await;
    let forever = json!({"code": "import time\nwhile True: print('x', flush=True); time.sleep(0.1)", "timeout_seconds": 60});
    let batch = json!({"executions": [forever, forever, forever, forever]});
    let cases = [
        ("plain", server.post("/v1/exec", &forever), 1),
        ("stream", server.post("/v1/exec", &forever).header("accept", "text/event-stream"), 1),
        ("batch", server.post("/v1/exec/batch", &batch), 2),
    ];
    for (name, request, slots) in cases {
        let before = server.created();
        let client = tokio::spawn(async move { request.send().await.unwrap().bytes().await });
        server.until(name, |server| server.wall.live() == slots).await;
        client.abort();
        server.until(name, |server| server.wall.live() == 0).await;
        // The slots are free again, and of a batch nothing more is begun.
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_eq!(server.created(), before + slots, "{name}");
        assert_eq!(server.exec(json!({"argv": ["echo"]})).await["stdout"], "\n", "{name}");
    }
    assert_eq!(server.metric("casemate_client_disconnects_total").await, 4.0);
}
