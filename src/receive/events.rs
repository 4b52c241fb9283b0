//! Streaming event logs over HTTP: `POST /api/v1/events`.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::budget::Budget;
use super::intake::EventIntake;
use super::limits::Limits;
use super::meter::Transport;
use super::problem::{Problem, UploadProblem};
use super::records::{UploadAnswer, hand_on, take};

/// Hands uploads of event lines on. Clones share everything.
#[derive(Clone)]
pub struct EventEndpoint {
    intake: Arc<dyn EventIntake>,
    limits: Arc<Limits>,
    budget: Budget,
}

impl EventEndpoint {
    /// An endpoint that hands on to `intake`.
    pub fn new(intake: Arc<dyn EventIntake>, limits: Arc<Limits>, budget: Budget) -> Self {
        Self { intake, limits, budget }
    }
}

/// The route of the event lines' endpoint.
pub fn router(endpoint: EventEndpoint) -> OpenApiRouter {
    OpenApiRouter::new().routes(routes!(upload_events)).with_state(endpoint)
}

/// Takes lines of streaming event logs: NDJSON, an array or one object; gzip and zstd are understood.
///
/// The lines of one request are folded into its client record, or make one where there is none. They may come in any
/// order, in several uploads and while the request still runs. A bad line is refused with its index, field and reason
/// while the others are kept; of lines with one `event_seq` one counts.
#[utoipa::path(
    post,
    path = "/api/v1/events",
    tag = "ingest",
    request_body(
        description = "An event a line, an array of events, or one",
        content((String = "application/x-ndjson"), (serde_json::Value = "application/json"))
    ),
    responses(
        (status = 200, description = "At least one line was taken, or none was sent", body = UploadAnswer),
        (status = 400, description = "No line was acceptable, or the body cannot be read",
         content((UploadAnswer = "application/json"), (UploadProblem = "application/problem+json"))),
        (status = 413, description = "The upload is over its limit", body = UploadProblem, content_type = "application/problem+json"),
        (status = 415, description = "Another content type or encoding", body = UploadProblem, content_type = "application/problem+json"),
        (status = 503, description = "Busy, or the database is unavailable: try again after Retry-After",
         body = UploadProblem, content_type = "application/problem+json"),
    )
)]
async fn upload_events(
    State(endpoint): State<EventEndpoint>,
    headers: HeaderMap,
    body: Body,
) -> Result<(StatusCode, Json<UploadAnswer>), Problem> {
    let upload = |lines, bytes| hand_on(Transport::Events, lines, bytes, |lines| endpoint.intake.accept(lines));
    take(Transport::Events, &endpoint.limits, &endpoint.budget, upload, &headers, body).await
}
