//! Refusals as gRPC statuses. Senders decide by the code and its details whether to send again.

use axum::http::Response;
use tonic::body::Body;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

use super::super::intake::Refusal;
use super::super::limits::ByteLimit;

/// How the refusals of one service are written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Answers {
    /// The field of its messages that holds the data.
    pub(super) field: &'static str,
}

impl Answers {
    /// A refusal, with `RetryInfo` where a retry helps.
    pub(super) fn refusal(self, refusal: Refusal) -> Status {
        match refusal {
            Refusal::Overloaded { message, retry_after } | Refusal::Unavailable { message, retry_after } => {
                let details = ErrorDetails::with_retry_info(Some(retry_after));
                Status::with_error_details(Code::Unavailable, message, details)
            }
            Refusal::Invalid { message } => self.invalid(message),
        }
    }

    /// Bad data, for good.
    pub(super) fn invalid(self, message: String) -> Status {
        let details = ErrorDetails::with_bad_request_violation(self.field, message.clone());
        Status::with_error_details(Code::InvalidArgument, message, details)
    }

    /// Replaces what the library answers where it could not read a message; the service's own answers pass.
    ///
    /// A message over the limit gets OUT_OF_RANGE from the library, which exporters send again for ever, or
    /// RESOURCE_EXHAUSTED where it grew in decompression; one that is cut off or badly compressed gets INTERNAL.
    /// The services themselves use none of these.
    pub(super) fn correct(self, response: Response<Body>, limit: &ByteLimit) -> (Response<Body>, Option<&'static str>) {
        let Some(status) = Status::from_header_map(response.headers()) else {
            return (response, None);
        };
        match status.code() {
            Code::OutOfRange | Code::ResourceExhausted => (too_large(limit).into_http(), Some("too_large")),
            Code::Internal => {
                let cause = status.message();
                let message = format!("the message could not be read: {cause}; check that it is sent whole");
                (self.invalid(message).into_http(), Some("corrupt"))
            }
            Code::Unimplemented => (response, Some("unknown_encoding")),
            _ => (response, None),
        }
    }
}

/// More than `limit`, for good: without `RetryInfo`, since the same message never fits.
fn too_large(limit: &ByteLimit) -> Status {
    Status::resource_exhausted(limit.exceeded())
}
