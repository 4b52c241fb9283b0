//! One trace: `GET /api/v1/traces/{trace_id}`.

mod report;

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::http::header::{ACCEPT, VARY};
use axum::response::{IntoResponse, Response};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub use report::text;

use super::error::{ApiError, Problem};
use super::query::Parameters;
use super::source::TraceSource;
use api::TraceAnswer;
use model::TraceId;

#[cfg(test)]
pub(crate) mod tests;

/// The routes of this resource.
pub fn routes(traces: Arc<dyn TraceSource>) -> OpenApiRouter {
    OpenApiRouter::new().routes(routes!(show)).with_state(traces)
}

/// One request explained: its phases, and the spans that they were painted from.
///
/// With `Accept: text/plain` the answer is a report of `key=value` lines.
#[utoipa::path(
    get, path = "/api/v1/traces/{trace_id}", tag = "read",
    params(("trace_id" = String, Path, description = "32 hexadecimal digits",
            example = "0000000000000007000000000000012f")),
    responses(
        (status = OK, description = "The request, or the requests, of the trace",
         content((TraceAnswer = "application/json"), (String = "text/plain"))),
        (status = BAD_REQUEST, body = Problem, content_type = "application/problem+json",
         description = "Not a trace id"),
        (status = NOT_FOUND, body = Problem, content_type = "application/problem+json",
         description = "Nothing is stored under this id"),
        (status = SERVICE_UNAVAILABLE, body = Problem, content_type = "application/problem+json",
         description = "The database is unavailable"),
    ),
)]
async fn show(
    State(traces): State<Arc<dyn TraceSource>>,
    trace_id: Result<Path<String>, PathRejection>,
    _: Parameters<()>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let Path(trace_id) = trace_id?;
    let trace: TraceId = trace_id.parse().map_err(|error| {
        ApiError::parameter("trace_id", format!("trace_id {trace_id:?} {error}; give 32 hexadecimal digits"))
    })?;
    let requests = traces.explain(trace).await?;
    let answer = TraceAnswer::of(&requests).ok_or(ApiError::UnknownTrace(trace))?;
    let body = if wants_text(&headers) { text(&answer).into_response() } else { Json(answer).into_response() };
    Ok(([(VARY, "accept")], body).into_response())
}

/// Whether the first form that the reader names and that we have is plain text.
fn wants_text(headers: &HeaderMap) -> bool {
    let accept =
        headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok()).flat_map(|line| line.split(','));
    let forms = accept.filter_map(|form| form.split(';').next()).map(str::trim);
    for form in forms {
        match form {
            "text/plain" | "text/*" => return true,
            "application/json" | "application/*" | "*/*" => return false,
            _ => {}
        }
    }
    false
}
