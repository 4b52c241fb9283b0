//! How much is explained: `GET /api/v1/coverage`.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::error::{ApiError, Problem};
use super::query::{FilterParams, Parameters, WindowParams, read_selection};
use super::source::WindowSource;
use super::steps::StepParams;
use api::{CoverageAnswer, CoverageSeriesAnswer, CoverageStep, rfc3339};
use model::{Interval, Selection, UnixNanos};
use stats::{Question, Window};

/// The routes of this resource.
pub fn routes(windows: Arc<dyn WindowSource>) -> OpenApiRouter {
    OpenApiRouter::new().routes(routes!(show)).with_state(windows)
}

/// Coverage of a window as a whole and by step, with every exclusion by its reason.
#[utoipa::path(
    get, path = "/api/v1/coverage", tag = "read",
    params(WindowParams, FilterParams, StepParams),
    responses(
        (status = OK, body = CoverageSeriesAnswer, description = "Counts by what became of the requests"),
        (status = BAD_REQUEST, body = Problem, content_type = "application/problem+json",
         description = "A parameter that cannot be understood"),
        (status = SERVICE_UNAVAILABLE, body = Problem, content_type = "application/problem+json",
         description = "The database is unavailable"),
    ),
)]
async fn show(
    State(windows): State<Arc<dyn WindowSource>>,
    Parameters((window, filters, step)): Parameters<(WindowParams, FilterParams, StepParams)>,
) -> Result<Json<CoverageSeriesAnswer>, ApiError> {
    let selection = read_selection(&window, &filters, UnixNanos::now())?;
    let steps = step.cut(selection.window)?;
    let (whole, coverage) = covered(&*windows, &selection, selection.window).await?;
    let mut answers = Vec::with_capacity(steps.len());
    for step in steps {
        let (found, coverage) = covered(&*windows, &selection, step).await?;
        let Interval { start, end } = found.served;
        answers.push(CoverageStep { from: rfc3339(start), to: rfc3339(end), coverage });
    }
    Ok(Json(CoverageSeriesAnswer {
        from: rfc3339(whole.served.start),
        to: rfc3339(whole.served.end),
        coverage,
        unsettled_records: whole.unsettled_records,
        steps: answers,
    }))
}

async fn covered(
    windows: &dyn WindowSource,
    selection: &Selection,
    window: Interval,
) -> Result<(Window, CoverageAnswer), ApiError> {
    let selection = Selection { window, ..selection.clone() };
    let question = Question { selection, group_by: Vec::new(), quantiles: Vec::new() };
    let found = windows.contents(&question).await?;
    let coverage = CoverageAnswer::from(&question.coverage(&found.contents));
    Ok((found, coverage))
}
