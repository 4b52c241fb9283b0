//! Objectives: `GET /api/v1/slos` and what is below it.

pub mod status;
mod view;

use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, PathRejection};
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::{HeaderMap, StatusCode};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub use status::{BurnAnswer, ErrorBudgetAnswer, StatusAnswer};
pub use view::{ChangeAnswer, ChangedAnswer, FieldChangeAnswer, ObjectiveAnswer, PastVersionAnswer};
pub use view::{SlosAnswer, VersionsAnswer, WholeAnswer};

use super::documents::{self, MAX_BYTES};
use super::error::{ApiError, Problem};
use super::query::Parameters;
use super::source::{ObjectiveSource, StatusSource};
use crate::objectives::catalogue::{Action, Refusal};
use slo::{Objective, ObjectiveId};

#[cfg(test)]
pub(super) mod tests;

/// Who changes objectives as long as nobody has to say who they are.
const LOCAL: &str = "local";

type Source = State<Arc<dyn ObjectiveSource>>;
type PathId = Result<Path<String>, PathRejection>;

/// The routes of this resource.
pub fn routes(objectives: Arc<dyn ObjectiveSource>, statuses: Arc<dyn StatusSource>) -> OpenApiRouter {
    let status = status::routes(status::Sources { objectives: Arc::clone(&objectives), statuses });
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(show, put, delete))
        .routes(routes!(versions))
        .layer(DefaultBodyLimit::max(MAX_BYTES))
        .with_state(objectives)
        .merge(status)
}

/// Every objective, in the order of their names.
#[utoipa::path(
    get, path = "/api/v1/slos", tag = "objectives",
    responses(
        (status = OK, body = SlosAnswer, description = "The objectives"),
        (status = BAD_REQUEST, body = Problem, content_type = "application/problem+json",
         description = "A parameter that is not known"),
        (status = SERVICE_UNAVAILABLE, body = Problem, content_type = "application/problem+json",
         description = "The database is unavailable"),
    ),
)]
async fn list(State(objectives): Source, _: Parameters<()>) -> Result<Json<SlosAnswer>, ApiError> {
    let current = objectives.current().await?;
    Ok(Json(SlosAnswer { slos: current.iter().map(ObjectiveAnswer::of).collect() }))
}

/// One objective, and its parts where it is the whole of a budget.
#[utoipa::path(
    get, path = "/api/v1/slos/{id}", tag = "objectives",
    params(("id" = String, Path, description = "The objective's name", example = "queue-p95")),
    responses(
        (status = OK, body = WholeAnswer, description = "The objective"),
        (status = BAD_REQUEST, body = Problem, content_type = "application/problem+json",
         description = "Not an objective's name"),
        (status = NOT_FOUND, body = Problem, content_type = "application/problem+json",
         description = "There is no objective of this name"),
        (status = SERVICE_UNAVAILABLE, body = Problem, content_type = "application/problem+json",
         description = "The database is unavailable"),
    ),
)]
async fn show(State(objectives): Source, id: PathId, _: Parameters<()>) -> Result<Json<WholeAnswer>, ApiError> {
    let id = read_id(id)?;
    let current = objectives.current().await?;
    let answer = WholeAnswer::of(&current, &id).ok_or_else(|| Refusal::Unknown(id.to_string()))?;
    Ok(Json(answer))
}

