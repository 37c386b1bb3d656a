//! The server's life: bind, accept, drain, end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use sandbox::Wall;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::api;
use crate::app::{App, is_loopback};
use crate::config::ServerConfig;
use crate::error::ServeError;
use crate::executor::Executor;
use crate::health::Readiness;
use crate::keys::KeyStore;
use crate::metrics::Metrics;
use crate::plan::Planner;
use crate::rate::RateLimiter;
use crate::slots::Slots;
use crate::stall::Stalling;

/// The largest head of a request, in bytes.
const MAX_HEAD: usize = 32 * 1024;

/// How long connections get to send what they have, once nothing runs any more.
const FAREWELL: Duration = Duration::from_secs(5);

/// A server that listens, and answers once it is [`run`](Server::run).
pub struct Server {
    app: Arc<App>,
    listener: TcpListener,
}

/// Starts a server and runs it until `shutdown`, then stops it gracefully.
///
/// # Errors
///
/// As [`bind`] and [`Server::run`].
pub async fn serve(
    config: ServerConfig,
    wall: Arc<dyn Wall>,
    shutdown: CancellationToken,
) -> Result<(), ServeError> {
    bind(config, wall).await?.run(shutdown).await
}

/// Checks the settings and the wall, opens the keys, and listens.
///
/// # Errors
///
/// [`ServeError`]: the settings make no sense, the wall does not work here, the
/// keys cannot be read, the address cannot be listened on, or it can be reached
/// from other machines and there is no key.
pub async fn bind(config: ServerConfig, wall: Arc<dyn Wall>) -> Result<Server, ServeError> {
    config.check()?;
    wall.probe().await.map_err(ServeError::Wall)?;
    let keys = KeyStore::open(&config.database).await?;
    if !is_loopback(config.listen) && !keys.any_valid().await? {
        return Err(ServeError::OpenToNetwork(config.listen));
    }
    let bind_error = |source| ServeError::Bind { address: config.listen, source };
    let listener = TcpListener::bind(config.listen).await.map_err(bind_error)?;
    let address = listener.local_addr().map_err(bind_error)?;

    let metrics = Arc::new(Metrics::default());
    let app = App {
        address,
        keys,
        rate: RateLimiter::new(config.rate_limit),
        slots: Slots::new(config.slots, config.queue, config.queue_wait),
        planner: Planner::new(&config, wall.name()),
        executor: Executor {
            wall,
            metrics: Arc::clone(&metrics),
            kill: CancellationToken::new(),
            running: TaskTracker::new(),
            log_code: config.log_code,
        },
        metrics,
        readiness: Readiness::new(),
        openapi: api::openapi_json().into(),
        config,
    };
    Ok(Server { app: Arc::new(app), listener })
}

impl Server {
    /// Where it listens: the port that was found, if the settings say port 0.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.app.address
    }

    /// Answers requests until `shutdown`, then stops gracefully: no new work,
    /// running programs get the settings' drain time, then are ended; every
    /// sandbox is destroyed.
    ///
    /// # Errors
    ///
    /// [`ServeError::Keys`] if the keys cannot be read at the start,
    /// [`ServeError::Leftovers`] if something of a sandbox was left.
    pub async fn run(self, shutdown: CancellationToken) -> Result<(), ServeError> {
        self.run_until(shutdown, CancellationToken::new()).await
    }

    /// As [`Server::run`]; `hurry` ends the drain time early.
    ///
    /// # Errors
    ///
    /// As [`Server::run`].
    pub async fn run_until(
        self,
        shutdown: CancellationToken,
        hurry: CancellationToken,
    ) -> Result<(), ServeError> {
        let Self { app, listener } = self;
        tracing::info!(address = %app.address, wall = %app.executor.wall_name(), "listening");
        if app.is_open().await? {
            tracing::warn!(
                "there are no API keys: every program on this machine may use this server; \
                 `casemate keys create NAME` ends that"
            );
        }
        let trying = Arc::clone(&app);
        let stop = shutdown.clone();
        app.executor.running.spawn(async move {
            let limits = trying.config.default_limits();
            trying.readiness.find_out(&*trying.executor.wall, &limits, &stop).await;
        });

        let connections = Connections {
            router: api::router(Arc::clone(&app)),
            header_timeout: app.config.header_timeout,
            write_timeout: app.config.write_timeout,
            stopping: shutdown,
            ended: CancellationToken::new(),
            open: TaskTracker::new(),
            free: Arc::new(Semaphore::new(app.config.max_connections)),
        };
        connections.accept(listener).await;
        stop_gracefully(&app, connections, &hurry).await
    }
}

