//! What an objective would have told: `POST /api/v1/slos-dry-run`.

pub mod view;

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{DefaultBodyLimit, State};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use self::view::{DryRunAnswer, DryRunBody, DryRunsAnswer};
use super::documents::MAX_BYTES;
use super::error::{ApiError, Problem};
use super::gate::ask;
use super::query::{parse_duration, parse_time};
use super::source::{ReplaySource, SourceError};
use crate::objectives::dry_runs::DryRunError;
use model::{Interval, Nanos, UnixNanos};
use slo::dry_run::{DryRunQuestion, DryRunRefusal};

/// How many objectives are replayed by one question.
const MAX_OBJECTIVES: usize = 10;

/// How many times at which people noticed are compared.
const MAX_NOTICED: usize = 100;

/// How far evaluations are apart where nothing else is said: as the evaluator's own.
const EVERY: Nanos = Nanos(30_000_000_000);

/// The routes of this resource.
pub fn routes(replays: Arc<dyn ReplaySource>) -> OpenApiRouter {
    OpenApiRouter::new().routes(routes!(replay)).layer(DefaultBodyLimit::max(MAX_BYTES)).with_state(replays)
}

impl From<DryRunError> for ApiError {
    fn from(error: DryRunError) -> Self {
        match error {
            DryRunError::Read(error) => SourceError::from(error).into(),
            DryRunError::BrokeOff(error) => Self::internal(error),
            DryRunError::Refused(DryRunRefusal::TooLong(_)) | DryRunError::TooManyRows => {
                Self::parameter("from", error.to_string())
            }
            DryRunError::Refused(DryRunRefusal::TooManySteps(_)) => Self::parameter("every", error.to_string()),
            DryRunError::Refused(DryRunRefusal::NotOverTime) => Self::parameter("objectives", error.to_string()),
        }
    }
}

/// Replays objectives over what is stored: how often each would have fired, and how early.
///
/// Verdicts, burn rates and alerts follow by the evaluator's rules at every step, at most 7 days, 50,000 evaluations and
/// 1,000,000 requests an objective. What came late counts as if it had been there, and nothing is sent to anybody.
#[utoipa::path(
    post, path = "/api/v1/slos-dry-run", tag = "objectives",
    request_body = DryRunBody,
    responses(
        (status = OK, body = DryRunsAnswer, description = "What each objective would have told"),
        (status = BAD_REQUEST, body = Problem, content_type = "application/problem+json",
         description = "A body that cannot be understood, or more than is replayed at once"),
        (status = SERVICE_UNAVAILABLE, body = Problem, content_type = "application/problem+json",
         description = "The database is unavailable"),
    ),
)]
async fn replay(
    State(replays): State<Arc<dyn ReplaySource>>,
    body: Result<Json<DryRunBody>, JsonRejection>,
) -> Result<Json<DryRunsAnswer>, ApiError> {
    let questions = questions(&ask::body(body)?, UnixNanos::now())?;
    let mut dry_runs = Vec::new();
    for asked in &questions {
        let replayed = replays.replay(asked).await?;
        dry_runs.push(DryRunAnswer::of(asked, &replayed));
    }
    Ok(Json(DryRunsAnswer { dry_runs }))
}

fn questions(body: &DryRunBody, now: UnixNanos) -> Result<Vec<DryRunQuestion>, ApiError> {
    let start = parse_time("from", &body.from, now)?;
    let end = body.to.as_deref().map_or(Ok(now), |to| parse_time("to", to, now))?;
    if start >= end {
        return Err(ApiError::parameter("from", "from is not before to; give a from that is earlier than to"));
    }
    let every = body.every.as_deref().map_or(Ok(EVERY), |every| parse_duration("every", every))?;
    if body.noticed.len() > MAX_NOTICED {
        let detail = format!("{} times are given; give at most {MAX_NOTICED}", body.noticed.len());
        return Err(ApiError::parameter("noticed", detail));
    }
    let noticed: Result<Vec<_>, _> = body.noticed.iter().map(|at| parse_time("noticed", at, now)).collect();
    let noticed = noticed?;
    let objectives = ask::objectives(&body.objectives)?;
    if objectives.len() > MAX_OBJECTIVES {
        let detail =
            format!("{} objectives are given; at most {MAX_OBJECTIVES} are replayed at once", objectives.len());
        return Err(ApiError::parameter("objectives", detail));
    }
    let window = Interval { start, end };
    let question = |objective| DryRunQuestion { objective, window, every, noticed: noticed.clone() };
    Ok(objectives.into_iter().map(question).collect())
}
