//! Request-level errors of the plain HTTP endpoints, as RFC 9457 problem details.

use std::time::Duration;

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

/// A request that was refused as a whole, and what its sender should change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The HTTP status.
    pub status: StatusCode,
    /// What is wrong and what to do about it.
    pub detail: String,
    /// When to try again, where that helps.
    pub retry_after: Option<Duration>,
}

impl Problem {
    /// A problem for which a retry does not help.
    pub fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, detail: detail.into(), retry_after: None }
    }
}

/// How a [`Problem`] is written.
#[derive(Debug, Serialize, ToSchema)]
pub struct UploadProblem {
    /// `about:blank`: the status tells the kind of problem.
    #[serde(rename = "type")]
    #[schema(example = "about:blank")]
    kind: &'static str,
    /// The status in words.
    #[schema(example = "Content Too Large")]
    title: &'static str,
    /// The HTTP status.
    #[schema(example = 413)]
    status: u16,
    /// What is wrong and what to do about it.
    detail: String,
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = UploadProblem {
            kind: "about:blank",
            title: self.status.canonical_reason().unwrap_or("Error"),
            status: self.status.as_u16(),
            detail: self.detail,
        };
        let mut response = (self.status, Json(body)).into_response();
        let problem = HeaderValue::from_static("application/problem+json");
        response.headers_mut().insert(header::CONTENT_TYPE, problem);
        if let Some(delay) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, retry_after_value(delay));
        }
        response
    }
}

/// `Retry-After` counts whole seconds: rounded up, and at least one, since 0 asks for a retry at once.
pub(super) fn retry_after_value(delay: Duration) -> HeaderValue {
    let seconds = delay.as_secs() + u64::from(delay.subsec_nanos() > 0);
    HeaderValue::from(seconds.max(1))
}
