//! The client record of what was measured.

use serde_json::json;
use serde_json::value::to_raw_value;

use super::args::Labels;
use crate::cli::record_line::{Millis, RecordLine, SetupLine, StreamLine};
use crate::probe::{Failure, Observation};
use model::Nanos;
use normalise;

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
        // Joins the two sides where a proxy starts a trace of its own.
        request_id: observation.seen.answer_id.clone().filter(|id| is_storable(id)),
        started_at: Some(observation.started_at),
        duration_ms: millis(observation.duration),
        // A request that was never sent has no duration, yet took its time.
        wall_ms: millis(observation.duration.is_none().then_some(observation.wall)),
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

/// Whether the server takes an id. One that looks like a key it refuses, and the whole record with it.
fn is_storable(id: &str) -> bool {
    let record = json!({"trace_id": "01".repeat(16), "duration_ms": 0, "request_id": id});
    to_raw_value(&record).is_ok_and(|raw| normalise::record(&raw).is_ok())
}

fn stream(observation: &Observation) -> StreamLine {
    let seen = &observation.seen;
    StreamLine {
        batched_events: i64::try_from(seen.batched()).ok(),
        done_received: observation.done_received(),
        last_seq: seen.sequence.map(|sequence| sequence.last).filter(|last| *last >= 0),
        missing_seq: seen.sequence.map(|sequence| sequence.missing),
        ..StreamLine::of_arrivals(&seen.tokens)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use super::*;
    use crate::probe::{Client, HttpVersion, Limits, Request, Rules, Seen, Trust};
    use bytes::Bytes;
    use model::{ResultClass, Setup};
    use reqwest::Method;
    use reqwest::header::HeaderMap;

    fn labels() -> Labels {
        Labels { run: None, scenario: "probe".to_owned(), dimensions: BTreeMap::new() }
    }

    /// Of a request that nobody answered.
    async fn refused() -> Observation {
        let limits = Limits { total: Duration::from_secs(60), stall: Duration::from_secs(60), redirects: 0 };
        let client = Client::new(Rules::default(), limits, &Trust::System, HttpVersion::Http1).expect("a client");
        let url = "http://127.0.0.1:1/".parse().expect("a URL");
        client.measure(&Request { method: Method::GET, url, headers: HeaderMap::new(), body: Bytes::new() }).await
    }

    #[tokio::test]
    async fn it_is_one_that_the_server_takes_whole() {
        let refused = refused().await;
        let time = |millis: i64| Some(Nanos(millis * 1_000_000));
        let seen = Seen { tokens: vec![Nanos(20_000_000), Nanos(20_000_000), Nanos(1_500_000_000)], ..Seen::default() };
        let answered = Observation {
            setup: Setup { blocked: time(1), dns: time(0), connect: time(2), tls: time(0) },
            status: 200,
            sending: time(1),
            headers: time(10),
            streaming: Some(true),
            seen: Seen { done: time(1_600), ..seen.clone() },
            duration: time(1_600),
            wall: Nanos(1_603_000_000),
            failure: None,
            ..refused.clone()
        };
        let cut = Observation { seen, failure: Some(Failure::Reset), ..answered.clone() };
        for (observation, result) in
            [(&refused, ResultClass::Error), (&answered, ResultClass::Ok), (&cut, ResultClass::Truncated)]
        {
            let line = record(observation, &labels(), Some(Nanos(5)));
            let parsed = normalise::record(&to_raw_value(&line).expect("JSON")).expect("a record");
            assert_eq!((parsed.ignored_fields, parsed.record.result), (0, result));
            assert_eq!(parsed.record.duration, observation.duration);
            assert_eq!(parsed.record.span_id, Some(observation.span_id));
        }
        for (id, kept) in [("chatcmpl-1", Some("chatcmpl-1")), ("sk-live-0123456789abcdef", None)] {
            let seen = Seen { answer_id: Some(id.to_owned()), ..Seen::default() };
            let named = Observation { seen, ..refused.clone() };
            assert_eq!(record(&named, &labels(), None).request_id.as_deref(), kept);
        }
        let stream = record(&answered, &labels(), None).stream.expect("a stream");
        assert_eq!((stream.business_events, stream.batched_events, stream.gaps_over_1s), (Some(3), Some(2), Some(1)));
        assert_eq!(record(&refused, &labels(), None).wall_ms, Some(Millis(refused.wall)));
    }
}
