//! One client record from JSON to the model. A record that cannot be kept is refused with its field and a reason that
//! says what to do; fields that no record has are counted and ignored.

mod body;
pub(super) mod fields;
mod labels;
mod outcome;
mod response_metrics;
mod stream;
mod timing;
mod trace;
mod wire;

use chrono::{DateTime, FixedOffset};
use serde_json::value::RawValue;

pub use self::body::{ClientRecordBody, DimensionsBody, SetupBody, StreamBody};
use self::labels::Labels;
use self::outcome::Outcome;
use self::response_metrics::OwnTiming;
use self::timing::Timing;
use self::trace::Ids;
pub(super) use self::trace::trace_id;
pub use self::trace::{TraceContext, TraceparentError};
pub use self::wire::{Count, Field, Millis};
use super::text;
use model::{ClientRecord, TraceId, UnixNanos, is_placeholder_id};

/// A record, and how many of its fields no record has.
#[derive(Debug, Clone, PartialEq)]
pub struct ParsedRecord {
    pub record: ClientRecord,
    /// Fields that were ignored, those of nested objects included.
    pub ignored_fields: u64,
}

/// Why a record is refused for good.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} {reason}")]
pub struct FieldError {
    /// The field at fault, such as `setup.connect_ms`; empty where it is the record as a whole.
    pub field: String,
    /// What is wrong and what to do about it.
    pub reason: String,
}

impl FieldError {
    fn new(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { field: field.into(), reason: reason.into() }
    }
}

/// The longest request id, in bytes. A longer one is refused, since a cut one might be another request's.
const MAX_REQUEST_ID: usize = text::MAX_TEXT;

const NO_ID: &str = "is missing; send trace_id (32 hexadecimal digits) or the request's traceparent, or at least a \
                     request_id of its own that the server's spans carry too";

/// Reads one record from JSON.
///
/// # Errors
/// The first field that is missing, malformed, or at odds with another.
pub fn record(raw: &RawValue) -> Result<ParsedRecord, FieldError> {
    ClientRecordBody::parse(raw)?.try_into()
}

impl TryFrom<ClientRecordBody> for ParsedRecord {
    type Error = FieldError;

    /// A record that has a request id and no trace id gets the id under which that request id is kept.
    fn try_from(mut body: ClientRecordBody) -> Result<Self, FieldError> {
        let request_id = request_id(&mut body.request_id)?;
        let trace = Ids::take(&mut body)?;
        let derived = || request_id.as_deref().map(TraceId::of_request_id);
        let trace_id = trace.trace_id.or_else(derived).ok_or_else(|| FieldError::new("trace_id", NO_ID))?;
        let labels = Labels::take(&mut body)?;
        let stream = stream::take(&mut body)?;
        let own_timing = OwnTiming::take(&mut body)?;
        let outcome = Outcome::take(&mut body, stream.as_ref())?;
        let timing = Timing::take(&mut body)?;
        timing.check(outcome.result, stream.as_ref())?;
        let streaming = body.streaming.value("streaming")?.or(labels.streaming);
        let cold_start = body.cold_start.value("cold_start")?.or(labels.cold_start).or(own_timing.cold_start);
        let record = ClientRecord {
            trace_id,
            span_id: trace.span_id,
            sampled: trace.sampled,
            request_id,
            started_at: started_at(&mut body.started_at)?,
            duration: timing.duration,
            wall: timing.wall,
            setup: timing.setup,
            client_queue: timing.client_queue,
            headers: timing.headers,
            sending: timing.sending,
            waiting: timing.waiting,
            receiving: timing.receiving,
            ttft: timing.ttft,
            ttft_visible: timing.ttft_visible,
            streaming,
            status: outcome.status,
            result: outcome.result,
            error: outcome.error,
            input_tokens: body.input_tokens.count("input_tokens")?.or(own_timing.input_tokens),
            output_tokens: body.output_tokens.count("output_tokens")?.or(own_timing.output_tokens),
            stream,
            response_metrics: own_timing.metrics(),
            headers_only: timing.headers_only,
            cold_start,
            run: labels.run,
            scenario: labels.scenario,
            dimensions: labels.dimensions,
        };
        Ok(ParsedRecord { record, ignored_fields: body.ignored_fields })
    }
}

pub(super) fn request_id(field: &mut Field<String>) -> Result<Option<String>, FieldError> {
    let Some(raw) = field.raw_text("request_id")? else { return Ok(None) };
    if raw.len() > MAX_REQUEST_ID {
        let reason = format!("has {} bytes, at most {MAX_REQUEST_ID} are kept; send a shorter id", raw.len());
        return Err(FieldError::new("request_id", reason));
    }
    let clean = text::value(&raw);
    if clean.text.contains(text::REDACTED) {
        let reason = "looks like a mail address or a key, which are never stored; send a random id, or leave it out";
        return Err(FieldError::new("request_id", reason));
    }
    // Joined by it would be whoever has none.
    Ok(Some(clean.text).filter(|id| !is_placeholder_id(id)))
}

fn started_at(field: &mut Field<String>) -> Result<Option<UnixNanos>, FieldError> {
    let Some(raw) = field.raw_text("started_at")? else { return Ok(None) };
    let nanos = |at: DateTime<FixedOffset>| at.timestamp_nanos_opt();
    match DateTime::parse_from_rfc3339(raw.trim()).ok().and_then(nanos) {
        Some(nanos) => Ok(Some(UnixNanos(nanos))),
        None => Err(FieldError::new(
            "started_at",
            "is not a time of RFC 3339 between 1677 and 2262; send one such as 2026-01-02T03:04:05.678Z, or leave it \
             out: the time of arrival is taken then",
        )),
    }
}

#[cfg(test)]
mod tests;
