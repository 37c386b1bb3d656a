//! Bodies of requests: bounded in size and time, then read as JSON.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::extract::{FromRequest, Request};
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, EXPECT};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::body::{Frame, SizeHint};
use serde::de::DeserializeOwned;

use crate::app::App;
use crate::error::ApiError;

/// How many times the largest body is read and thrown away before the answer
/// that it is too large: a client that is still sending would not see that one.
const SPILL: u64 = 4;

/// How long the body of a refused request is read and thrown away.
const SPILL_TIME: Duration = Duration::from_secs(5);

/// A body of JSON.
pub(crate) struct JsonBody<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Arc<App>> for JsonBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, ApiError> {
        if !is_json(request.headers()) {
            return Err(ApiError::MediaType);
        }
        let (max, wait) = (app.config.max_body, app.config.body_timeout);
        let length = length(request.headers());
        let reading = read(request.into_body(), length, max);
        let bytes = tokio::time::timeout(wait, reading)
            .await
            .map_err(|_| ApiError::SlowBody(wait.max(Duration::from_secs(1)).as_secs()))??;
        parse(&bytes).map(Self)
    }
}

fn length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok())
}

/// The body of a request whose handler may leave it unread.
pub(crate) struct Unread {
    body: Arc<Mutex<Body>>,
    length: Option<u64>,
    /// The client sends its body once it is asked to.
    asks: bool,
}

impl Unread {
    /// Keeps hold of the body of a request.
    pub(crate) fn of(request: Request) -> (Request, Self) {
        let (parts, body) = request.into_parts();
        let body = Arc::new(Mutex::new(body));
        let unread = Self {
            body: Arc::clone(&body),
            length: length(&parts.headers),
            asks: parts.headers.contains_key(EXPECT),
        };
        (Request::from_parts(parts, Body::new(Lent(body))), unread)
    }

    /// Reads what the handler left, and throws it away: a client that is still
    /// sending would not see the answer. Whether all of it was read.
    pub(crate) async fn spill(self, max: u64, wait: Duration) -> bool {
        let most = max.saturating_mul(SPILL);
        let mut body = Lent(self.body);
        if body.is_end_stream() {
            return true;
        }
        if self.asks || self.length.is_some_and(|length| length > most) {
            return false;
        }
        let reading = async {
            let mut seen = 0_u64;
            while let Some(Ok(frame)) = body.frame().await {
                let size = frame.data_ref().map_or(0, Bytes::len);
                seen = seen.saturating_add(u64::try_from(size).unwrap_or(u64::MAX));
                if seen > most {
                    return false;
                }
            }
            body.is_end_stream()
        };
        tokio::time::timeout(wait.min(SPILL_TIME), reading).await.unwrap_or(false)
    }
}

/// A body that another holds too.
struct Lent(Arc<Mutex<Body>>);

impl HttpBody for Lent {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let mut body = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Pin::new(&mut *body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).size_hint()
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let text = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = text.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("application/json")
}

