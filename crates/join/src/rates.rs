//! Speeds of an answer (design, section 5).

use model::{ClientRecord, Nanos, Rates};

/// The rates of a request. A rate is `None` where a count or a time in it is unknown or not positive.
pub fn rates(record: Option<&ClientRecord>, output_tokens: Option<i64>, generation: Option<Nanos>) -> Rates {
    let tokens = output_tokens.filter(|count| *count > 0).map(|count| count as f64);
    let stream = record.and_then(|record| record.stream);
    let whole = record.filter(|record| !record.headers_only).and_then(|record| record.duration);
    let last = stream.and_then(|stream| stream.last_event).or(whole);
    let first = record.and_then(|record| record.ttft);
    let flowing = last.zip(first).map(|(last, first)| last - first);
    let after_first = stream.and_then(|stream| stream.tokens_after_first).map(|count| count as f64);
    let further = tokens.map(|count| count - 1.0);
    Rates {
        rate_e2e: ratio(tokens, last.map(Nanos::as_secs)),
        rate_stream: ratio(further, flowing.map(Nanos::as_secs)),
        rate_after_first: ratio(after_first, flowing.map(Nanos::as_secs)),
        tpot_ms: ratio(flowing.map(Nanos::as_millis), further),
        generation_ms_per_output_token: ratio(generation.map(Nanos::as_millis), tokens),
    }
}

fn ratio(above: Option<f64>, below: Option<f64>) -> Option<f64> {
    let (above, below) = above.zip(below)?;
    (above > 0.0 && below > 0.0).then(|| above / below)
}
