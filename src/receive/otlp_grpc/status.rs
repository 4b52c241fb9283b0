//! Refusals as gRPC statuses. Exporters decide by the code and its details whether to send again.

use axum::http::Response;
use tonic::body::Body;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

use super::super::intake::Refusal;
use super::super::limits::ByteLimit;

impl From<Refusal> for Status {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Overloaded { message, retry_after } | Refusal::Unavailable { message, retry_after } => {
                let details = ErrorDetails::with_retry_info(Some(retry_after));
                Self::with_error_details(Code::Unavailable, message, details)
            }
            Refusal::Invalid { message } => invalid(message),
        }
    }
}

/// Bad data, for good.
pub(super) fn invalid(message: String) -> Status {
    let details = ErrorDetails::with_bad_request_violation("resource_spans", message.clone());
    Status::with_error_details(Code::InvalidArgument, message, details)
}

/// More than `limit`, for good: without `RetryInfo`, since the same message never fits.
pub(super) fn too_large(limit: &ByteLimit) -> Status {
    Status::resource_exhausted(limit.exceeded())
}

/// Replaces what the library answers where it could not read a message; the service's own answers pass.
///
/// A message over the limit gets OUT_OF_RANGE from the library, which exporters send again for ever, or
/// RESOURCE_EXHAUSTED where it grew in decompression; one that is cut off or badly compressed gets INTERNAL.
/// The service itself uses none of these but through [`too_large`].
pub(super) fn correct(response: Response<Body>, limit: &ByteLimit) -> (Response<Body>, Option<&'static str>) {
    let Some(status) = Status::from_header_map(response.headers()) else {
        return (response, None);
    };
    match status.code() {
        Code::OutOfRange | Code::ResourceExhausted => (too_large(limit).into_http(), Some("too_large")),
        Code::Internal => {
            let message = format!("the message could not be read: {}; check that it is sent whole", status.message());
            (invalid(message).into_http(), Some("corrupt"))
        }
        Code::Unimplemented => (response, Some("unknown_encoding")),
        _ => (response, None),
    }
}
