//! Percentiles: `GET /api/v1/phases` and `GET /api/v1/phases/series`.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::error::{ApiError, Problem};
use super::query::{Distribution, DistributionParams, FilterParams, Parameters, WindowParams, read_selection};
use super::source::WindowSource;
use super::steps::StepParams;
use api::{PercentilesAnswer, SeriesAnswer};
use model::{Selection, UnixNanos};
use stats::Question;

type SeriesParams = (WindowParams, FilterParams, DistributionParams, StepParams);

/// The routes of this resource.
pub fn routes(windows: Arc<dyn WindowSource>) -> OpenApiRouter {
    OpenApiRouter::new().routes(routes!(show)).routes(routes!(series)).with_state(windows)
}

/// Percentiles of every phase, with n, coverage, 95 % intervals and worst cases.
///
/// The q-quantile is the ⌈q·n⌉-th smallest value, without interpolation. Groups below 10,000 requests are exact, larger
/// ones come from digests: `method` says which, and intervals are widened by the digest's rank error.
#[utoipa::path(
    get, path = "/api/v1/phases", tag = "read",
    params(WindowParams, FilterParams, DistributionParams),
    responses(
        (status = OK, body = PercentilesAnswer, description = "Coverage, and the distributions of each group"),
        (status = BAD_REQUEST, body = Problem, content_type = "application/problem+json",
         description = "A parameter that cannot be understood"),
        (status = SERVICE_UNAVAILABLE, body = Problem, content_type = "application/problem+json",
         description = "The database is unavailable"),
    ),
)]
async fn show(
    State(windows): State<Arc<dyn WindowSource>>,
    Parameters((window, filters, distribution)): Parameters<(WindowParams, FilterParams, DistributionParams)>,
) -> Result<Json<PercentilesAnswer>, ApiError> {
    let question = read_question(&window, &filters, &distribution)?;
    Ok(Json(ask(&*windows, &question).await?))
}

/// The same for every step of the window.
#[utoipa::path(
    get, path = "/api/v1/phases/series", tag = "read",
    params(WindowParams, FilterParams, DistributionParams, StepParams),
    responses(
        (status = OK, body = SeriesAnswer, description = "An answer as of `/api/v1/phases` for each step"),
        (status = BAD_REQUEST, body = Problem, content_type = "application/problem+json",
         description = "A parameter that cannot be understood"),
        (status = SERVICE_UNAVAILABLE, body = Problem, content_type = "application/problem+json",
         description = "The database is unavailable"),
    ),
)]
async fn series(
    State(windows): State<Arc<dyn WindowSource>>,
    Parameters((window, filters, distribution, step)): Parameters<SeriesParams>,
) -> Result<Json<SeriesAnswer>, ApiError> {
    let question = read_question(&window, &filters, &distribution)?;
    let mut steps = Vec::new();
    for window in step.cut(question.selection.window)? {
        let selection = Selection { window, ..question.selection.clone() };
        steps.push(ask(&*windows, &Question { selection, ..question.clone() }).await?);
    }
    Ok(Json(SeriesAnswer { steps }))
}

fn read_question(
    window: &WindowParams,
    filters: &FilterParams,
    distribution: &DistributionParams,
) -> Result<Question, ApiError> {
    let selection = read_selection(window, filters, UnixNanos::now())?;
    let Distribution { group_by, quantiles } = distribution.distribution(&selection)?;
    Ok(Question { selection, group_by, quantiles })
}

async fn ask(windows: &dyn WindowSource, question: &Question) -> Result<PercentilesAnswer, ApiError> {
    let found = windows.contents(question).await?;
    Ok(PercentilesAnswer::of(&found, &question.answer(&found.contents)))
}
