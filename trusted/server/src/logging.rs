//! Log lines, on stderr.

use std::io::IsTerminal as _;

use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer as _, fmt};

use crate::config::{ConfigError, LogFormat, ServerConfig};

/// Sends log lines to stderr as the settings say. Does nothing if the process
/// has said already where they go.
///
/// # Errors
///
/// [`ConfigError::Value`] if `log_level` is none.
pub fn init_logging(config: &ServerConfig) -> Result<(), ConfigError> {
    let targets = config
        .log_level
        .parse::<Targets>()
        .map_err(|error| ConfigError::Value { field: "log_level", reason: error.to_string() })?;
    let lines = fmt::layer().with_writer(std::io::stderr);
    let lines = match config.log_format {
        LogFormat::Text => lines.with_ansi(std::io::stderr().is_terminal()).boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    // A second call is a test's, or an embedder's own choice.
    let _ = tracing_subscriber::registry().with(lines.with_filter(targets)).try_init();
    Ok(())
}
