//! A server for one test, and ways to talk to it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use reqwest::{Client, RequestBuilder, Response};
use serde_json::Value;
use server::{KeyStore, ServeError, ServerConfig};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::wall::UnfencedWall;

/// A running server on a port of its own.
pub(crate) struct TestServer {
    pub(crate) address: SocketAddr,
    pub(crate) wall: UnfencedWall,
    pub(crate) client: Client,
    pub(crate) shutdown: CancellationToken,
    pub(crate) task: JoinHandle<Result<(), ServeError>>,
    /// Sandboxes made before the test's own.
    pub(crate) tried: usize,
    directory: TempDir,
}

/// Settings for a server on a free port with a database of its own.
pub(crate) fn config(directory: &TempDir) -> ServerConfig {
    ServerConfig {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        database: directory.path().join("server.sqlite"),
        ..ServerConfig::default()
    }
}

impl TestServer {
    /// A server with the default settings.
    pub(crate) async fn start() -> Self {
        Self::with(|_| {}).await
    }

    /// A server with settings that `change` made.
    pub(crate) async fn with(change: impl FnOnce(&mut ServerConfig)) -> Self {
        Self::behind(UnfencedWall::default(), change).await
    }

    pub(crate) async fn behind(wall: UnfencedWall, change: impl FnOnce(&mut ServerConfig)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut config = config(&directory);
        change(&mut config);
        let server = server::bind(config, Arc::new(wall.clone())).await.unwrap();
        let address = server.local_addr();
        let shutdown = CancellationToken::new();
        let task = tokio::spawn(server.run(shutdown.clone()));
        let tried = sandbox::Language::ALL.len();
        let client = Client::builder().no_proxy().build().unwrap();
        let server = Self { address, wall, client, shutdown, task, tried, directory };
        server
            .until("languages were tried", |server| {
                server.wall.created() == server.tried && server.wall.live() == 0
            })
            .await;
        server
    }

    /// The keys of this server, opened anew as another process would.
    pub(crate) async fn keys(&self) -> KeyStore {
        KeyStore::open(&self.directory.path().join("server.sqlite")).await.unwrap()
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> RequestBuilder {
        self.client.post(self.url(path)).json(body)
    }

    pub(crate) async fn get(&self, path: &str) -> Response {
        self.client.get(self.url(path)).send().await.unwrap()
    }

    /// Runs a program, which must be a result.
    pub(crate) async fn exec(&self, body: Value) -> Value {
        let response = self.post("/v1/exec", &body).send().await.unwrap();
        let (status, text) = (response.status(), response.text().await.unwrap());
        assert_eq!(status, 200, "{text}");
        serde_json::from_str(&text).unwrap()
    }

    /// A counter from the metrics.
    pub(crate) async fn metric(&self, name: &str) -> f64 {
        let text = self.get("/v1/metrics").await.text().await.unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("{name} in {text}")).parse().unwrap()
    }

    /// How many sandboxes the test's requests made.
    pub(crate) fn created(&self) -> usize {
        self.wall.created() - self.tried
    }

    /// Waits for something to become true.
    pub(crate) async fn until(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while !holds(self) {
            assert!(Instant::now() < deadline, "never true: {what}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Stops the server gracefully and gives its end.
    pub(crate) async fn stop(self) -> Result<(), ServeError> {
        self.shutdown.cancel();
        tokio::time::timeout(Duration::from_secs(20), self.task).await.unwrap().unwrap()
    }
}

/// The status and the body of an error, which must name its request.
pub(crate) async fn error(response: Response) -> (u16, String) {
    let status = response.status().as_u16();
    let id = response.headers()["x-request-id"].to_str().unwrap().to_owned();
    let text = response.text().await.unwrap();
    let body: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("no JSON: {text}"));
    assert_eq!(body["request_id"], id.as_str(), "{body}");
    (status, body["error"].as_str().unwrap_or_else(|| panic!("no error: {body}")).to_owned())
}
