//! The client record of what was measured.

use super::args::Labels;
use crate::cli::record_line::{Millis, RecordLine, SetupLine, StreamLine};
use crate::model::Nanos;
use crate::probe::{Failure, Observation};

/// The record. `queued` is from the scheduled start to the real one.
pub fn record(observation: &Observation, labels: &Labels, queued: Option<Nanos>) -> RecordLine {
    let millis = |time: Option<Nanos>| time.map(Millis);
    let setup = &observation.setup;
    let waiting = observation.headers.zip(observation.sending).map(|(headers, sending)| headers - sending);
    let receiving = observation.duration.zip(observation.headers).map(|(duration, headers)| duration - headers);
    let streaming = observation.streaming == Some(true);
    RecordLine {
        trace_id: Some(observation.trace_id),
        span_id: Some(observation.span_id),
        started_at: Some(observation.started_at),
        duration_ms: millis(observation.duration),
        setup: SetupLine {
            blocked_ms: millis(setup.blocked),
            dns_ms: millis(setup.dns),
            connect_ms: millis(setup.connect),
            tls_ms: millis(setup.tls),
        },
        client_queue_ms: millis(queued),
        headers_ms: millis(observation.headers),
        sending_ms: millis(observation.sending),
        waiting_ms: millis(waiting),
        receiving_ms: millis(receiving),
        ttft_ms: millis(observation.ttft()),
        ttft_visible_ms: millis(observation.seen.first_visible),
        streaming: observation.streaming,
        status: Some(observation.status.into()),
        result: Some(observation.result()),
        error: observation.failure.as_ref().map(Failure::class).map(str::to_owned),
        input_tokens: observation.seen.usage.input,
        output_tokens: observation.seen.usage.output,
        stream: streaming.then(|| stream(observation)),
        response_metrics: observation.seen.metrics.clone(),
        run: labels.run.clone(),
        scenario: Some(labels.scenario.clone()),
        dimensions: labels.dimensions.clone(),
        ..RecordLine::default()
    }
}

fn stream(observation: &Observation) -> StreamLine {
    let seen = &observation.seen;
    let line = StreamLine {
        business_events: Some(seen.tokens.len() as i64),
        batched_events: i64::try_from(seen.batched()).ok(),
        last_event_ms: seen.tokens.last().copied().map(Millis),
        done_received: observation.done_received(),
        last_seq: seen.sequence.map(|sequence| sequence.last).filter(|last| *last >= 0),
        missing_seq: seen.sequence.map(|sequence| sequence.missing),
        ..StreamLine::default()
    };
    line.with_gaps(seen.tokens.windows(2).map(|pair| pair[1] - pair[0]).collect())
}
