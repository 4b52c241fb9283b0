//! `GET /metrics`, and the measure of the API itself.

use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use metrics_exporter_prometheus::PrometheusHandle;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The media type of Prometheus' text format.
const TEXT_FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The routes of this resource.
pub fn routes(recorder: PrometheusHandle) -> OpenApiRouter {
    OpenApiRouter::new().routes(routes!(render)).with_state(recorder)
}

/// The own health of the process as Prometheus text.
#[utoipa::path(get, path = "/metrics", tag = "health", responses(
    (status = OK, body = String, content_type = "text/plain", description = "Prometheus text format 0.0.4"),
))]
async fn render(State(recorder): State<PrometheusHandle>) -> impl IntoResponse {
    ([(CONTENT_TYPE, TEXT_FORMAT)], recorder.render())
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
