//! What a reader of the API is told when there is no answer: RFC 9457 problem documents.

use std::error::Error as StdError;
use std::time::Duration;

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use thiserror::Error;

use crate::objectives::catalogue::Refusal;
use api::FieldProblem;
pub use api::Problem;
use model::TraceId;
use slo::document::DocumentError;

/// Why a question has no answer. Each message says what to change.
#[derive(Debug, Error)]
pub enum ApiError {
    /// No such path.
    #[error("there is no {path}; /openapi.json lists every path, and /docs shows them")]
    UnknownPath {
        /// The path asked for.
        path: String,
    },
    /// The path is there, but not for this method.
    #[error("{path} does not take {method}; the Allow header names the methods that it takes")]
    WrongMethod {
        /// The path asked for.
        path: String,
        /// The method used.
        method: Method,
    },
    /// A parameter of the query or the path that cannot be understood.
    #[error("{detail}")]
    Parameter {
        /// The parameter's name.
        name: String,
        /// What is wrong with it and what to change.
        detail: String,
        /// The values or names that would have been accepted, where they can be listed.
        accepted: Vec<String>,
    },
    /// Nothing is stored under this trace id.
    #[error(
        "no span and no client record of trace {0} is stored; check the id, or wait until the exporter has sent its \
         spans (5 s is common); data older than the retention is gone"
    )]
    UnknownTrace(TraceId),
    /// No generator told of a run by this name.
    #[error("nothing was told of a run {0:?}; check the name, or tell of it with PUT or with POST …/finish")]
    UntoldRun(String),
    /// Objectives that are not there, or may not be changed so.
    #[error(transparent)]
    Objective(#[from] Refusal),
    /// Nothing of the run is stored; the text says what to do.
    #[error("{0}")]
    UnknownRun(String),
    /// Documents of objectives that cannot be used.
    #[error("the document cannot be used: {}", joined(.0))]
    Document(Vec<DocumentError>),
    /// A body that cannot be taken.
    #[error("{detail}")]
    Body {
        /// The status that says it.
        status: StatusCode,
        /// What is wrong with it and what to change.
        detail: String,
    },
    /// The database, or another part that an answer needs, is away for now.
    #[error("{detail}")]
    Unavailable {
        /// What is unavailable.
        detail: String,
        /// When to try again.
        retry_after: Duration,
    },
    /// The process cannot do its work for now.
    #[error("not ready: {}", reasons.join("; "))]
    NotReady {
        /// What is in the way, each with what to do about it.
        reasons: Vec<String>,
    },
    /// A fault of ours: logged whole, shown in general terms.
    #[error("the server failed to answer; its log says why")]
    Internal(#[source] Box<dyn StdError + Send + Sync>),
}

impl ApiError {
    /// A parameter that cannot be understood; `detail` says what to change.
    pub fn parameter(name: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::Parameter { name: name.into(), detail: detail.into(), accepted: Vec::new() }
    }

    /// A fault of ours.
    pub fn internal(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::Internal(source.into())
    }

    const fn status(&self) -> StatusCode {
        match self {
            Self::UnknownPath { .. } | Self::UnknownTrace(_) | Self::UntoldRun(_) | Self::UnknownRun(_) => {
                StatusCode::NOT_FOUND
            }
            Self::WrongMethod { .. } => StatusCode::METHOD_NOT_ALLOWED,
            Self::Parameter { .. } | Self::Document(_) => StatusCode::BAD_REQUEST,
            Self::Body { status, .. } => *status,
            Self::Objective(Refusal::Unknown(_)) => StatusCode::NOT_FOUND,
            Self::Objective(_) => StatusCode::CONFLICT,
            Self::Unavailable { .. } | Self::NotReady { .. } => StatusCode::SERVICE_UNAVAILABLE,
            Self::Internal(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    fn into_problem(self, status: StatusCode) -> Problem {
        let detail = self.to_string();
        let title = status.canonical_reason().unwrap_or("Error");
        let mut problem = Problem {
            kind: "about:blank".to_owned(),
            title: title.to_owned(),
            status: status.as_u16(),
            detail,
            parameter: None,
            accepted: Vec::new(),
            reasons: Vec::new(),
            errors: Vec::new(),
        };
        match self {
            Self::Parameter { name, accepted, .. } => {
                problem.parameter = Some(name);
                problem.accepted = accepted;
            }
            Self::NotReady { reasons } => problem.reasons = reasons,
            Self::Document(errors) => problem.errors = errors.into_iter().map(field_problem).collect(),
            _ => {}
        }
        problem
    }
}

fn field_problem(DocumentError { line, column, field, reason }: DocumentError) -> FieldProblem {
    FieldProblem { line, column, field, reason }
}

fn joined(errors: &[DocumentError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

impl From<PathRejection> for ApiError {
    fn from(rejection: PathRejection) -> Self {
        Self::parameter("path", format!("{}; the path must be valid UTF-8", rejection.body_text()))
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        if let Self::Internal(source) = &self {
            tracing::error!(error = source.as_ref(), "could not answer");
        }
        let retry_after = match &self {
            Self::Unavailable { retry_after, .. } => Some(retry_after.as_secs().max(1)),
            _ => None,
        };
        let status = self.status();
        let mut response = (status, Json(self.into_problem(status))).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(seconds) = retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

/// The answer for a path that is not there.
pub async fn unknown_path(uri: Uri) -> ApiError {
    ApiError::UnknownPath { path: uri.path().to_owned() }
}

/// The answer for a method that a path does not take.
pub async fn wrong_method(method: Method, uri: Uri) -> ApiError {
    ApiError::WrongMethod { path: uri.path().to_owned(), method }
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;
    use serde_json::{Value, json};

    use super::*;

    async fn answered(error: ApiError) -> (StatusCode, Option<String>, Value) {
        let response = error.into_response();
        let status = response.status();
        assert_eq!(response.headers()[CONTENT_TYPE], "application/problem+json");
        let retry = response.headers().get(RETRY_AFTER).map(|value| value.to_str().expect("digits").to_owned());
        let body = to_bytes(response.into_body(), 10_000).await.expect("a body in memory");
        (status, retry, serde_json::from_slice(&body).expect("JSON"))
    }

    #[tokio::test]
    async fn a_bad_parameter_is_named_with_what_is_accepted() {
        let error = ApiError::Parameter {
            name: "result".into(),
            detail: "result is \"okay\"; give ok".into(),
            accepted: vec!["ok".into()],
        };
        let (status, retry, body) = answered(error).await;
        assert_eq!((status, retry), (StatusCode::BAD_REQUEST, None));
        assert_eq!(
            body,
            json!({"type": "about:blank", "title": "Bad Request", "status": 400, "parameter": "result",
                   "detail": "result is \"okay\"; give ok", "accepted": ["ok"]})
        );
    }

    #[tokio::test]
    async fn an_inner_fault_shows_no_detail_and_an_absent_database_says_when_to_return() {
        let (status, _, body) = answered(ApiError::internal("password=hunter2")).await;
        assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
        assert!(!body.to_string().contains("hunter2"));

        let away = ApiError::Unavailable { detail: "the database is unavailable".into(), retry_after: Duration::ZERO };
        let (status, retry, _) = answered(away).await;
        assert_eq!((status, retry.as_deref()), (StatusCode::SERVICE_UNAVAILABLE, Some("1")));
    }
}
