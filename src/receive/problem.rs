//! Request-level errors of the plain HTTP doors, as RFC 9457 problem details.

use std::time::Duration;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

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

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = serde_json::json!({
            "type": "about:blank",
            "title": self.status.canonical_reason(),
            "status": self.status.as_u16(),
            "detail": self.detail,
        });
        let content_type = [(header::CONTENT_TYPE, "application/problem+json")];
        let mut response = (self.status, content_type, body.to_string()).into_response();
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
