//! What all requests share.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;

use crate::config::ServerConfig;
use crate::executor::Executor;
use crate::health::Readiness;
use crate::keys::KeyStore;
use crate::metrics::Metrics;
use crate::plan::Planner;
use crate::rate::RateLimiter;
use crate::slots::Slots;

/// The state of one server.
pub(crate) struct App {
    pub(crate) config: ServerConfig,
    /// Where it listens.
    pub(crate) address: SocketAddr,
    pub(crate) keys: KeyStore,
    pub(crate) rate: RateLimiter,
    pub(crate) slots: Slots,
    pub(crate) planner: Planner,
    pub(crate) executor: Executor,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) readiness: Readiness,
    /// The OpenAPI document.
    pub(crate) openapi: Bytes,
}

impl App {
    /// Whether everybody may use the server: it can be reached from this
    /// machine only, and no key was ever made.
    ///
    /// # Errors
    ///
    /// When the database fails.
    pub(crate) async fn is_open(&self) -> Result<bool, crate::keys::KeyError> {
        Ok(is_loopback(self.address) && !self.keys.any_made().await?)
    }
}

/// Whether only this machine can reach the address.
pub(crate) fn is_loopback(address: SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}