async fn read(mut body: Body, length: Option<u64>, max: u64) -> Result<Bytes, ApiError> {
    let too_large = Err(ApiError::TooLarge(max));
    if length.is_some_and(|length| length > max.saturating_mul(SPILL)) {
        return too_large;
    }
    let mut bytes = BytesMut::new();
    let mut seen = 0_u64;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            ApiError::BadRequest(format!("the request's body broke off: {error}"))
        })?;
        let Some(data) = frame.data_ref() else { continue };
        seen = seen.saturating_add(u64::try_from(data.len()).unwrap_or(u64::MAX));
        if seen > max {
            bytes = BytesMut::new();
            if seen > max.saturating_mul(SPILL) {
                return too_large;
            }
        } else {
            bytes.extend_from_slice(data);
        }
    }
    if seen > max { too_large } else { Ok(bytes.freeze()) }
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    // serde would take an array of the fields' values as well.
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    if first.is_some_and(|byte| *byte != b'{') {
        return Err(ApiError::BadRequest("the request must be a JSON object".into()));
    }
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let path = error.path().to_string();
        let inner = error.into_inner();
        // A question mark stands for a field whose name was not read yet.
        let path = path.strip_suffix('?').unwrap_or(&path);
        ApiError::BadRequest(match path.strip_suffix('.').unwrap_or(path) {
            "" => format!("invalid JSON: {inner}"),
            path => format!("{path}: {inner}"),
        })
    })?;
    json.end().map_err(|error| ApiError::BadRequest(format!("invalid JSON: {error}")))?;
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::request::BatchRequest;

    #[test]
    fn errors_name_the_field_and_where_it_is() {
        let cases = [
            (r#""#, "invalid JSON: EOF", "line 1 column 0"),
            (r#"{"#, "invalid JSON: EOF", "line 1 column 1"),
            (r#"{"executions""#, "invalid JSON: EOF", "line 1 column 13"),
            (r#"{"executions":[{"#, "executions[0]: EOF", "line 1 column 16"),
            (
                r#"{"executions":[["print(42)"]]}"#,
                "executions[0]: invalid type: sequence",
                "line 1",
            ),
            (r#"{"executions":[{"limits":[1]}]}"#, "executions[0].limits: invalid type", "line 1"),
            (r#"{"executions":[]} x"#, "trailing characters", "line 1 column 19"),
            (r#"{"executions":[{"code":1}]}"#, "executions[0].code: invalid type", "column 24"),
            (
                r#"{"executions":[{"cod":""}]}"#,
                "executions[0].cod: unknown field `cod`",
                "column 21",
            ),
            (
                r#"{"executions":[{"limits":{"memory":"x"}}]}"#,
                "executions[0].limits.memory: `x`",
                "column",
            ),
            (r#"{}"#, "missing field `executions`", "line 1 column 2"),
            (
                "{\"executions\":[{\"code\":\"\u{1}\"}]}",
                "executions[0].code: control character",
                "line 1",
            ),
        ];
        for (json, said, place) in cases {
            let error = parse::<BatchRequest>(json.as_bytes()).unwrap_err().to_string();
            assert!(
                !error.contains("?: ") && error.contains(said) && error.contains(place),
                "{json}: {error}"
            );
        }
        for json in ["[]", "[[]]", " [{}]", "null", "1", "\"x\"", "x"] {
            let error = parse::<BatchRequest>(json.as_bytes()).unwrap_err().to_string();
            assert_eq!(error, "the request must be a JSON object", "{json}");
        }
        for (name, list, said) in [
            (
                "executions",
                format!("[{}{{}}]", "{},".repeat(2_700_000)),
                "executions: more than 4096",
            ),
            (
                "files",
                format!("[{}]", ["{\"path\":\"\"}"; 1025].join(",")),
                "[0].files: more than 1024",
            ),
            ("argv", format!("[{}]", ["\"\""; 4097].join(",")), "[0].argv: more than 4096"),
            ("get", format!("[{}]", ["\"\""; 17].join(",")), "[0].get: more than 16"),
        ] {
            let json = match name {
                "executions" => format!("{{\"executions\":{list}}}"),
                _ => format!("{{\"executions\":[{{\"{name}\":{list}}}]}}"),
            };
            // Where it stopped: far from the end of the longest.
            let error = parse::<BatchRequest>(json.as_bytes()).unwrap_err().to_string();
            let column: usize = error.rsplit(' ').next().unwrap().parse().unwrap();
            assert!(error.contains(said) && column < 20_000, "{name}: {error}");
        }
        let most = format!("{{\"executions\":[{}{{}}]}}", "{},".repeat(4095));
        assert_eq!(parse::<BatchRequest>(most.as_bytes()).unwrap().executions.len(), 4096);
        assert!(parse::<BatchRequest>(b" {\"executions\" : [ ] }\n").is_ok());
        assert!(parse::<BatchRequest>(b"{\"executions\":[{\"code\":\"\xff\"}]}").is_err());
    }
}
