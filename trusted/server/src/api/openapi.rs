//! The OpenAPI document.

use utoipa::openapi::OpenApi as Document;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::{IntoResponses, Modify, OpenApi};

use super::response::{Outcome, OutputEvent};
use crate::error::ErrorBody;

/// Casemate runs untrusted programs, each in a sandbox that is destroyed
/// afterwards.
///
/// Names and shapes are those of the zeroboot API. Every answer but 200 is an
/// `ErrorBody`; every answer has the header `X-Request-Id`, which a request may
/// choose. Without API keys the server is open to programs on its own machine
/// only: it refuses a foreign `Host` or `Origin` then.
#[derive(OpenApi)]
#[openapi(
    info(title = "Casemate"),
    components(schemas(ErrorBody, OutputEvent, Outcome)),
    modifiers(&Key),
    tags(
        (name = "exec", description = "Run programs."),
        (name = "info", description = "Ask about the server; no key needed."),
    ),
)]
struct Api;

/// Says how a key is sent.
struct Key;

impl Modify for Key {
    fn modify(&self, document: &mut Document) {
        let scheme = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .bearer_format("cm_ and 40 hexadecimal digits")
            .description(Some("An API key, made with `casemate keys create NAME`."))
            .build();
        let components = document.components.get_or_insert_default();
        components.add_security_scheme("key", SecurityScheme::Http(scheme));
    }
}

/// What an endpoint that runs programs may answer but 200.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "read by the derive only")]
pub(super) enum Errors {
    /// The request makes no sense: `error` names the field, or the place in the
    /// JSON.
    #[response(status = 400)]
    BadRequest(#[to_schema] ErrorBody),
    /// The key is missing or wrong.
    #[response(status = 401)]
    Unauthorized(#[to_schema] ErrorBody),
    /// The server is open, and the request may come from a web page.
    #[response(status = 403)]
    Foreign(#[to_schema] ErrorBody),
    /// The body took too long.
    #[response(status = 408)]
    SlowBody(#[to_schema] ErrorBody),
    /// The body is too large.
    #[response(status = 413)]
    TooLarge(#[to_schema] ErrorBody),
    /// The body is not `application/json`.
    #[response(status = 415)]
    MediaType(#[to_schema] ErrorBody),
    /// The program could not be started in the sandbox, or a file not be put.
    #[response(status = 422)]
    Unprocessable(#[to_schema] ErrorBody),
    /// Busy, or the key was used too often: `Retry-After` says when to try again.
    #[response(status = 429)]
    TooMany(#[to_schema] ErrorBody),
    /// The server failed.
    #[response(status = 500)]
    Internal(#[to_schema] ErrorBody),
    /// The server is stopping, or no sandbox can be made just now.
    #[response(status = 503)]
    Unavailable(#[to_schema] ErrorBody),
}

/// The document without any path.
pub(super) fn document() -> Document {
    Api::openapi()
}

/// The OpenAPI document that `GET /v1/openapi.json` gives, as JSON text.
#[must_use]
pub fn openapi_json() -> String {
    let document = super::documented().into_openapi();
    serde_json::to_string_pretty(&document).unwrap_or_default()
}
