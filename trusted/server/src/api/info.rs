//! `GET` endpoints: health, metrics, the OpenAPI document.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::health::Template;

/// Whether the server works.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct HealthResponse {
    /// `ok`.
    status: &'static str,
    /// Each language, and whether it works here.
    templates: BTreeMap<&'static str, Template>,
    /// The wall that sandboxes are made behind.
    #[schema(value_type = String, example = "jail")]
    wall: sandbox::WallName,
    /// The server's version.
    version: &'static str,
}

/// Say whether the server works, and with which languages.
///
/// Languages are tried once, after the start: until then none is ready.
/// `/health` is the same.
#[utoipa::path(
    get,
    path = "/v1/health",
    tag = "info",
    responses((status = 200, description = "The server works.", body = HealthResponse)),
)]
pub(super) async fn health(State(app): State<Arc<App>>) -> Json<HealthResponse> {
    Json(HealthResponse {
        status: "ok",
        templates: app.readiness.now(),
        wall: app.executor.wall_name(),
        version: env!("CARGO_PKG_VERSION"),
    })
}

/// Give counters in Prometheus' text format.
///
/// `/metrics` is the same.
#[utoipa::path(
    get,
    path = "/v1/metrics",
    tag = "info",
    responses((status = 200, description = "The counters.", body = String, content_type = "text/plain")),
)]
pub(super) async fn metrics(State(app): State<Arc<App>>) -> impl IntoResponse {
    let text = app.metrics.render(app.slots.waiting());
    ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text)
}

/// Give this document.
#[utoipa::path(
    get,
    path = "/v1/openapi.json",
    tag = "info",
    responses((status = 200, description = "An OpenAPI document.", body = Object)),
)]
pub(super) async fn openapi(State(app): State<Arc<App>>) -> impl IntoResponse {
    ([(CONTENT_TYPE, "application/json")], app.openapi.clone())
}
