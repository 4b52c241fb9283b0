//! `GET /healthz` and `GET /readyz`.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::error::{ApiError, Problem};
use super::source::Readiness;

/// That the process runs or is ready.
#[derive(Debug, Serialize, ToSchema)]
pub struct Health {
    /// `alive` or `ready`.
    #[schema(example = "ready")]
    status: &'static str,
    /// What is wrong without being in the way, such as an archive that cannot be written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    remarks: Vec<String>,
}

/// The routes of this resource.
pub fn routes(readiness: Arc<dyn Readiness>) -> OpenApiRouter {
    OpenApiRouter::new().routes(routes!(alive)).routes(routes!(ready)).with_state(readiness)
}

/// Whether the process runs. It says nothing of the database: a restart would not bring that back.
#[utoipa::path(get, path = "/healthz", tag = "health", responses((status = OK, body = Health)))]
async fn alive() -> Json<Health> {
    Json(Health { status: "alive", remarks: Vec::new() })
}

/// Whether the process can take and answer; if not, the reasons.
#[utoipa::path(get, path = "/readyz", tag = "health", responses(
    (status = OK, body = Health),
    (status = SERVICE_UNAVAILABLE, body = Problem, content_type = "application/problem+json",
     description = "Not ready; `reasons` says why"),
))]
async fn ready(State(readiness): State<Arc<dyn Readiness>>) -> Result<Json<Health>, ApiError> {
    let reasons = readiness.obstacles().await;
    if !reasons.is_empty() {
        return Err(ApiError::NotReady { reasons });
    }
    Ok(Json(Health { status: "ready", remarks: readiness.remarks() }))
}
