//! From the protocol's messages to the body of a record. A field that one of the two lacks does not compile.

use chrono::{DateTime, SecondsFormat};
use normalise::{ClientRecordBody, Count, Field, Millis, SetupBody, StreamBody};
use prost_types::value::Kind;
use prost_types::{Struct, Timestamp};
use serde_json::{Map, Value};

use super::proto::{ClientRecord, Setup, Stream};

/// The body of a record.
///
/// # Errors
/// A number in `response_metrics` that is not finite.
pub(super) fn body(record: ClientRecord) -> Result<ClientRecordBody, String> {
    let ClientRecord {
        trace_id,
        span_id,
        traceparent,
        request_id,
        started_at,
        duration_ms,
        wall_ms,
        setup,
        client_queue_ms,
        headers_ms,
        sending_ms,
        waiting_ms,
        receiving_ms,
        ttft_ms,
        ttft_visible_ms,
        headers_only,
        streaming,
        status,
        result,
        error,
        input_tokens,
        output_tokens,
        stream,
        response_metrics,
        cold_start,
        run,
        scenario,
        dimensions,
    } = record;
    Ok(ClientRecordBody {
        trace_id: trace_id.into(),
        span_id: span_id.into(),
        traceparent: traceparent.into(),
        request_id: request_id.into(),
        started_at: started_at.map(rfc3339).into(),
        duration_ms: millis(duration_ms),
        wall_ms: millis(wall_ms),
        setup: setup.map(setup_body).into(),
        client_queue_ms: millis(client_queue_ms),
        headers_ms: millis(headers_ms),
        sending_ms: millis(sending_ms),
        waiting_ms: millis(waiting_ms),
        receiving_ms: millis(receiving_ms),
        ttft_ms: millis(ttft_ms),
        ttft_visible_ms: millis(ttft_visible_ms),
        headers_only: headers_only.into(),
        // Another spelling of `headers_only`, which typed clients do not need.
        quality: Field::Absent,
        streaming: streaming.into(),
        status: count(status),
        result: result.into(),
        error: error.into(),
        input_tokens: count(input_tokens),
        output_tokens: count(output_tokens),
        stream: stream.map(stream_body).into(),
        // Another place of `stream.completeness`.
        completeness: Field::Absent,
        response_metrics: response_metrics.map(object).transpose()?.into(),
        cold_start: cold_start.into(),
        run: run.into(),
        scenario: scenario.into(),
        dimensions: (!dimensions.is_empty()).then(|| dimensions.into_iter().collect()).into(),
        ignored_fields: 0,
    })
}

fn setup_body(Setup { blocked_ms, dns_ms, connect_ms, tls_ms }: Setup) -> SetupBody {
    SetupBody {
        blocked_ms: millis(blocked_ms),
        dns_ms: millis(dns_ms),
        connect_ms: millis(connect_ms),
        tls_ms: millis(tls_ms),
        ignored_fields: 0,
    }
}

fn stream_body(stream: Stream) -> StreamBody {
    let Stream {
        business_events,
        batched_events,
        p50_gap_ms,
        p95_gap_ms,
        p99_gap_ms,
        max_gap_ms,
        gaps_over_1s,
        done_received,
        last_seq,
        missing_seq,
        last_event_ms,
        tokens_after_first,
        completeness,
        buffered_events,
        buffer_silence_ms,
        buffer_burst,
    } = stream;
    StreamBody {
        business_events: count(business_events),
        batched_events: count(batched_events),
        p50_gap_ms: millis(p50_gap_ms),
        p95_gap_ms: millis(p95_gap_ms),
        p99_gap_ms: millis(p99_gap_ms),
        max_gap_ms: millis(max_gap_ms),
        gaps_over_1s: count(gaps_over_1s),
        done_received: done_received.into(),
        last_seq: count(last_seq),
        missing_seq: count(missing_seq),
        last_event_ms: millis(last_event_ms),
        tokens_after_first: count(tokens_after_first),
        completeness: completeness.into(),
        buffered_events: count(buffered_events),
        buffer_silence_ms: millis(buffer_silence_ms),
        buffer_burst: count(buffer_burst),
        ignored_fields: 0,
    }
}

fn millis(millis: Option<f64>) -> Field<Millis> {
    millis.map(Millis).into()
}

fn count(number: Option<i64>) -> Field<Count> {
    Field::<Count>::of_number(number)
}

/// A time that RFC 3339 cannot write is a text that is refused as `started_at`.
fn rfc3339(Timestamp { seconds, nanos }: Timestamp) -> String {
    let within = u32::try_from(nanos).ok().filter(|nanos| *nanos < 1_000_000_000);
    match within.and_then(|nanos| DateTime::from_timestamp(seconds, nanos)) {
        Some(at) => at.to_rfc3339_opts(SecondsFormat::AutoSi, true),
        None => format!("{seconds} s and {nanos} ns"),
    }
}

fn object(object: Struct) -> Result<Map<String, Value>, String> {
    object.fields.into_iter().map(|(name, member)| Ok((name, value(member)?))).collect()
}

fn value(sent: prost_types::Value) -> Result<Value, String> {
    Ok(match sent.kind {
        None | Some(Kind::NullValue(_)) => Value::Null,
        Some(Kind::BoolValue(bool)) => bool.into(),
        Some(Kind::StringValue(text)) => text.into(),
        Some(Kind::NumberValue(number)) if !number.is_finite() => {
            return Err(format!("response_metrics holds {number}, which is not a finite number; leave it out"));
        }
        Some(Kind::NumberValue(number)) => number.into(),
        Some(Kind::ListValue(list)) => list.values.into_iter().map(value).collect::<Result<Vec<_>, _>>()?.into(),
        Some(Kind::StructValue(members)) => object(members)?.into(),
    })
}

#[cfg(test)]
mod tests {
    use normalise::ParsedRecord;

    use super::*;

    /// The path of the field at fault.
    fn refused(record: ClientRecord) -> String {
        let bare = ClientRecord { trace_id: Some("1".repeat(32)), duration_ms: Some(5.0), ..record };
        ParsedRecord::try_from(body(bare).expect("a body")).expect_err("refused").field
    }

    #[test]
    fn times_are_exact_and_impossible_ones_are_refused_by_name() {
        let at = |seconds, nanos| Timestamp { seconds, nanos };
        assert_eq!(rfc3339(at(1_767_323_045, 678_000_001)), "2026-01-02T03:04:05.678000001Z");
        assert_eq!(rfc3339(at(-1, 0)), "1969-12-31T23:59:59Z");
        for impossible in [at(0, -1), at(59, 1_000_000_000), at(i64::MAX, 0), at(253_402_300_800, 0)] {
            assert_eq!(refused(ClientRecord { started_at: Some(impossible), ..ClientRecord::default() }), "started_at");
        }
    }

    #[test]
    fn counts_outside_their_range_are_refused_by_name() {
        for status in [-1, 1_000, i64::MAX] {
            assert_eq!(refused(ClientRecord { status: Some(status), ..ClientRecord::default() }), "status");
        }
    }

    #[test]
    fn response_metrics_hold_finite_numbers_only() {
        let metrics =
            |number| Struct { fields: [("queue_time_ms".to_owned(), Kind::NumberValue(number).into())].into() };
        assert_eq!(object(metrics(12.5)).expect("an object")["queue_time_ms"], 12.5);
        let record = ClientRecord { response_metrics: Some(metrics(f64::NAN)), ..ClientRecord::default() };
        assert!(body(record).expect_err("JSON has no NaN").contains("NaN, which is not a finite number"));
    }
}
