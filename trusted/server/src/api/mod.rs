//! The endpoints.

mod batch;
mod bounded;
mod exec;
mod info;
mod openapi;
pub(crate) mod request;
pub(crate) mod response;
mod stream;

use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::envelope::envelope;
use crate::error::ApiError;
use crate::guard::guard;
use crate::slots::{NoSlot, Slot};

pub use openapi::openapi_json;

/// The documented endpoints, and their document.
fn documented() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::with_openapi(openapi::document())
        .routes(routes!(exec::exec))
        .routes(routes!(batch::batch))
        .routes(routes!(info::health))
        .routes(routes!(info::metrics))
        .routes(routes!(info::openapi))
}

/// All endpoints, with everything that goes around them.
pub(crate) fn router(app: Arc<App>) -> Router {
    let (router, _) = documented().split_for_parts();
    router
        // The zeroboot server's aliases.
        .route("/exec", post(exec::exec))
        .route("/exec/batch", post(batch::batch))
        .route("/health", get(info::health))
        .route("/metrics", get(info::metrics))
        .fallback(async || ApiError::NotFound)
        .method_not_allowed_fallback(async || ApiError::Method)
        .layer(from_fn_with_state(Arc::clone(&app), guard))
        .layer(from_fn_with_state(Arc::clone(&app), envelope))
        .with_state(app)
}

/// Takes a slot for a request.
async fn enter(app: &App) -> Result<Slot, ApiError> {
    app.slots.enter().await.map_err(|error| match error {
        NoSlot::Busy => {
            app.metrics.busy.add(1);
            ApiError::Busy { slots: app.config.slots, retry_after: 1 }
        }
        NoSlot::Closed => ApiError::stopping(),
    })
}
