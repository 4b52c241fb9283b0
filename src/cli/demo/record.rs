//! A simulated call as its client's record.

use super::gateway::{Call, Ending};
use super::{Identity, labels};
use crate::cli::record_line::{Millis, RecordLine, SetupLine, StreamLine};
use model::{Dimension, Nanos, ResultClass, SpanId, UnixNanos};

/// The record that a load generator would upload.
pub fn record(call: &Call, identity: &Identity, start: UnixNanos, run: &str) -> RecordLine {
    let answered = call.ending == Ending::Answered;
    let dimensions = [
        (Dimension::Model, labels::model(call)),
        (Dimension::Provider, labels::provider(call)),
        (Dimension::Region, "eu"),
    ];
    RecordLine {
        trace_id: Some(identity.trace),
        span_id: SpanId::from_bytes(identity.client).ok(),
        started_at: Some(start + call.at),
        duration_ms: Some(Millis(call.client_duration())),
        setup: setup(call),
        ttft_ms: call.client_first_token().map(Millis),
        streaming: Some(call.streaming),
        status: Some(if call.ending == Ending::GivenUp { 0 } else { labels::status(call) }),
        result: Some(result(call)),
        input_tokens: answered.then_some(call.input_tokens),
        output_tokens: answered.then_some(call.output_tokens),
        stream: if answered { stream(call) } else { None },
        run: Some(run.to_owned()),
        scenario: Some("steady".to_owned()),
        dimensions: dimensions.map(|(dimension, value)| (dimension, value.to_owned())).into(),
        ..RecordLine::default()
    }
}

/// No name to look up and nobody to wait for; the handshake of TLS takes twice as long as that of TCP.
fn setup(call: &Call) -> SetupLine {
    let connect = Nanos(call.setup.0 / 3);
    SetupLine {
        blocked_ms: Some(Millis(Nanos::ZERO)),
        dns_ms: Some(Millis(Nanos::ZERO)),
        connect_ms: Some(Millis(connect)),
        tls_ms: Some(Millis(call.setup - connect)),
    }
}

fn result(call: &Call) -> ResultClass {
    match call.ending {
        Ending::Answered => ResultClass::Ok,
        Ending::Refused | Ending::Crashed | Ending::Failed => ResultClass::Error,
        Ending::GivenUp => ResultClass::Timeout,
    }
}

/// One event a token, evenly spaced, and the end marker.
fn stream(call: &Call) -> Option<StreamLine> {
    let first = call.client_first_token()?;
    let gap = Nanos((call.client_duration() - first).0 / call.output_tokens.max(1));
    let gaps: Vec<Nanos> = (1..call.output_tokens).map(|_| gap).collect();
    Some(StreamLine {
        business_events: Some(call.output_tokens),
        batched_events: Some(0),
        done_received: Some(true),
        last_seq: Some(call.output_tokens),
        missing_seq: Some(0),
        last_event_ms: None,
        ..StreamLine::of_gaps(first, &gaps)
    })
}
