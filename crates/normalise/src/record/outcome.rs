//! How a request ended.

use super::FieldError;
use super::body::ClientRecordBody;
use crate::text;
use model::{Completeness, ResultClass, StreamSummary};

/// An error class is a label of low cardinality, not a message.
const MAX_ERROR: usize = 128;

/// Status, class and error of a record.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// HTTP status; 0 where there was no answer.
    pub status: Option<i64>,
    pub result: ResultClass,
    /// The class of error.
    pub error: Option<String>,
}

impl Outcome {
    /// Reads it; a given `result` stands, otherwise it is derived (design, section 5).
    pub fn take(body: &mut ClientRecordBody, stream: Option<&StreamSummary>) -> Result<Self, FieldError> {
        let status = body.status.count("status")?;
        if status.is_some_and(|status| status > 999) {
            let reason = "is over 999; send the HTTP status, or 0 where there was no answer";
            return Err(FieldError::new("status", reason));
        }
        let error = body.error.raw_text("error")?;
        let error = error.map(|raw| text::cut(&text::name(raw.trim()).text, MAX_ERROR).to_owned());
        let result = match body.result.raw_text("result")? {
            Some(given) => class(given.trim())?,
            None => derived(status, error.as_deref(), stream),
        };
        Ok(Self { status, result, error })
    }
}

fn class(given: &str) -> Result<ResultClass, FieldError> {
    ResultClass::from_name(&given.to_ascii_lowercase()).ok_or_else(|| {
        let names = ResultClass::ALL.map(ResultClass::name).join(", ");
        FieldError::new("result", format!("is none of {names}; leave it out to have it derived from status"))
    })
}

fn derived(status: Option<i64>, error: Option<&str>, stream: Option<&StreamSummary>) -> ResultClass {
    // Without a status an error class says that there was no answer.
    let status = status.or_else(|| error.map(|_| 0));
    match status {
        Some(0) if error.is_some_and(is_timeout) => ResultClass::Timeout,
        Some(408 | 504) => ResultClass::Timeout,
        Some(499) => ResultClass::Cancelled,
        Some(status) if status == 0 || status >= 400 => ResultClass::Error,
        _ if stream.is_some_and(is_cut) => ResultClass::Truncated,
        _ => ResultClass::Ok,
    }
}

/// k6 writes a timeout as its error code 1050.
fn is_timeout(error: &str) -> bool {
    let error = error.to_ascii_lowercase();
    error == "1050" || ["timeout", "timed out", "deadline exceeded"].into_iter().any(|sign| error.contains(sign))
}

fn is_cut(stream: &StreamSummary) -> bool {
    let completeness = Completeness::from_parts(stream.done_received, stream.missing_seq);
    completeness.is_some_and(|completeness| completeness != Completeness::Ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_follow_from_the_status() {
        for (status, error, result) in [
            (Some(200), None, ResultClass::Ok),
            (None, None, ResultClass::Ok),
            (Some(302), None, ResultClass::Ok),
            (Some(0), None, ResultClass::Error),
            (Some(0), Some("connection refused"), ResultClass::Error),
            (Some(0), Some("request timeout"), ResultClass::Timeout),
            (Some(0), Some("1050"), ResultClass::Timeout),
            (None, Some("read timed out"), ResultClass::Timeout),
            (None, Some("dns"), ResultClass::Error),
            (Some(408), None, ResultClass::Timeout),
            (Some(504), None, ResultClass::Timeout),
            (Some(499), None, ResultClass::Cancelled),
            (Some(429), None, ResultClass::Error),
            (Some(500), Some("timeout"), ResultClass::Error),
        ] {
            assert_eq!(derived(status, error, None), result, "{status:?} {error:?}");
        }
    }

    #[test]
    fn holes_and_a_missing_end_truncate_only_what_was_ok() {
        let summary = |done_received, missing_seq| StreamSummary { done_received, missing_seq, ..Default::default() };
        assert_eq!(derived(Some(200), None, Some(&summary(Some(false), None))), ResultClass::Truncated);
        assert_eq!(derived(Some(200), None, Some(&summary(Some(true), Some(2)))), ResultClass::Truncated);
        assert_eq!(derived(Some(200), None, Some(&summary(None, None))), ResultClass::Ok);
        assert_eq!(derived(Some(503), None, Some(&summary(Some(false), None))), ResultClass::Error);
    }
}
