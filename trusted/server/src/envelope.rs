//! What goes around every request: its id, its line in the log, the body of an
//! error, and the end of a panic.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::header::CONNECTION;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use futures_util::FutureExt as _;
use tracing::Instrument as _;
use uuid::Uuid;

use crate::app::App;
use crate::body::Unread;
use crate::error::ApiError;

const HEADER: HeaderName = HeaderName::from_static("x-request-id");

/// Names one request, in its answer and in the log.
#[derive(Clone, Debug)]
pub(crate) struct RequestId(pub(crate) Arc<str>);

impl RequestId {
    /// The caller's own id, if that can go into a log and a header as it is;
    /// else a new one.
    fn of(headers: &HeaderMap) -> Self {
        let sane = |id: &&str| {
            (1..=128).contains(&id.len())
                && id.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
        };
        let own = headers.get(HEADER).and_then(|id| id.to_str().ok()).filter(sane);
        Self(own.map_or_else(|| Uuid::now_v7().to_string().into(), Arc::from))
    }
}

/// The outermost layer.
pub(crate) async fn envelope(
    State(app): State<Arc<App>>,
    mut request: Request,
    next: Next,
) -> Response {
    let begun = Instant::now();
    let id = RequestId::of(request.headers());
    let method = request.method().clone();
    let path = match request.extensions().get::<MatchedPath>() {
        Some(path) => path.as_str().to_owned(),
        // Escaped, as it is the caller's.
        None => request.uri().path().chars().take(200).flat_map(char::escape_default).collect(),
    };
    request.extensions_mut().insert(id.clone());
    let (request, unread) = Unread::of(request);

    let span = tracing::info_span!("request", request_id = %id.0);
    let handled = AssertUnwindSafe(next.run(request)).catch_unwind().instrument(span.clone());
    let mut response = handled.await.unwrap_or_else(|_| {
        span.in_scope(|| tracing::error!("a handler panicked"));
        ApiError::Internal("the request failed: this is a mistake in casemate".into())
            .into_response()
    });

    let mut error = None;
    if let Some(api_error) = response.extensions_mut().remove::<ApiError>() {
        response = api_error.render(&id.0);
        // Of a body that is too large or too slow enough was read already.
        let enough = matches!(api_error, ApiError::TooLarge(_) | ApiError::SlowBody(_));
        if !enough && !unread.spill(app.config.max_body, app.config.body_timeout).await {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        error = Some(api_error);
    }
    if let Ok(value) = HeaderValue::from_str(&id.0) {
        response.headers_mut().insert(HEADER, value);
    }
    span.in_scope(|| {
        tracing::info!(
            %method,
            path,
            status = response.status().as_u16(),
            micros = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX),
            error = error.map(|error| error.for_log(app.config.log_code)),
            "answered"
        );
    });
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sane_ids_are_taken_over() {
        let cases = [
            ("abc-1.2_3", true),
            ("", false),
            ("a b", false),
            ("a\"b", false),
            (&"x".repeat(128), true),
            (&"x".repeat(129), false),
        ];
        for (id, taken) in cases {
            let mut headers = HeaderMap::new();
            headers.insert(HEADER, HeaderValue::from_str(id).unwrap());
            assert_eq!(&*RequestId::of(&headers).0 == id, taken, "{id:?}");
        }
    }
}
