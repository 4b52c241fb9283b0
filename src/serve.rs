//! REST: router, errors, one file a resource, OpenAPI.

pub mod alerts;
pub mod coverage;
mod documents;
pub mod dry_run;
pub mod error;
pub mod gate;
mod health;
mod metrics;
mod openapi;
pub mod phases;
pub mod query;
pub mod requests;
pub mod runs;
pub mod slos;
pub mod source;
mod steps;
mod stored_alerts;
mod stored_gates;
mod stored_objectives;
mod stored_runs;
pub mod stored_statuses;
pub mod stored_traces;
mod stored_windows;
pub mod trace;
pub mod verdict;

use std::any::Any;
use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn;
use axum::response::{IntoResponse, Response};
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;

use self::error::ApiError;
use self::source::{
    AlertSource, GateSource, ObjectiveSource, Readiness, ReplaySource, RunSource, StatusSource, TraceSource,
    WindowSource,
};
use crate::exposition::Exposition;

#[cfg(test)]
mod tests;

/// What the resources read from.
#[derive(Clone)]
pub struct Sources {
    /// Explains single traces.
    pub traces: Arc<dyn TraceSource>,
    pub windows: Arc<dyn WindowSource>,
    /// Knows the objectives.
    pub objectives: Arc<dyn ObjectiveSource>,
    /// Judges windows that are over.
    pub gates: Arc<dyn GateSource>,
    /// Knows whether they hold.
    pub statuses: Arc<dyn StatusSource>,
    /// Keeps the runs.
    pub runs: Arc<dyn RunSource>,
    /// Knows the alerts.
    pub alerts: Arc<dyn AlertSource>,
    /// Replays objectives.
    pub replays: Arc<dyn ReplaySource>,
    /// Knows whether the process can do its work.
    pub readiness: Arc<dyn Readiness>,
    /// Renders the metrics.
    pub exposition: Exposition,
}

/// All routes that answer questions, and the document that describes them. `uploads` are routes that take records in;
/// they share the listener and the answers to unknown paths.
pub fn router(sources: Sources, uploads: OpenApiRouter) -> (Router, OpenApi) {
    let (routes, document) = openapi::router()
        .merge(uploads)
        .merge(trace::routes(sources.traces))
        .merge(phases::routes(Arc::clone(&sources.windows)))
        .merge(coverage::routes(Arc::clone(&sources.windows)))
        .merge(requests::routes(sources.windows))
        .merge(slos::routes(sources.objectives, sources.statuses))
        .merge(gate::routes(sources.gates))
        .merge(runs::routes(sources.runs))
        .merge(alerts::routes(sources.alerts))
        .merge(dry_run::routes(sources.replays))
        .merge(health::routes(sources.readiness))
        .merge(metrics::routes(sources.exposition))
        .split_for_parts();
    let router = routes
        .merge(openapi::document_route(document.clone()))
        .layer(CompressionLayer::new())
        .fallback(error::unknown_path)
        .method_not_allowed_fallback(error::wrong_method)
        .layer(CatchPanicLayer::custom(panicked))
        .layer(from_fn(metrics::measure));
    (router, document)
}

fn panicked(_: Box<dyn Any + Send>) -> Response {
    ApiError::internal("a handler panicked").into_response()
}
