//! The user's terminal while a program in a sandbox uses it.

use std::io;

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetpgrp, tcgetwinsize, tcsetattr};
use sandbox::TerminalSize;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// A terminal on stdin that passes every key on. Dropping this restores it.
pub(super) struct RawMode(Termios);

impl RawMode {
    /// Changes the terminal on stdin; `None` if there is none.
    pub(super) fn enter() -> io::Result<Option<Self>> {
        let Ok(before) = tcgetattr(io::stdin()) else { return Ok(None) };
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(io::stdin(), OptionalActions::Now, &raw)?;
        Ok(Some(Self(before)))
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing.
        let _ = tcsetattr(io::stdin(), OptionalActions::Drain, &self.0);
    }
}

/// The size of the user's terminal, or the usual one.
pub(super) fn size() -> TerminalSize {
    tcgetwinsize(io::stdout())
        .or_else(|_| tcgetwinsize(io::stdin()))
        .ok()
        .filter(|size| size.ws_row > 0 && size.ws_col > 0)
        .map_or(TerminalSize { rows: 24, cols: 80 }, |size| TerminalSize {
            rows: size.ws_row,
            cols: size.ws_col,
        })
}

/// The sizes that the user's terminal takes from now on; `None` if that cannot
/// be had.
pub(super) fn sizes() -> Option<watch::Receiver<TerminalSize>> {
    let mut changed = signal(SignalKind::window_change()).ok()?;
    let (sender, receiver) = watch::channel(size());
    tokio::spawn(
        async move { while changed.recv().await.is_some() && sender.send(size()).is_ok() {} },
    );
    Some(receiver)
}

/// Whether reading stdin would stop us, as a shell's background job is stopped
/// that reads the terminal.
pub(super) fn in_background() -> bool {
    tcgetpgrp(io::stdin()).is_ok_and(|foreground| foreground != rustix::process::getpgrp())
}
