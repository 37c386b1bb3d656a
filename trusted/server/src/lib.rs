//! The HTTP server: `POST /v1/exec` and what belongs to it.
//!
//! Names and shapes are those of the zeroboot project's public API, so that its
//! SDKs work unmodified; `GET /v1/openapi.json` describes everything, and is
//! generated from this code.
//!
//! # Who may use it
//!
//! - With API keys ([`KeyStore`]), who has one: `Authorization: Bearer cm_…`.
//! - Without any, and on a loopback address, everybody on this machine, and the
//!   server says so at its start. A web page in a browser on this machine is
//!   not let in: the `Host` must be a loopback one (a page cannot choose it,
//!   and a name that its owner points here is another), an `Origin` must be the
//!   server's own, and bodies must be `application/json` (which a page cannot
//!   send elsewhere without the server's consent).
//! - Without any, and on another address, the server does not start.
//!
//! Once a key was made, keys are needed, also after all were revoked.
//!
//! # Load
//!
//! Each execution takes a slot. If all are taken, a request is refused as busy
//! at once, or waits in a bounded queue if the settings say so. A batch needs
//! one free slot to begin; its executions run side by side in all slots that
//! are free, the others wait within the request.
//!
//! A client that goes away takes its program with it.

#![forbid(unsafe_code)]

mod api;
mod app;
mod body;
mod caller;
mod config;
mod envelope;
mod error;
mod executor;
mod guard;
mod health;
mod keys;
mod logging;
mod metrics;
mod plan;
mod rate;
mod serve;
mod slots;
mod stall;
mod units;
mod utf8;

pub use api::openapi_json;
pub use config::{ConfigError, LimitSettings, LogFormat, ServerConfig};
pub use error::ServeError;
pub use keys::{KeyError, KeyInfo, KeyStore};
pub use logging::{Logs, init_logging};
pub use serve::{Server, bind, serve};
pub use units::{Size, Time};
