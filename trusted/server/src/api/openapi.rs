//! The OpenAPI document.

use std::collections::BTreeMap;

use utoipa::openapi::schema::{Object, Type};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{
    Content, HeaderBuilder, OpenApi as Document, Ref, RefOr, Response, ResponseBuilder,
};
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
pub(super) struct Errors;

/// Statuses, and what they mean.
const ERRORS: [(&str, &str); 10] = [
    ("400", "The request makes no sense: `error` names the field, or the place in the JSON."),
    ("401", "The key is missing or wrong."),
    ("403", "The server is open, and the request may come from a web page."),
    ("408", "The body took too long."),
    ("413", "The body is too large."),
    ("415", "The body is not `application/json`."),
    ("422", "The program could not be started in the sandbox, or a file not be put into it."),
    ("429", "Busy, or the key was used too often."),
    ("500", "The server failed."),
    ("503", "The server is stopping, or no sandbox can be made just now."),
];

impl IntoResponses for Errors {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let response = |(status, meaning): (&str, &str)| {
            let body = Content::new(Some(Ref::from_schema_name("ErrorBody")));
            let mut response =
                ResponseBuilder::new().description(meaning).content("application/json", body);
            if status == "429" {
                let header = HeaderBuilder::new()
                    .schema(Some(Object::with_type(Type::Integer)))
                    .description(Some("In how many seconds to try again."))
                    .build();
                response = response.header("Retry-After", header);
            }
            (status.to_owned(), response.build().into())
        };
        ERRORS.into_iter().map(response).collect()
    }
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
