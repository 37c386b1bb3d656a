//! Signals that ask `casemate run` to end.

use std::io;
use std::sync::Arc;
use std::sync::OnceLock;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Takes over the signals that would end this process at once and leave the
/// clean-up to others. The first one cancels the run. Further ones change
/// nothing: the sandbox is being destroyed already, which takes a moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Interrupt(Arc<OnceLock<u8>>);

impl Interrupt {
    /// Watches from now on.
    pub(super) fn watch(cancel: &CancellationToken) -> io::Result<Self> {
        let interrupt = Self::default();
        for kind in [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()] {
            tokio::spawn(wait(signal(kind)?, kind, interrupt.clone(), cancel.clone()));
        }
        Ok(interrupt)
    }

    /// The exit code of the first signal that came, as a shell would show it.
    pub(super) fn exit_code(&self) -> Option<u8> {
        self.0.get().copied()
    }
}

async fn wait(
    mut signals: Signal,
    kind: SignalKind,
    interrupt: Interrupt,
    cancel: CancellationToken,
) {
    if signals.recv().await.is_some() {
        let code = u8::try_from(128 + kind.as_raw_value()).unwrap_or(u8::MAX);
        let _ = interrupt.0.set(code);
        cancel.cancel();
    }
}
