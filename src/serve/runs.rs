//! Runs of load generators: `/api/v1/runs/{id}`.

use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, PathRejection};
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::error::{ApiError, Problem};
use super::query::parse_time;
use super::source::RunSource;
use api::rfc3339;
use model::{Run, RunEnd, UnixNanos};
use normalise;

/// The largest body of these resources, in bytes.
const MAX_BYTES: usize = 64 * 1024;
/// The largest number that every reader of JSON keeps exactly.
const LARGEST_COUNT: u64 = 1 << 53;

/// The routes of this resource.
pub fn routes(runs: Arc<dyn RunSource>) -> OpenApiRouter {
    OpenApiRouter::new()
        .routes(routes!(show, configure))
        .routes(routes!(finish))
        .layer(DefaultBodyLimit::max(MAX_BYTES))
        .with_state(runs)
}

/// A run: how its load generator was set up, and what came of its plan.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Run)]
pub struct RunAnswer {
    /// Its name: the label `run` of its records.
    #[schema(example = "nightly-2026-11-30")]
    id: String,
    /// How the generator was set up; null where that was never told.
    configuration: Option<Value>,
    /// When that was told last.
    #[schema(format = DateTime)]
    configured_at: Option<String>,
    /// When it ended; null until that is told.
    #[schema(format = DateTime)]
    finished_at: Option<String>,
    /// Iterations that were planned; null where that is not known, as below.
    planned_iterations: Option<u64>,
    /// Those of them that were not started.
    dropped_iterations: Option<u64>,
    /// Iterations a second that were planned.
    planned_rate: Option<f64>,
    /// Iterations a second that were reached.
    real_rate: Option<f64>,
}

/// How a run ended. What is left out is unknown.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RunFinish {
    /// When, RFC 3339; now, where it is left out.
    finished_at: Option<String>,
    /// Iterations that were planned.
    #[schema(example = 12000)]
    planned_iterations: Option<u64>,
    /// Those of them that were not started.
    #[schema(example = 3)]
    dropped_iterations: Option<u64>,
    /// Iterations a second that were planned.
    planned_rate: Option<f64>,
    /// Iterations a second that were reached.
    real_rate: Option<f64>,
}

/// A run, as far as it was told.
#[utoipa::path(
    get, path = "/api/v1/runs/{id}", tag = "runs",
    params(("id" = String, Path, description = "The run's name")),
    responses(
        (status = OK, body = RunAnswer, description = "The run"),
        (status = BAD_REQUEST, body = Problem, content_type = "application/problem+json", description = "No name of a run"),
        (status = NOT_FOUND, body = Problem, content_type = "application/problem+json", description = "Nothing was told of it"),
        (status = SERVICE_UNAVAILABLE, body = Problem, content_type = "application/problem+json",
         description = "The database is unavailable"),
    ),
)]
async fn show(
    State(runs): State<Arc<dyn RunSource>>,
    path: Result<Path<String>, PathRejection>,
) -> Result<Json<RunAnswer>, ApiError> {
    let Path(id) = path?;
    let run = runs.run(checked(&id)?).await?.ok_or(ApiError::UntoldRun(id))?;
    Ok(Json(RunAnswer::from(run)))
}

/// Keeps how a run's load generator was set up, in the place of what was told before.
///
/// Fields whose names promise prompts, answers, addresses or credentials are refused; what looks like a key or a mail
/// address in a text is replaced.
#[utoipa::path(
    put, path = "/api/v1/runs/{id}", tag = "runs",
    params(("id" = String, Path, description = "The run's name")),
    request_body(content = Value, content_type = "application/json", description = "A JSON object of at most 64 KiB"),
    responses(
        (status = OK, body = RunAnswer, description = "The run"),
        (status = BAD_REQUEST, body = Problem, content_type = "application/problem+json",
         description = "A configuration that is not kept; the detail names the field"),
        (status = PAYLOAD_TOO_LARGE, body = Problem, content_type = "application/problem+json", description = "Over 64 KiB"),
        (status = SERVICE_UNAVAILABLE, body = Problem, content_type = "application/problem+json",
         description = "The database is unavailable"),
    ),
)]
async fn configure(
    State(runs): State<Arc<dyn RunSource>>,
    path: Result<Path<String>, PathRejection>,
    body: Result<Bytes, BytesRejection>,
) -> Result<Json<RunAnswer>, ApiError> {
    let Path(id) = path?;
    let id = checked(&id)?;
    let body = body.map_err(refused)?;
    let told = serde_json::from_slice(&body).map_err(|error| {
        ApiError::parameter("configuration", format!("the body is not JSON: {error}; correct it there"))
    })?;
    let configuration =
        normalise::run_configuration(told).map_err(|error| ApiError::parameter("configuration", error.to_string()))?;
    let run = runs.configure(id, &configuration, UnixNanos::now()).await?;
    Ok(Json(RunAnswer::from(run)))
}

