//! How an objective stands: `GET /api/v1/slos/{id}/status`.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{PathId, read_id};
use crate::objectives::catalogue::{Refusal, Versioned};
use crate::objectives::status::ObjectiveStatus;
use crate::serve::alerts::AlertAnswer;
use crate::serve::error::{ApiError, Problem};
use crate::serve::query::Parameters;
use crate::serve::source::{ObjectiveSource, StatusSource};
use crate::serve::verdict::VerdictAnswer;
use api::rfc3339;
use model::UnixNanos;
use slo::{BudgetState, BurnState};

/// What the status is read from.
#[derive(Clone)]
pub(super) struct Sources {
    pub(super) objectives: Arc<dyn ObjectiveSource>,
    /// How they stand.
    pub(super) statuses: Arc<dyn StatusSource>,
}

/// The route of the status.
pub(super) fn routes(sources: Sources) -> OpenApiRouter {
    OpenApiRouter::new().routes(routes!(status)).with_state(sources)
}

/// Whether an objective holds now: its verdict, with the numbers that decided it, how its budget burns, and its alerts that
/// fire.
#[utoipa::path(
    get, path = "/api/v1/slos/{id}/status", tag = "objectives",
    params(("id" = String, Path, description = "The objective's name", example = "queue-p95")),
    responses(
        (status = OK, body = StatusAnswer, description = "How it stands"),
        (status = BAD_REQUEST, body = Problem, content_type = "application/problem+json",
         description = "Not an objective's name"),
        (status = NOT_FOUND, body = Problem, content_type = "application/problem+json",
         description = "There is no objective of this name"),
        (status = SERVICE_UNAVAILABLE, body = Problem, content_type = "application/problem+json",
         description = "The database is unavailable"),
    ),
)]
async fn status(State(sources): State<Sources>, id: PathId, _: Parameters<()>) -> Result<Json<StatusAnswer>, ApiError> {
    let id = read_id(id)?;
    let current = sources.objectives.current().await?;
    let found = current.iter().find(|versioned| versioned.objective.id == id);
    let versioned = found.ok_or_else(|| Refusal::Unknown(id.to_string()))?;
    let now = UnixNanos::now();
    let status = sources.statuses.status(versioned, now).await?;
    Ok(Json(StatusAnswer::of(versioned, &status, now)))
}

/// How an objective stands.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = SloStatus)]
pub struct StatusAnswer {
    /// Its name.
    #[schema(example = "queue-p95")]
    pub id: String,
    /// The version that was judged.
    #[schema(example = 1)]
    pub version: i32,
    /// When this was asked.
    #[schema(format = DateTime)]
    pub at: String,
    /// Over its window, which ends as late as everything has settled.
    pub verdict: VerdictAnswer,
    /// How fast its budget burns, by pairs of windows. Counted from the minute in which the server began to judge this
    /// version, and back over as many requests as are kept.
    pub burn: Vec<BurnAnswer>,
    /// What is left of its budget of 30 days; null where it has none.
    pub error_budget: Option<ErrorBudgetAnswer>,
    /// Why it has no budget.
    pub no_budget: Option<String>,
    /// The alerts of it that fire.
    pub alerts: Vec<AlertAnswer>,
}

impl StatusAnswer {
    /// Of what was found at `now`.
    fn of(versioned: &Versioned, status: &ObjectiveStatus, now: UnixNanos) -> Self {
        let burning = status.burning.as_ref();
        Self {
            id: versioned.objective.id.to_string(),
            version: versioned.version,
            at: rfc3339(now),
            verdict: VerdictAnswer::of(&versioned.objective, &status.verdict),
            burn: burning.map(|burning| burning.windows.iter().map(BurnAnswer::of).collect()).unwrap_or_default(),
            error_budget: burning.ok().map(|burning| ErrorBudgetAnswer::of(&burning.budget)),
            no_budget: burning.err().map(ToString::to_string),
            alerts: status.alerts.iter().cloned().map(AlertAnswer::from).collect(),
        }
    }
}

/// One pair of windows over which a budget may burn too fast.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = BurnRate)]
pub struct BurnAnswer {
    /// How many times faster than even over 30 days both windows have to burn.
    #[schema(example = 14.4)]
    pub factor: f64,
    /// The length of the long window.
    #[schema(example = "1h")]
    pub long: String,
    /// The length of the short window.
    #[schema(example = "5m")]
    pub short: String,
    /// How fast it burns in what is there of the long window; null where nothing in it decides.
    pub long_rate: Option<f64>,
    /// How fast it burns in what is there of the short window; null where nothing in it decides.
    pub short_rate: Option<f64>,
    /// How much of the long window is there, as a share.
    pub filled_long: f64,
    /// How much of the short window is there, as a share.
    pub filled_short: f64,
    /// Requests that decide in the long window.
    pub n: u64,
    /// Bad ones among them.
    pub bad: u64,
    /// Whether both burn too fast, on enough requests.
    pub fires: bool,
}

impl BurnAnswer {
    /// Of one pair of windows.
    pub fn of(state: &BurnState) -> Self {
        Self {
            factor: state.factor,
            long: state.long.in_words(),
            short: state.short.in_words(),
            long_rate: state.long_rate,
            short_rate: state.short_rate,
            filled_long: state.filled_long,
            filled_short: state.filled_short,
            n: state.n,
            bad: state.bad,
            fires: state.fires,
        }
    }
}

/// What is left of the budget of the last 30 days.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = ErrorBudget)]
pub struct ErrorBudgetAnswer {
    /// Requests that decide in what is there of the period.
    pub n: u64,
    /// Bad ones among them.
    pub bad: u64,
    /// How many of them may be bad.
    pub allowed: f64,
    /// The share of the budget that is spent, above 1 where more are bad than may be; null where nothing decides.
    pub spent: Option<f64>,
    /// The share that is left, negative where it is overspent; null where nothing decides.
    pub left: Option<f64>,
    /// How much of the period is there, as a share.
    pub filled: f64,
}

impl ErrorBudgetAnswer {
    fn of(budget: &BudgetState) -> Self {
        Self {
            n: budget.part.tally.n(),
            bad: budget.part.tally.bad,
            allowed: budget.allowed,
            spent: budget.spent,
            left: budget.left,
            filled: budget.part.filled(),
        }
    }
}