/// All connections of one server.
struct Connections {
    router: Router,
    header_timeout: Duration,
    write_timeout: Duration,
    /// Answer what has begun, then close.
    stopping: CancellationToken,
    /// Close.
    ended: CancellationToken,
    open: TaskTracker,
    free: Arc<Semaphore>,
}

impl Connections {
    /// Accepts connections until the server is to stop.
    async fn accept(&self, listener: TcpListener) {
        loop {
            let next = async {
                let place = Arc::clone(&self.free).acquire_owned().await;
                (place, listener.accept().await)
            };
            let (place, accepted) = tokio::select! {
                () = self.stopping.cancelled() => return,
                next = next => next,
            };
            match accepted {
                Ok((stream, _)) => {
                    let serving = self.serve(stream);
                    self.open.spawn(async move {
                        serving.await;
                        drop(place);
                    });
                }
                // Out of descriptors, most likely: some will be free again.
                Err(error) => {
                    tracing::warn!(%error, "a connection was not accepted");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        }
    }

    /// Serves one connection until it is closed.
    fn serve(&self, stream: TcpStream) -> impl Future<Output = ()> + Send + use<> {
        // Answers are small and whole: waiting for more only delays them.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "TCP_NODELAY");
        }
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.header_timeout)
            .max_header_size(MAX_HEAD)
            .serve_connection(
                TokioIo::new(Stalling::new(stream, self.write_timeout)),
                TowerToHyperService::new(self.router.clone()),
            );
        let (stopping, ended) = (self.stopping.clone(), self.ended.clone());
        async move {
            let mut connection = std::pin::pin!(connection);
            let closed = tokio::select! {
                closed = connection.as_mut() => closed,
                () = stopping.cancelled() => {
                    connection.as_mut().graceful_shutdown();
                    tokio::select! {
                        closed = connection.as_mut() => closed,
                        () = ended.cancelled() => Ok(()),
                    }
                }
            };
            if let Err(error) = closed {
                tracing::debug!(%error, "a connection broke");
            }
        }
    }
}

async fn stop_gracefully(
    app: &App,
    connections: Connections,
    hurry: &CancellationToken,
) -> Result<(), ServeError> {
    let executor = &app.executor;
    app.slots.close();
    executor.running.close();
    connections.open.close();
    tracing::info!(running = app.metrics.live.get(), "stopping");
    // A batch begins new runs while it is drained: it is over when its
    // connection is.
    let drained = tokio::time::timeout(app.config.drain, async {
        connections.open.wait().await;
        executor.running.wait().await;
    });
    let in_time = tokio::select! {
        drained = drained => drained.is_ok(),
        () = hurry.cancelled() => false,
    };
    if !in_time {
        tracing::warn!(running = app.metrics.live.get(), "ending what still runs");
        executor.kill.cancel();
        executor.running.wait().await;
        // A client that does not read its answer does not keep the server.
        let _ = tokio::time::timeout(FAREWELL, connections.open.wait()).await;
        connections.ended.cancel();
        connections.open.wait().await;
        executor.running.wait().await;
    }
    let cleanup = executor.wall.shutdown().await;
    app.keys.close().await;
    if cleanup.is_ok() {
        tracing::info!("stopped, nothing was left");
        Ok(())
    } else {
        tracing::error!(%cleanup, "stopped, something was left");
        Err(ServeError::Leftovers(cleanup))
    }
}
