//! `POST /v1/exec`.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Extension, State};
use axum::http::HeaderMap;
use axum::http::header::ACCEPT;
use axum::response::{IntoResponse as _, Response};

use super::openapi::Errors;
use super::request::ExecRequest;
use super::response::ExecResponse;
use super::{enter, stream};
use crate::app::App;
use crate::body::JsonBody;
use crate::caller::Caller;
use crate::envelope::RequestId;
use crate::error::ApiError;

/// Run a program in a fresh sandbox.
///
/// The sandbox is destroyed before the answer is sent; `cleanup` says whether
/// anything was left of it. A program that fails, or that a limit ends, is a
/// result (200), not an error.
///
/// With `Accept: text/event-stream`, the answer is a stream of server-sent
/// events: `stdout` and `stderr` (data: `OutputEvent`) as the program writes,
/// then `exit` (data: `Outcome`). `error` (data: `ErrorBody`) is the last event
/// instead if the program was not run to its end.
///
/// A client that closes its connection ends the program.
///
/// `/exec` is the same.
#[utoipa::path(
    post,
    path = "/v1/exec",
    tag = "exec",
    request_body = ExecRequest,
    responses(
        (
            status = 200,
            description = "The program was run.",
            content((ExecResponse = "application/json"), (String = "text/event-stream"))
        ),
        Errors,
    ),
    security(("key" = []), ()),
)]
pub(super) async fn exec(
    State(app): State<Arc<App>>,
    _: Caller,
    Extension(request_id): Extension<RequestId>,
    headers: HeaderMap,
    JsonBody(request): JsonBody<ExecRequest>,
) -> Result<Response, ApiError> {
    let plan = app.planner.plan(request, "")?;
    let slot = enter(&app).await?;
    if wants_events(&headers) {
        return Ok(stream::respond(&app.executor, slot, plan, request_id));
    }
    let (result, files) = app.executor.start(slot, plan, None).finish().await?;
    Ok(Json(ExecResponse::new(result, files)).into_response())
}

fn wants_events(headers: &HeaderMap) -> bool {
    let accepts = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepts.flat_map(|value| value.split(',')).any(|range| {
        let essence = range.split(';').next().unwrap_or_default().trim();
        essence.eq_ignore_ascii_case("text/event-stream")
    })
}
