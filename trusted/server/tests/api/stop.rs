//! The server's end.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use server::ServeError;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::harness::{TestServer, error};
use crate::wall::UnfencedWall;

#[tokio::test]
async fn what_runs_gets_its_time() {
    let server = TestServer::with(|config| {
        config.slots = 1;
        config.queue = 5;
    })
    .await;
    let sleep = json!({"code": "import time; time.sleep(1.2); print('done')"});
    let running = tokio::spawn(server.post("/v1/exec", &sleep).send());
    server.until("it runs", |server| server.wall.live() == 1).await;
    let queued = tokio::spawn(server.post("/v1/exec", &sleep).send());
    tokio::time::sleep(Duration::from_millis(100)).await;
    let mut idle = TcpStream::connect(server.address).await.unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;

    let (address, wall, asked) = (server.address, server.wall.clone(), Instant::now());
    server.shutdown.cancel();
    // What waits is refused, what is idle is closed, nothing is accepted.
    let (status, said) = error(queued.await.unwrap().unwrap()).await;
    assert_eq!((status, said.as_str()), (503, "the server is stopping"));
    assert_eq!(idle.read(&mut [0; 1]).await.unwrap(), 0);
    assert!(asked.elapsed() < Duration::from_millis(900));
    assert!(TcpStream::connect(address).await.is_err());

    let result: Value = running.await.unwrap().unwrap().json().await.unwrap();
    assert_eq!(result["stdout"], "done\n");
    server.stop().await.unwrap();
    assert!(wall.shut_down.load(Ordering::SeqCst));
    assert_eq!(wall.live(), 0);
}

#[tokio::test]
async fn what_takes_longer_is_ended() {
    let server = TestServer::with(|config| config.drain = Duration::from_millis(300)).await;
    let forever = json!({"code": "print('x', flush=True)\nimport time; time.sleep(60)", "timeout_seconds": 60});
    let plain = tokio::spawn(server.post("/v1/exec", &forever).send());
    let batch = json!({"executions": [forever, {"argv": ["true"]}]});
    let batch = tokio::spawn(server.post("/v1/exec/batch", &batch).send());
    let stream = server.post("/v1/exec", &forever).header("accept", "text/event-stream");
    let stream = tokio::spawn(async move { stream.send().await.unwrap().text().await });
    server.until("all run", |server| server.created() == 4 && server.wall.live() == 3).await;
    tokio::time::sleep(Duration::from_millis(200)).await;

    let (wall, asked) = (server.wall.clone(), Instant::now());
    server.stop().await.unwrap();
    assert!(asked.elapsed() < Duration::from_secs(4), "{:?}", asked.elapsed());
    assert_eq!(wall.live(), 0);
    let (status, said) = error(plain.await.unwrap().unwrap()).await;
    assert!(status == 503 && said.contains("ended before it was done"), "{status} {said}");
    let batch: Value = batch.await.unwrap().unwrap().json().await.unwrap();
    assert_eq!(batch["results"][0]["exit_code"], -1, "{batch}");
    assert_eq!(batch["results"][1]["exit_code"], 0, "{batch}");
    let stream = stream.await.unwrap().unwrap();
    assert!(stream.contains("event: stdout") && stream.contains("event: error"), "{stream}");
}

/// A client that asks slowly does not keep the server alive.
#[tokio::test]
async fn half_a_request_is_not_waited_for() {
    let server = TestServer::with(|config| config.drain = Duration::from_millis(200)).await;
    let mut half = TcpStream::connect(server.address).await.unwrap();
    half.write_all(b"POST /v1/exec HTTP/1.1\r\nHost: localhost\r\n").await.unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    let asked = Instant::now();
    server.stop().await.unwrap();
    assert!(asked.elapsed() < Duration::from_secs(8), "{:?}", asked.elapsed());
}

#[tokio::test]
async fn leftovers_are_an_error() {
    let leftovers = vec!["a mount".to_owned()];
    let wall = UnfencedWall { leftovers, ..UnfencedWall::default() };
    let ended = TestServer::behind(wall, |_| {}).await.stop().await;
    let Err(ServeError::Leftovers(cleanup)) = ended else { panic!("{ended:?}") };
    assert_eq!(cleanup.to_string(), "left: a mount");
}
