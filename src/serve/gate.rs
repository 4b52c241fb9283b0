//! Whether a test run may pass: `POST /api/v1/gate`.

mod answer;
pub(super) mod ask;
mod said;
pub mod view;

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{DefaultBodyLimit, State};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use self::view::{GateAnswer, GateBody};
use super::documents::MAX_BYTES;
use super::error::{ApiError, Problem};
use super::source::GateSource;
use model::UnixNanos;

pub use answer::UNSETTLED;

/// The routes of this resource.
pub fn routes(gates: Arc<dyn GateSource>) -> OpenApiRouter {
    OpenApiRouter::new().routes(routes!(judge)).layer(DefaultBodyLimit::max(MAX_BYTES)).with_state(gates)
}

/// Judges objectives over exactly one window, or over a run.
///
/// Nothing is stored, and the objectives need not be known to the server. A gate is broken if at least one objective is;
/// else it is inconclusive if one has no verdict, or if something of the window has not settled. Windows with up to
/// 1,000,000 requests are judged by their rows, exactly.
#[utoipa::path(
    post, path = "/api/v1/gate", tag = "objectives",
    request_body = GateBody,
    responses(
        (status = OK, body = GateAnswer, description = "The outcome, and the verdict on each objective"),
        (status = BAD_REQUEST, body = Problem, content_type = "application/problem+json",
         description = "A body that cannot be understood; for objectives with the line and the field"),
        (status = NOT_FOUND, body = Problem, content_type = "application/problem+json",
         description = "Nothing of the run is stored"),
        (status = SERVICE_UNAVAILABLE, body = Problem, content_type = "application/problem+json",
         description = "The database is unavailable"),
    ),
)]
async fn judge(
    State(gates): State<Arc<dyn GateSource>>,
    body: Result<Json<GateBody>, JsonRejection>,
) -> Result<Json<GateAnswer>, ApiError> {
    let asked = ask::question(&ask::body(body)?, UnixNanos::now())?;
    let found = gates.judge(&asked).await?;
    Ok(Json(GateAnswer::of(&asked, &found)))
}
