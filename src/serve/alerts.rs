//! Alerts: `GET /api/v1/alerts` and `GET /api/v1/alerts/history`.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::error::{ApiError, Problem};
use super::query::{Parameters, WindowParams, number, single};
use super::source::{AlertSource, DeliveredTransition};
use crate::store::{DeliveryState, StoredAlert};
use api::rfc3339;
use model::UnixNanos;

const FIRING: &str = "firing";
const RESOLVED: &str = "resolved";

/// The routes of this resource.
pub fn routes(alerts: Arc<dyn AlertSource>) -> OpenApiRouter {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(history)).with_state(alerts)
}

/// Which alerts are shown.
#[derive(Debug, Clone, Default, Deserialize, utoipa::IntoParams)]
#[serde(default)]
#[into_params(parameter_in = Query)]
struct StateParams {
    /// `firing` or `resolved`; without it both.
    #[serde(deserialize_with = "single")]
    state: Option<String>,
}

/// How much of the history is shown.
#[derive(Debug, Clone, Default, Deserialize, utoipa::IntoParams)]
#[serde(default)]
#[into_params(parameter_in = Query)]
struct LimitParams {
    /// How many transitions at most.
    #[serde(deserialize_with = "number::<_, 1, 1000>")]
    #[param(default = 200, minimum = 1, maximum = 1000)]
    limit: Option<u32>,
}

/// The alerts that fire, or fired and were resolved; those that started last come first.
#[utoipa::path(
    get, path = "/api/v1/alerts", tag = "objectives",
    params(StateParams),
    responses(
        (status = OK, body = AlertsAnswer, description = "The alerts"),
        (status = BAD_REQUEST, body = Problem, content_type = "application/problem+json",
         description = "A parameter that cannot be understood"),
        (status = SERVICE_UNAVAILABLE, body = Problem, content_type = "application/problem+json",
         description = "The database is unavailable"),
    ),
)]
async fn list(
    State(alerts): State<Arc<dyn AlertSource>>,
    Parameters((params,)): Parameters<(StateParams,)>,
) -> Result<Json<AlertsAnswer>, ApiError> {
    let firing = params.state.as_deref().map(read_state).transpose()?;
    let found = alerts.alerts(firing).await?;
    Ok(Json(AlertsAnswer { alerts: found.into_iter().map(AlertAnswer::from).collect() }))
}

/// Every change of an alert in a window, newest first, and what became of telling it.
#[utoipa::path(
    get, path = "/api/v1/alerts/history", tag = "objectives",
    params(WindowParams, LimitParams),
    responses(
        (status = OK, body = AlertHistoryAnswer, description = "The transitions"),
        (status = BAD_REQUEST, body = Problem, content_type = "application/problem+json",
         description = "A parameter that cannot be understood"),
        (status = SERVICE_UNAVAILABLE, body = Problem, content_type = "application/problem+json",
         description = "The database is unavailable"),
    ),
)]
async fn history(
    State(alerts): State<Arc<dyn AlertSource>>,
    Parameters((window, params)): Parameters<(WindowParams, LimitParams)>,
) -> Result<Json<AlertHistoryAnswer>, ApiError> {
    let window = window.window(UnixNanos::now())?;
    let limit = params.limit.unwrap_or(200);
    let found = alerts.history(window, limit).await?;
    Ok(Json(AlertHistoryAnswer {
        from: rfc3339(window.start),
        to: rfc3339(window.end),
        transitions: found.into_iter().map(TransitionAnswer::from).collect(),
    }))
}

fn read_state(text: &str) -> Result<bool, ApiError> {
    match text {
        FIRING => Ok(true),
        RESOLVED => Ok(false),
        _ => Err(ApiError::Parameter {
            name: "state".to_owned(),
            detail: format!("state is {text:?}; give {FIRING} or {RESOLVED}, or leave it out for both"),
            accepted: vec![FIRING.to_owned(), RESOLVED.to_owned()],
        }),
    }
}

const fn state_name(firing: bool) -> &'static str {
    if firing { FIRING } else { RESOLVED }
}

/// Alerts.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = Alerts)]
pub struct AlertsAnswer {
    /// The alerts.
    pub alerts: Vec<AlertAnswer>,
}

/// One alert.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = Alert)]
pub struct AlertAnswer {
    /// A digest of its labels.
    pub fingerprint: String,
    /// `firing` or `resolved`.
    pub state: String,
    /// The objective's name.
    pub slo: String,
    /// What tells it from every other.
    pub labels: BTreeMap<String, String>,
    /// What it says: the numbers, who is affected, examples and what to check first.
    pub annotations: BTreeMap<String, String>,
    /// When it fired last.
    #[schema(format = DateTime)]
    pub starts_at: String,
    /// When it was resolved; null while it fires.
    #[schema(format = DateTime)]
    pub ends_at: Option<String>,
    /// Where its objective's state is shown; null without `--public-url`.
    pub generator_url: Option<String>,
}

/// What happened to alerts in a window.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = AlertHistory)]
pub struct AlertHistoryAnswer {
    /// Start of the window.
    #[schema(format = DateTime)]
    pub from: String,
    /// Its end, not included.
    #[schema(format = DateTime)]
    pub to: String,
    /// The transitions, newest first.
    pub transitions: Vec<TransitionAnswer>,
}

/// One change of an alert.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = AlertTransition)]
pub struct TransitionAnswer {
    /// What receivers tell repetitions by.
    pub key: String,
    /// When it happened.
    #[schema(format = DateTime)]
    pub at: String,
    /// The alert as it was from then on.
    pub alert: AlertAnswer,
    /// What each receiver was told of it.
    pub deliveries: Vec<DeliveryAnswer>,
}

/// What one receiver was told.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = AlertDelivery)]
pub struct DeliveryAnswer {
    /// Its kind, its host and a digest of its address.
    pub receiver: String,
    /// How many times it was tried.
    pub attempts: i32,
    /// When it took it; null as long as it has not.
    #[schema(format = DateTime)]
    pub delivered_at: Option<String>,
    /// Why it did not, the last time.
    pub last_error: Option<String>,
}

impl From<StoredAlert> for AlertAnswer {
    fn from(alert: StoredAlert) -> Self {
        Self {
            fingerprint: alert.fingerprint.simple().to_string(),
            state: state_name(alert.firing).to_owned(),
            slo: alert.slo,
            labels: alert.labels,
            annotations: alert.annotations,
            starts_at: rfc3339(alert.starts_at),
            ends_at: alert.ends_at.map(rfc3339),
            generator_url: alert.generator_url,
        }
    }
}

impl From<DeliveredTransition> for TransitionAnswer {
    fn from((transition, deliveries): DeliveredTransition) -> Self {
        Self {
            key: transition.key.to_string(),
            at: rfc3339(transition.at),
            alert: AlertAnswer {
                fingerprint: transition.fingerprint.simple().to_string(),
                state: state_name(transition.firing).to_owned(),
                slo: transition.slo,
                labels: transition.labels,
                annotations: transition.annotations,
                starts_at: rfc3339(transition.starts_at),
                ends_at: (!transition.firing).then(|| rfc3339(transition.at)),
                generator_url: transition.generator_url,
            },
            deliveries: deliveries.into_iter().map(DeliveryAnswer::from).collect(),
        }
    }
}

impl From<DeliveryState> for DeliveryAnswer {
    fn from(state: DeliveryState) -> Self {
        Self {
            receiver: state.receiver,
            attempts: state.attempts,
            delivered_at: state.delivered_at.map(rfc3339),
            last_error: state.last_error,
        }
    }
}
