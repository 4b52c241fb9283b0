//! `GET /metrics`, and the measure of the API itself.

use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::HeaderMap;
use axum::http::header::{ACCEPT, CONTENT_TYPE, VARY};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::error::ApiError;
use crate::exposition::{Exposition, Form};
use model::UnixNanos;

/// The routes of this resource.
pub fn routes(exposition: Exposition) -> OpenApiRouter {
    OpenApiRouter::new().routes(routes!(render)).with_state(exposition)
}

/// Metrics of requests and of the process.
///
/// OpenMetrics 1.0.0, with a trace id beside buckets, where `Accept` prefers it; else Prometheus' text format 0.0.4.
#[utoipa::path(get, path = "/metrics", tag = "health", responses(
    (status = OK, description = "Every metric of this process", content(
        (String = "text/plain"), (String = "application/openmetrics-text"))),
))]
async fn render(State(exposition): State<Exposition>, headers: HeaderMap) -> Result<Response, ApiError> {
    let form = Form::accepted(headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok()));
    let document =
        exposition.render(form, UnixNanos::now()).map_err(|_| ApiError::internal("the metrics cannot be written"))?;
    Ok(([(CONTENT_TYPE, form.media_type()), (VARY, "accept")], document).into_response())
}

/// Counts answers and their time by route and status. A path that is no route shares one label, so that a scan of paths
/// makes no new series.
pub async fn measure(request: Request, next: Next) -> Response {
    let path = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let started = Instant::now();
    let response = next.run(request).await;
    let path = path.unwrap_or_else(|| "none".to_owned());
    let status = response.status().as_str().to_owned();
    metrics::histogram!("tracejoin_http_answer_seconds", "route" => path, "status" => status)
        .record(started.elapsed().as_secs_f64());
    response
}
