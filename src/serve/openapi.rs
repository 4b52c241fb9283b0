//! The OpenAPI document, made from the routes, and the page that shows it.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{Html, IntoResponse};
use axum::routing::get;
use axum::{Json, Router};
use utoipa::OpenApi as _;
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

#[derive(utoipa::OpenApi)]
#[openapi(
    paths(show),
    info(
        title = "tracejoin",
        description = "Names the owner of a slow LLM answer: joins client measurements with OpenTelemetry spans and \
                       splits each request into phases. Times are in milliseconds, in fields that end in `_ms`. Unknown \
                       is `null`, never 0. Errors are RFC 9457 problem documents.",
    ),
    tags(
        (name = "read", description = "Requests, percentiles and coverage"),
        (name = "objectives", description = "What was promised, and whether it holds"),
        (name = "runs", description = "Runs of load generators: their settings, and what came of their plans"),
        (name = "health", description = "The state of the process"),
        (name = "pages", description = "For people"),
    ),
)]
struct Document;

/// An empty router that carries the document's head.
pub fn router() -> OpenApiRouter {
    OpenApiRouter::with_openapi(Document::openapi()).routes(routes!(index)).routes(routes!(docs))
}

/// The route that answers with the finished document.
pub fn document_route(document: OpenApi) -> Router {
    Router::new().route("/openapi.json", get(show)).with_state(Arc::new(document))
}

/// This document.
#[utoipa::path(get, path = "/openapi.json", tag = "pages", responses(
    (status = OK, body = serde_json::Value, description = "OpenAPI 3.1"),
))]
async fn show(State(document): State<Arc<OpenApi>>) -> Json<OpenApi> {
    Json(document.as_ref().clone())
}

/// The start page.
#[utoipa::path(get, path = "/", tag = "pages", responses((status = OK, body = String, content_type = "text/html")))]
async fn index() -> impl IntoResponse {
    page(include_str!("pages/index.html"))
}

/// This document, for people.
#[utoipa::path(get, path = "/docs", tag = "pages", responses((status = OK, body = String, content_type = "text/html")))]
async fn docs() -> impl IntoResponse {
    page(include_str!("pages/docs.html"))
}

/// A page of our own: everything it needs is in it, and it talks to this server only.
fn page(html: &'static str) -> impl IntoResponse {
    const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; base-uri 'none'";
    ([("content-security-policy", POLICY), (CONTENT_TYPE.as_str(), "text/html; charset=utf-8")], Html(html))
}