/// Tells how a run ended. The last telling counts, so it may be repeated.
///
/// An objective of `dropped_iterations` counts the runs that finished in its window and told both `planned_iterations` and
/// `dropped_iterations`.
#[utoipa::path(
    post, path = "/api/v1/runs/{id}/finish", tag = "runs",
    params(("id" = String, Path, description = "The run's name")),
    request_body(content = RunFinish, content_type = "application/json"),
    responses(
        (status = OK, body = RunAnswer, description = "The run"),
        (status = BAD_REQUEST, body = Problem, content_type = "application/problem+json",
         description = "A field that cannot be understood"),
        (status = PAYLOAD_TOO_LARGE, body = Problem, content_type = "application/problem+json", description = "Over 64 KiB"),
        (status = SERVICE_UNAVAILABLE, body = Problem, content_type = "application/problem+json",
         description = "The database is unavailable"),
    ),
)]
async fn finish(
    State(runs): State<Arc<dyn RunSource>>,
    path: Result<Path<String>, PathRejection>,
    body: Result<Bytes, BytesRejection>,
) -> Result<Json<RunAnswer>, ApiError> {
    let Path(id) = path?;
    let id = checked(&id)?;
    let body = body.map_err(refused)?;
    let told: RunFinish = serde_json::from_slice(&body).map_err(|error| {
        ApiError::parameter("body", format!("{error}; send an object with any of its fields, or {{}}"))
    })?;
    let run = runs.finish(id, &told.read(UnixNanos::now())?).await?;
    Ok(Json(RunAnswer::from(run)))
}

impl RunFinish {
    fn read(self, now: UnixNanos) -> Result<RunEnd, ApiError> {
        let finished_at = match &self.finished_at {
            Some(text) => parse_time("finished_at", text, now)?,
            None => now,
        };
        let counts = [("planned_iterations", self.planned_iterations), ("dropped_iterations", self.dropped_iterations)];
        for (name, count) in counts {
            if count.is_some_and(|count| count > LARGEST_COUNT) {
                return Err(ApiError::parameter(name, format!("{name} is over {LARGEST_COUNT}; give a count")));
            }
        }
        for (name, rate) in [("planned_rate", self.planned_rate), ("real_rate", self.real_rate)] {
            if rate.is_some_and(|rate| rate < 0.0) {
                return Err(ApiError::parameter(name, format!("{name} is negative; give iterations a second")));
            }
        }
        if let (Some(planned), Some(dropped)) = (self.planned_iterations, self.dropped_iterations)
            && dropped > planned
        {
            let detail =
                format!("dropped_iterations is {dropped}, of {planned} planned; count the dropped ones as planned too");
            return Err(ApiError::parameter("dropped_iterations", detail));
        }
        Ok(RunEnd {
            finished_at,
            planned_iterations: self.planned_iterations,
            dropped_iterations: self.dropped_iterations,
            planned_rate: self.planned_rate,
            real_rate: self.real_rate,
        })
    }
}

fn checked(id: &str) -> Result<&str, ApiError> {
    normalise::run_name(id).map_err(|error| ApiError::parameter("id", format!("the id {error}")))
}

fn refused(rejection: BytesRejection) -> ApiError {
    let status = rejection.status();
    let detail = match status {
        StatusCode::PAYLOAD_TOO_LARGE => {
            format!("the body is larger than {MAX_BYTES} bytes; keep to the settings of the run")
        }
        _ => format!("the body broke off: {}; send it again", rejection.body_text()),
    };
    ApiError::Body { status, detail }
}

impl From<Run> for RunAnswer {
    fn from(run: Run) -> Self {
        Self {
            id: run.id,
            configuration: run.configuration,
            configured_at: run.configured_at.map(rfc3339),
            finished_at: run.end.map(|end| rfc3339(end.finished_at)),
            planned_iterations: run.end.and_then(|end| end.planned_iterations),
            dropped_iterations: run.end.and_then(|end| end.dropped_iterations),
            planned_rate: run.end.and_then(|end| end.planned_rate),
            real_rate: run.end.and_then(|end| end.real_rate),
        }
    }
}

#[cfg(test)]
pub mod tests;
