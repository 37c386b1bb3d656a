//! Signals that ask this process to end.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Takes over the signals that would end this process at once and leave the
/// clean-up to others. They stay taken over when this is dropped.
#[derive(Debug)]
pub(crate) struct Signals([(SignalKind, Signal); 3]);

impl Signals {
    /// Takes them over, in a runtime.
    pub(crate) fn take() -> io::Result<Self> {
        let take = |kind| Ok::<_, io::Error>((kind, signal(kind)?));
        Ok(Self([
            take(SignalKind::interrupt())?,
            take(SignalKind::terminate())?,
            take(SignalKind::hangup())?,
        ]))
    }

    /// Waits for the next one and gives the exit code that a shell shows for a
    /// program that it ended.
    pub(crate) async fn next(&mut self) -> u8 {
        let [(int, on_int), (term, on_term), (hup, on_hup)] = &mut self.0;
        let kind = tokio::select! {
            _ = on_int.recv() => int,
            _ = on_term.recv() => term,
            _ = on_hup.recv() => hup,
        };
        u8::try_from(128 + kind.as_raw_value()).unwrap_or(u8::MAX)
    }
}
