//! Log lines, on stderr.

use std::io::{self, IsTerminal as _};

use tracing_appender::non_blocking::{NonBlocking, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer as _, fmt};

use crate::config::{ConfigError, LogFormat, ServerConfig};

/// How many lines wait for a reader that is slow; further ones are lost.
const WAITING_LINES: usize = 8192;

/// Writes the lines that still wait when it is dropped: to be kept until the
/// end of the program.
#[must_use = "without it, nothing is logged"]
#[derive(Debug)]
pub struct Logs {
    _worker: WorkerGuard,
}

/// Sends log lines to stderr as the settings say. Does nothing if the process
/// has said already where they go. Whoever reads stderr need not keep up: lines
/// are lost rather than that a request waits for them.
///
/// # Errors
///
/// [`ConfigError::Value`] if `log_level` is none.
pub fn init_logging(config: &ServerConfig) -> Result<Logs, ConfigError> {
    let targets = config
        .log_level
        .parse::<Targets>()
        .map_err(|error| ConfigError::Value { field: "log_level", reason: error.to_string() })?;
    let (writer, logs) = never_waiting(io::stderr());
    let lines = fmt::layer().with_writer(writer);
    let lines = match config.log_format {
        LogFormat::Text => lines.with_ansi(io::stderr().is_terminal()).boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    // A second call is a test's, or an embedder's own choice.
    let _ = tracing_subscriber::registry().with(lines.with_filter(targets)).try_init();
    Ok(logs)
}

/// A writer that has a thread of its own write, and loses what it cannot.
fn never_waiting(writer: impl io::Write + Send + 'static) -> (NonBlocking, Logs) {
    let (writer, worker) = NonBlockingBuilder::default()
        .lossy(true)
        .buffered_lines_limit(WAITING_LINES)
        .thread_name("log")
        .finish(writer);
    (writer, Logs { _worker: worker })
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    /// A writer whose reader is stuck.
    struct Stuck(mpsc::Receiver<()>);

    impl io::Write for Stuck {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            // Until the test is over.
            let _ = self.0.recv();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_stuck_reader_blocks_nobody() {
        let (release, stuck) = mpsc::channel();
        let (done, logged) = mpsc::channel();
        let (writer, logs) = never_waiting(Stuck(stuck));
        std::thread::spawn(move || {
            let lost = writer.error_counter();
            let lines = tracing_subscriber::registry().with(fmt::layer().with_writer(writer));
            tracing::subscriber::with_default(lines, || {
                for number in 0..2 * WAITING_LINES {
                    tracing::error!(number, "a line");
                }
            });
            let _ = done.send(lost.dropped_lines());
        });
        let lost = logged.recv_timeout(Duration::from_secs(20)).expect("logging does not wait");
        assert!(lost >= WAITING_LINES - 2, "{lost}");
        drop(release);
        drop(logs);
    }
}
