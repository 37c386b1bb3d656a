//! Passes a program's output on as it comes.
//!
//! Writing may block for as long as the reader likes, so a thread does it: the
//! sandbox, its limits and signals are attended to meanwhile.

use std::io::{self, Write};
use std::thread;

use bytes::Bytes;
use sandbox::RunEvent;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::harmless::Harmless;

/// Chunks that wait between the sandbox and the thread.
const QUEUE: usize = 16;

/// A thread that writes.
pub(super) struct Printer {
    chunks: mpsc::Sender<RunEvent>,
    done: oneshot::Receiver<Closed>,
}

/// Whether somebody read stdout to the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Closed {
    /// Somebody did.
    No,
    /// Its reader went away.
    Stdout,
}

impl Printer {
    /// Starts the thread. `raw` leaves what goes to a terminal as it is; the
    /// program then has a terminal of its own, and the user asked for that.
    pub(super) fn start(raw: bool, cancel: CancellationToken) -> io::Result<Self> {
        let (chunks, waiting) = mpsc::channel(QUEUE);
        let (finished, done) = oneshot::channel();
        thread::Builder::new().name("output".into()).spawn(move || {
            let closed = print_all(waiting, raw);
            if closed == Closed::Stdout {
                cancel.cancel();
            }
            // Nobody waits if the run was interrupted.
            let _ = finished.send(closed);
        })?;
        Ok(Self { chunks, done })
    }

    /// Passes on what arrives, until the run is over or cancelled.
    pub(super) async fn forward(
        self,
        mut events: mpsc::Receiver<RunEvent>,
        cancel: &CancellationToken,
    ) -> oneshot::Receiver<Closed> {
        let pass_on = async {
            while let Some(event) = events.recv().await {
                if self.chunks.send(event).await.is_err() {
                    return;
                }
            }
        };
        tokio::select! {
            () = pass_on => {}
            () = cancel.cancelled() => {}
        }
        self.done
    }
}

fn print_all(mut chunks: mpsc::Receiver<RunEvent>, raw: bool) -> Closed {
    let mut stdout = Stream::new(io::stdout(), raw);
    let mut stderr = Stream::new(io::stderr(), raw);
    while let Some(chunk) = chunks.blocking_recv() {
        match chunk {
            RunEvent::Stdout(bytes) => {
                if stdout.write(&bytes).is_err() {
                    return Closed::Stdout;
                }
            }
            RunEvent::Stderr(bytes) => {
                // As with `2>&-`: the program's work may go on without it.
                let _ = stderr.write(&bytes);
            }
        }
    }
    Closed::No
}

struct Stream<W> {
    writer: W,
    filter: Option<Harmless>,
}

impl<W: Write + io::IsTerminal> Stream<W> {
    fn new(writer: W, raw: bool) -> Self {
        let filter = (!raw && writer.is_terminal()).then(Harmless::default);
        Self { writer, filter }
    }

    fn write(&mut self, bytes: &Bytes) -> io::Result<()> {
        match &mut self.filter {
            Some(filter) => self.writer.write_all(&filter.pass(bytes))?,
            None => self.writer.write_all(bytes)?,
        }
        self.writer.flush()
    }
}
