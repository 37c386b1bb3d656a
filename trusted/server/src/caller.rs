//! Who asks: the API key of a request, and how often it was used.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::FromRequestParts;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;

use crate::app::App;
use crate::error::ApiError;
use crate::guard::Open;

/// Somebody who may run programs. Taking this from a request checks the key
/// and counts against its rate.
#[derive(Debug)]
pub(crate) struct Caller;

impl FromRequestParts<Arc<App>> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, ApiError> {
        // Without the guard before it, a request is let in with a key only.
        if matches!(parts.extensions.get(), Some(Open(true))) {
            return Ok(Self);
        }
        let unauthorized = |error| {
            app.metrics.unauthorized.add(1);
            Err(error)
        };
        let Some(header) = parts.headers.get(AUTHORIZATION) else {
            return unauthorized(ApiError::NoKey);
        };
        let Some(key) = header.to_str().ok().and_then(bearer) else {
            return unauthorized(ApiError::BadKey);
        };
        // A hash is compared by the database's index: how long that takes says
        // nothing about the key.
        let Some(id) = app.keys.find(key).await? else {
            return unauthorized(ApiError::BadKey);
        };
        if let Err(wait) = app.rate.count(id, Instant::now()) {
            app.metrics.rate_limited.add(1);
            let retry_after = wait.as_secs() + 1;
            return Err(ApiError::RateLimited { rate: app.config.rate_limit, retry_after });
        }
        tracing::debug!(key = id.0, "key accepted");
        Ok(Self)
    }
}

/// The token of a `Bearer` header; the scheme's name is in any case.
fn bearer(header: &str) -> Option<&str> {
    let (scheme, token) = header.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bearer_tokens() {
        let cases = [
            ("Bearer cm_1", Some("cm_1")),
            ("bearer  cm_1 ", Some("cm_1")),
            ("Basic cm_1", None),
            ("Bearer", None),
            ("cm_1", None),
        ];
        for (header, want) in cases {
            assert_eq!(bearer(header), want, "{header}");
        }
    }
}
