//! What a record says about the stream.

use super::FieldError;
use super::body::{ClientRecordBody, StreamBody};
use model::StreamSummary;

/// What the client saw of the stream: `stream` and `completeness`.
pub fn take(body: &mut ClientRecordBody) -> Result<Option<StreamSummary>, FieldError> {
    let mut summary = match body.stream.value("stream")? {
        None => None,
        Some(mut stream) => {
            body.ignored_fields += stream.ignored_fields;
            Some(summary(&mut stream)?)
        }
    };
    if let Some(given) = body.completeness.raw_text("completeness")? {
        complete("completeness", given.trim(), summary.get_or_insert_default())?;
    }
    Ok(summary)
}

fn summary(stream: &mut StreamBody) -> Result<StreamSummary, FieldError> {
    let mut summary = StreamSummary {
        business_events: stream.business_events.count("stream.business_events")?,
        batched_events: stream.batched_events.count("stream.batched_events")?,
        p50_gap: stream.p50_gap_ms.millis("stream.p50_gap_ms")?,
        p95_gap: stream.p95_gap_ms.millis("stream.p95_gap_ms")?,
        p99_gap: stream.p99_gap_ms.millis("stream.p99_gap_ms")?,
        max_gap: stream.max_gap_ms.millis("stream.max_gap_ms")?,
        gaps_over_1s: stream.gaps_over_1s.count("stream.gaps_over_1s")?,
        done_received: stream.done_received.value("stream.done_received")?,
        last_seq: stream.last_seq.count("stream.last_seq")?,
        missing_seq: stream.missing_seq.count("stream.missing_seq")?,
        last_event: stream.last_event_ms.millis("stream.last_event_ms")?,
        tokens_after_first: stream.tokens_after_first.count("stream.tokens_after_first")?,
        buffered_events: stream.buffered_events.count("stream.buffered_events")?,
        buffer_silence: stream.buffer_silence_ms.millis("stream.buffer_silence_ms")?,
        buffer_burst: stream.buffer_burst.count("stream.buffer_burst")?,
    };
    if let Some(given) = stream.completeness.raw_text("stream.completeness")? {
        complete("stream.completeness", given.trim(), &mut summary)?;
    }
    Ok(summary)
}

/// A completeness that was given without its details; where the details are there, they stand.
fn complete(path: &str, given: &str, summary: &mut StreamSummary) -> Result<(), FieldError> {
    let (ended, missing) = match given {
        "ok" => (true, 0),
        "no_end" => (false, 0),
        // At least one is missing: how many is not known.
        "missing" => (true, 1),
        "both" => (false, 1),
        _ => return Err(FieldError::new(path, "is none of ok, no_end, missing, both; leave it out if unknown")),
    };
    summary.done_received.get_or_insert(ended);
    summary.missing_seq.get_or_insert(missing);
    Ok(())
}
