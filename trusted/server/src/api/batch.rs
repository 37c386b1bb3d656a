//! `POST /v1/exec/batch`.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;

use super::enter;
use super::openapi::Errors;
use super::request::BatchRequest;
use super::response::{BatchResponse, ExecResponse};
use crate::app::App;
use crate::body::JsonBody;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::plan::Plan;

/// Run programs side by side, each in a sandbox of its own.
///
/// At least one slot must be free, else the server is busy (429). Programs run
/// in all slots that are free, the others wait within this request. Results
/// are in the order of the request; one for a program that could not be run has
/// `exit_code` -1 and `error`. If a program of the batch makes no sense (400),
/// none is run. The whole batch counts once against the key's rate.
///
/// `/exec/batch` is the same.
#[utoipa::path(
    post,
    path = "/v1/exec/batch",
    tag = "exec",
    request_body = BatchRequest,
    responses((status = 200, description = "The programs were run.", body = BatchResponse), Errors),
    security(("key" = []), ()),
)]
pub(super) async fn batch(
    State(app): State<Arc<App>>,
    _: Caller,
    JsonBody(request): JsonBody<BatchRequest>,
) -> Result<Json<BatchResponse>, ApiError> {
    let (count, most) = (request.executions.len(), app.config.max_batch);
    if count > most {
        return Err(ApiError::BadRequest(format!(
            "executions: {count} are more than the {most} that this server takes at once"
        )));
    }
    let plan = |(index, request)| app.planner.plan(request, &format!("executions[{index}]."));
    let plans: Vec<Plan> =
        request.executions.into_iter().enumerate().map(plan).collect::<Result<_, _>>()?;
    if plans.is_empty() {
        return Ok(Json(BatchResponse { results: Vec::new() }));
    }

    let mut free = vec![enter(&app).await?];
    let mut results: Vec<Option<ExecResponse>> = plans.iter().map(|_| None).collect();
    let mut waiting = plans.into_iter().enumerate().peekable();
    let mut running = FuturesUnordered::new();
    loop {
        while waiting.peek().is_some() {
            let Some(slot) = free.pop().or_else(|| app.slots.try_enter().ok()) else { break };
            let Some((index, plan)) = waiting.next() else { break };
            let mut run = app.executor.start(slot.clone(), plan, None);
            running.push(async move { (index, slot, run.finish().await) });
        }
        let Some((index, slot, done)) = running.next().await else { break };
        // The slot is kept for the next program, if there is one.
        if waiting.peek().is_some() {
            free.push(slot);
        }
        results[index] = Some(match done {
            Ok((result, files)) => ExecResponse::new(result, files),
            Err(error) => ExecResponse::not_run(app.executor.wall_name(), error.to_string()),
        });
    }
    Ok(Json(BatchResponse { results: results.into_iter().flatten().collect() }))
}
