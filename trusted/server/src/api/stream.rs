//! A run as server-sent events.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use axum::http::{HeaderName, HeaderValue};
use axum::response::sse::{Event, KeepAlive};
use axum::response::{IntoResponse as _, Response, Sse};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::stream;
use sandbox::RunEvent;
use serde::Serialize;
use tokio::sync::mpsc;

use super::response::{Outcome, OutputEvent};
use crate::envelope::RequestId;
use crate::error::{ApiError, ErrorBody};
use crate::executor::{Done, Executor, Running};
use crate::plan::Plan;
use crate::slots::Slot;
use crate::utf8::{Decoder, Piece};

/// How often a comment is sent while nothing happens, so that proxies keep the
/// connection and a client that is gone is noticed.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Starts a run and answers with what happens in it.
pub(super) fn respond(executor: &Executor, slot: Slot, plan: Plan, id: RequestId) -> Response {
    let (sender, mut output) = mpsc::channel(16);
    let running = executor.start(slot, plan, Some(sender));
    // What is written waits here for a client that reads slowly: the program
    // and its slot do not. The output limit bounds it.
    let (unbounded, events) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Some(event) = output.recv().await {
            if unbounded.send(event).is_err() {
                break;
            }
        }
    });
    let state = Streaming {
        events,
        running: Some(running),
        stdout: Decoder::default(),
        stderr: Decoder::default(),
        ready: VecDeque::new(),
        id,
    };
    let events = stream::unfold(state, async |mut state| {
        let event = state.next().await?;
        Some((Ok::<_, Infallible>(event), state))
    });
    let mut response =
        Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response();
    // Some proxies hold back what they are not told to pass on.
    response
        .headers_mut()
        .insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    response
}

/// A run that is being streamed. Dropping it ends the run.
struct Streaming {
    events: mpsc::UnboundedReceiver<RunEvent>,
    /// The run, until its end was reported.
    running: Option<Running>,
    stdout: Decoder,
    stderr: Decoder,
    ready: VecDeque<Event>,
    id: RequestId,
}

impl Streaming {
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            match self.events.recv().await {
                Some(RunEvent::Stdout(bytes)) => {
                    let pieces = self.stdout.push(&bytes);
                    self.ready.extend(pieces.into_iter().map(|piece| output("stdout", piece)));
                }
                Some(RunEvent::Stderr(bytes)) => {
                    let pieces = self.stderr.push(&bytes);
                    self.ready.extend(pieces.into_iter().map(|piece| output("stderr", piece)));
                }
                None => {
                    let done = self.running.take()?.finish().await;
                    let rest = [("stdout", &mut self.stdout), ("stderr", &mut self.stderr)];
                    for (name, decoder) in rest {
                        self.ready.extend(decoder.finish().map(|piece| output(name, piece)));
                    }
                    self.ready.push_back(self.end(done));
                }
            }
        }
    }

    fn end(&self, done: Result<Done, ApiError>) -> Event {
        match done {
            Ok((result, files)) => event("exit", &Outcome::new(result, files)),
            Err(error) => {
                let request_id = self.id.0.to_string();
                event("error", &ErrorBody { error: error.to_string(), request_id })
            }
        }
    }
}

fn output(name: &str, piece: Piece) -> Event {
    let body = match piece {
        Piece::Text(data) => OutputEvent { data, base64: false },
        Piece::Bytes(bytes) => OutputEvent { data: STANDARD.encode(bytes), base64: true },
    };
    event(name, &body)
}

/// An event. JSON has no line breaks outside strings and escapes those within,
/// so what a program writes cannot end one and begin another.
fn event(name: &str, body: &impl Serialize) -> Event {
    let data = serde_json::to_string(body).unwrap_or_default();
    Event::default().event(name).data(data)
}
