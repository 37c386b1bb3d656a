//! What the server answers, or says at its start, when something is wrong.

use std::net::SocketAddr;

use axum::http::header::{CONNECTION, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use sandbox::{Cleanup, CreateError, RunError, StartError, Unavailable};
use serde::Serialize;
use utoipa::ToSchema;

use crate::config::ConfigError;
use crate::keys::KeyError;

/// Why the server did not start, or did not end well.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The settings make no sense.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The keys cannot be read.
    #[error(transparent)]
    Keys(#[from] KeyError),
    /// Everybody on the network could run programs.
    #[error(
        "{0} can be reached from other machines and there is no API key: make one with \
         `casemate keys create NAME`, or listen on 127.0.0.1"
    )]
    OpenToNetwork(SocketAddr),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Bind {
        /// Which address.
        address: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
    /// The wall does not work on this host.
    #[error("no sandbox can be made here: {0}")]
    Wall(Unavailable),
    /// The server ended, but something of a sandbox did not.
    #[error("the server has stopped, but of its sandboxes was {0}")]
    Leftovers(Cleanup),
}

/// The body of every answer but 200.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ErrorBody {
    /// What is wrong, for people.
    pub(crate) error: String,
    /// Names this request in the server's log.
    pub(crate) request_id: String,
}

/// An answer other than 200. [`crate::envelope`] writes its body, which names
/// the request.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum ApiError {
    /// 400: the request makes no sense; says which field.
    #[error("{0}")]
    BadRequest(String),
    /// 401: keys exist and none was sent.
    #[error("Missing Authorization header")]
    NoKey,
    /// 401: the key that was sent is none of ours.
    #[error("Invalid API key")]
    BadKey,
    /// 403: the request may come from a web page in somebody's browser.
    #[error("{0}")]
    Foreign(String),
    /// 404.
    #[error("there is nothing at this path; see /v1/openapi.json for what there is")]
    NotFound,
    /// 405.
    #[error("this path does not take this method; see /v1/openapi.json")]
    Method,
    /// 408: the body did not arrive in time.
    #[error("the request's body did not arrive within {0} s")]
    SlowBody(u64),
    /// 413.
    #[error("the request's body is larger than {0} bytes")]
    TooLarge(u64),
    /// 415.
    #[error("the Content-Type must be application/json")]
    MediaType,
    /// 422: the request makes sense, but not in this sandbox.
    #[error("{0}")]
    Unprocessable(String),
    /// 429: the key was used too often.
    #[error("rate limit exceeded: {rate} requests a second")]
    RateLimited {
        /// What the key may do.
        rate: u32,
        /// When to try again.
        retry_after: u64,
    },
    /// 429: all slots are taken.
    #[error("busy: all {slots} sandboxes are in use, try again")]
    Busy {
        /// How many there are.
        slots: usize,
        /// When to try again.
        retry_after: u64,
    },
    /// 500: our failure. The text is for the caller too.
    #[error("{0}")]
    Internal(String),
    /// 503: not now.
    #[error("{0}")]
    Unavailable(String),
}

impl ApiError {
    /// The server is about to end.
    pub(crate) fn stopping() -> Self {
        Self::Unavailable("the server is stopping".into())
    }

    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::BadRequest(_) => StatusCode::BAD_REQUEST,
            Self::NoKey | Self::BadKey => StatusCode::UNAUTHORIZED,
            Self::Foreign(_) => StatusCode::FORBIDDEN,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
            Self::SlowBody(_) => StatusCode::REQUEST_TIMEOUT,
            Self::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::MediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Unprocessable(_) => StatusCode::UNPROCESSABLE_ENTITY,
            Self::RateLimited { .. } | Self::Busy { .. } => StatusCode::TOO_MANY_REQUESTS,
            Self::Internal(_) => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// What of this may go into the log: all of it if `log_code`. What is
    /// wrong with a request, or with a program, is told with parts of it.
    pub(crate) fn for_log(&self, log_code: bool) -> String {
        match self {
            Self::BadRequest(_) if !log_code => "the request makes no sense".into(),
            Self::Unprocessable(_) if !log_code => "the program could not be started".into(),
            error => error.to_string(),
        }
    }

    /// The whole answer.
    pub(crate) fn render(&self, request_id: &str) -> Response {
        let body = ErrorBody { error: self.to_string(), request_id: request_id.to_owned() };
        let body = serde_json::to_vec(&body).unwrap_or_default();
        let mut response = (self.status(), body).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        match self {
            Self::NoKey | Self::BadKey => {
                headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            Self::RateLimited { retry_after, .. } | Self::Busy { retry_after, .. } => {
                headers.insert(RETRY_AFTER, HeaderValue::from(*retry_after));
            }
            // What is left of the body cannot be told from a next request.
            Self::SlowBody(_) | Self::TooLarge(_) => {
                headers.insert(CONNECTION, HeaderValue::from_static("close"));
            }
            _ => {}
        }
        response
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = self.status().into_response();
        response.extensions_mut().insert(self);
        response
    }
}

impl From<RunError> for ApiError {
    fn from(error: RunError) -> Self {
        let text = error.to_string();
        match error {
            RunError::Create(CreateError::Limit(_) | CreateError::Spec { .. })
            | RunError::Create(CreateError::NotBuilt(_)) => Self::BadRequest(text),
            RunError::Create(CreateError::Unavailable { .. })
            | RunError::Start(StartError::Resources(_)) => Self::Unavailable(text),
            RunError::Create(_) | RunError::Start(StartError::Sandbox(_)) => Self::Internal(text),
            RunError::Start(_) | RunError::File(_) => Self::Unprocessable(text),
            _ => Self::Internal(text),
        }
    }
}

impl From<KeyError> for ApiError {
    fn from(error: KeyError) -> Self {
        // What the database said is for the log, not for callers.
        tracing::error!(%error, "keys cannot be checked");
        Self::Internal("API keys cannot be checked".into())
    }
}
