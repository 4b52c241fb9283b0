//! Answers in the form of the request: an export response, or a `google.rpc.Status`.

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use prost::Message;
use tonic::Code;
use tonic_types::pb::Status;

use super::super::body::BodyError;
use super::super::intake::Refusal;
use super::super::problem::retry_after_value;

/// The two forms of OTLP/HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wire {
    Protobuf,
    Json,
}

impl Wire {
    /// Reads `Content-Type`; parameters such as a charset are of no consequence.
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        let value = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
        let media_type = value.split(';').next().unwrap_or_default().trim();
        if media_type.eq_ignore_ascii_case("application/x-protobuf") {
            Some(Self::Protobuf)
        } else if media_type.eq_ignore_ascii_case("application/json") {
            Some(Self::Json)
        } else {
            None
        }
    }

    const fn content_type(self) -> &'static str {
        match self {
            Self::Protobuf => "application/x-protobuf",
            Self::Json => "application/json",
        }
    }

    pub(super) fn success(self, reply: &ExportTraceServiceResponse) -> Response<Body> {
        let body = match (self, &reply.partial_success) {
            (Self::Protobuf, _) => reply.encode_to_vec(),
            (Self::Json, None) => b"{}".to_vec(),
            (Self::Json, Some(partial)) => {
                // Integers of 64 bits are strings in protobuf's JSON mapping.
                let rejected = partial.rejected_spans.to_string();
                let partial = serde_json::json!({"rejectedSpans": rejected, "errorMessage": partial.error_message});
                serde_json::json!({ "partialSuccess": partial }).to_string().into_bytes()
            }
        };
        self.response(StatusCode::OK, body)
    }

    pub(super) fn failure(self, failure: Failure) -> Response<Body> {
        let code = failure.code() as i32;
        let body = match self {
            Self::Protobuf => Status { code, message: failure.detail, details: Vec::new() }.encode_to_vec(),
            Self::Json => serde_json::json!({"code": code, "message": failure.detail}).to_string().into_bytes(),
        };
        let mut response = self.response(failure.status, body);
        if let Some(delay) = failure.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, retry_after_value(delay));
        }
        response
    }

    fn response(self, status: StatusCode, body: Vec<u8>) -> Response<Body> {
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = status;
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(self.content_type()));
        response
    }
}

/// A request of which nothing was taken.
#[derive(Debug)]
pub(super) struct Failure {
    status: StatusCode,
    detail: String,
    retry_after: Option<Duration>,
    /// Its name in the listeners' counters.
    pub(super) reason: &'static str,
}

impl Failure {
    pub(super) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, detail: detail.into(), retry_after: None, reason: "undecodable" }
    }

    pub(super) fn bad_request(detail: String) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    const fn code(&self) -> Code {
        match self.status {
            StatusCode::BAD_REQUEST | StatusCode::UNSUPPORTED_MEDIA_TYPE => Code::InvalidArgument,
            StatusCode::PAYLOAD_TOO_LARGE => Code::ResourceExhausted,
            StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => Code::Unimplemented,
            StatusCode::SERVICE_UNAVAILABLE => Code::Unavailable,
            _ => Code::Unknown,
        }
    }
}

impl From<BodyError> for Failure {
    fn from(error: BodyError) -> Self {
        let (status, retry_after, reason) = (error.status(), error.retry_after(), error.reason());
        Self { status, detail: error.to_string(), retry_after, reason }
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        BodyError::Refused(refusal).into()
    }
}
