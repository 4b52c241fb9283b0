//! What a record tells of the stream.

use super::FieldError;
use super::fields::Fields;
use model::StreamSummary;

/// What the client saw of the stream: `stream` and `completeness`.
pub fn take(fields: &mut Fields) -> Result<Option<StreamSummary>, FieldError> {
    let mut summary = summary(fields)?;
    if let Some(told) = fields.raw_text("completeness")? {
        let summary = summary.get_or_insert_default();
        complete(fields, told.trim(), summary)?;
    }
    Ok(summary)
}

fn summary(fields: &mut Fields) -> Result<Option<StreamSummary>, FieldError> {
    let Some(mut stream) = fields.object("stream")? else { return Ok(None) };
    let mut summary = StreamSummary {
        business_events: stream.count("business_events")?,
        batched_events: stream.count("batched_events")?,
        p50_gap: stream.millis("p50_gap_ms")?,
        p95_gap: stream.millis("p95_gap_ms")?,
        p99_gap: stream.millis("p99_gap_ms")?,
        max_gap: stream.millis("max_gap_ms")?,
        gaps_over_1s: stream.count("gaps_over_1s")?,
        done_received: stream.boolean("done_received")?,
        last_seq: stream.count("last_seq")?,
        missing_seq: stream.count("missing_seq")?,
        last_event: stream.millis("last_event_ms")?,
        tokens_after_first: stream.count("tokens_after_first")?,
        buffered_events: stream.count("buffered_events")?,
        buffer_silence: stream.millis("buffer_silence_ms")?,
        buffer_burst: stream.count("buffer_burst")?,
    };
    if let Some(told) = stream.raw_text("completeness")? {
        complete(&stream, told.trim(), &mut summary)?;
    }
    fields.absorb(stream);
    Ok(Some(summary))
}

/// A completeness that was told without its details; where the details are there, they stand.
fn complete(fields: &Fields, told: &str, summary: &mut StreamSummary) -> Result<(), FieldError> {
    let (ended, missing) = match told {
        "ok" => (true, 0),
        "no_end" => (false, 0),
        // At least one is missing: how many was not told.
        "missing" => (true, 1),
        "both" => (false, 1),
        _ => return Err(fields.error("completeness", "is none of ok, no_end, missing, both; leave it out if unknown")),
    };
    summary.done_received.get_or_insert(ended);
    summary.missing_seq.get_or_insert(missing);
    Ok(())
}