/// Puts an objective, or a budget with all of its parts, in the place of what has this name.
///
/// The body is one document, YAML or JSON, of kind `SLO` or `Budget`. What says the same as before makes no new version.
/// A budget's parts are replaced together; those that it no longer names are deleted. The split of a budget is
/// arithmetic: the parts add up to the whole, but percentiles do not, so every part may hold and the whole not.
#[utoipa::path(
    put, path = "/api/v1/slos/{id}", tag = "objectives",
    params(("id" = String, Path, description = "The name in the document's metadata", example = "queue-p95")),
    request_body(
        description = "One document",
        content((serde_json::Value = "application/json"), (String = "application/yaml")),
    ),
    responses(
        (status = OK, body = ChangedAnswer, description = "It is changed, or says the same as before"),
        (status = CREATED, body = ChangedAnswer, description = "It was not there"),
        (status = BAD_REQUEST, body = Problem, content_type = "application/problem+json",
         description = "The document cannot be used; `errors` has a line and a field for each reason"),
        (status = CONFLICT, body = Problem, content_type = "application/problem+json",
         description = "It is a part of a budget, or a part's name is taken, or there are too many objectives"),
        (status = PAYLOAD_TOO_LARGE, body = Problem, content_type = "application/problem+json",
         description = "The body is larger than 1 MiB"),
        (status = UNSUPPORTED_MEDIA_TYPE, body = Problem, content_type = "application/problem+json",
         description = "Neither YAML nor JSON"),
        (status = SERVICE_UNAVAILABLE, body = Problem, content_type = "application/problem+json",
         description = "The database is unavailable"),
    ),
)]
async fn put(
    State(objectives): Source,
    id: PathId,
    _: Parameters<()>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<(StatusCode, Json<ChangedAnswer>), ApiError> {
    let id = read_id(id)?;
    let set = documents::read(&headers, body)?;
    check_set(&id, &set)?;
    let changes = objectives.put(&id, &set, LOCAL).await?;
    let created = changes.iter().any(|change| change.id == id && change.action == Action::Created);
    let status = if created { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(ChangedAnswer::of(&id, &changes, &set)?)))
}

/// Deletes an objective, or a budget with all of its parts. Its versions stay to be read.
#[utoipa::path(
    delete, path = "/api/v1/slos/{id}", tag = "objectives",
    params(("id" = String, Path, description = "The objective's name", example = "queue-p95")),
    responses(
        (status = OK, body = ChangedAnswer, description = "It is deleted"),
        (status = BAD_REQUEST, body = Problem, content_type = "application/problem+json",
         description = "Not an objective's name"),
        (status = NOT_FOUND, body = Problem, content_type = "application/problem+json",
         description = "There is no objective of this name"),
        (status = CONFLICT, body = Problem, content_type = "application/problem+json",
         description = "It is a part of a budget, which is deleted as a whole"),
        (status = SERVICE_UNAVAILABLE, body = Problem, content_type = "application/problem+json",
         description = "The database is unavailable"),
    ),
)]
async fn delete(State(objectives): Source, id: PathId, _: Parameters<()>) -> Result<Json<ChangedAnswer>, ApiError> {
    let id = read_id(id)?;
    let changes = objectives.delete(&id, LOCAL).await?;
    Ok(Json(ChangedAnswer::of(&id, &changes, &[])?))
}

/// What an objective said over time, newest first; also of one that is deleted.
#[utoipa::path(
    get, path = "/api/v1/slos/{id}/versions", tag = "objectives",
    params(("id" = String, Path, description = "The objective's name", example = "queue-p95")),
    responses(
        (status = OK, body = VersionsAnswer, description = "The newest thousand versions"),
        (status = BAD_REQUEST, body = Problem, content_type = "application/problem+json",
         description = "Not an objective's name"),
        (status = NOT_FOUND, body = Problem, content_type = "application/problem+json",
         description = "There never was an objective of this name"),
        (status = SERVICE_UNAVAILABLE, body = Problem, content_type = "application/problem+json",
         description = "The database is unavailable"),
    ),
)]
async fn versions(State(objectives): Source, id: PathId, _: Parameters<()>) -> Result<Json<VersionsAnswer>, ApiError> {
    let id = read_id(id)?;
    let versions = objectives.versions(&id).await?;
    Ok(Json(VersionsAnswer::of(&id, versions)))
}

fn read_id(id: PathId) -> Result<ObjectiveId, ApiError> {
    let Path(id) = id?;
    ObjectiveId::new(&id).map_err(|error| ApiError::parameter("id", error.to_string()))
}

/// Whether a body tells the one objective, or the one budget, that its path names.
fn check_set(id: &ObjectiveId, set: &[Objective]) -> Result<(), ApiError> {
    let whole = set.iter().filter(|objective| objective.id == *id).count();
    let others = set.iter().filter(|objective| objective.id != *id && objective.budget.as_ref() != Some(id));
    let others: Vec<&str> = others.map(|objective| objective.id.as_str()).collect();
    if whole == 1 && others.is_empty() {
        return Ok(());
    }
    let told = if others.is_empty() { "none".to_owned() } else { others.join(", ") };
    Err(ApiError::parameter(
        "id",
        format!("the path names `{id}`, and the body tells {told}; put one document, whose metadata.name is `{id}`"),
    ))
}
