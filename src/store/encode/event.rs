//! The stored form of lines of an event log, as columns: sequence numbers and times as differences to the line before.
//! Lines are sorted first, so that a log that is sent twice has the same bytes.

use prost::Message;

use super::{DecodeError, open, seal};
use model::{EventKind, EventLog, Nanos, StreamEvent, TraceId};

/// Stands for a value that a line does not tell; told values are shifted by one.
const ABSENT: u64 = 0;

#[derive(Message)]
struct Body {
    #[prost(string, optional, tag = "1")]
    request_id: Option<String>,
    /// `EventKind` as a number.
    #[prost(uint32, repeated, tag = "2")]
    kinds: Vec<u32>,
    /// Differences; see [`Steps`].
    #[prost(uint64, repeated, tag = "3")]
    client_times: Vec<u64>,
    #[prost(uint64, repeated, tag = "4")]
    seqs: Vec<u64>,
    #[prost(uint64, repeated, tag = "5")]
    service_times: Vec<u64>,
    #[prost(uint64, repeated, tag = "6")]
    tokens: Vec<u64>,
    /// 0 unknown, 1 alone, 2 with another.
    #[prost(uint32, repeated, tag = "7")]
    batched: Vec<u32>,
}

/// A column of numbers as differences to the last known one, zigzag, shifted by one to leave room for [`ABSENT`].
#[derive(Default)]
struct Steps {
    last: i64,
}

impl Steps {
    fn write(&mut self, value: Option<i64>) -> u64 {
        let Some(value) = value else { return ABSENT };
        let step = value.wrapping_sub(std::mem::replace(&mut self.last, value));
        // Values are far below 2^62, so the shift by one cannot overflow.
        (((step << 1) ^ (step >> 63)) as u64).wrapping_add(1)
    }

    fn read(&mut self, stored: u64) -> Option<i64> {
        let zigzag = stored.checked_sub(1)?;
        let step = (zigzag >> 1) as i64 ^ -((zigzag & 1) as i64);
        self.last = self.last.wrapping_add(step);
        Some(self.last)
    }
}

/// Writes lines.
pub(in crate::store) fn encode_events(log: &EventLog) -> Vec<u8> {
    let mut lines = log.lines.clone();
    lines.sort_unstable();
    let [mut client, mut seq, mut service, mut tokens] = [(); 4].map(|()| Steps::default());
    seal(&Body {
        request_id: log.request_id.clone(),
        kinds: lines.iter().map(|line| line.kind as u32).collect(),
        client_times: lines.iter().map(|line| client.write(line.client_time.map(|time| time.0))).collect(),
        seqs: lines.iter().map(|line| seq.write(line.seq)).collect(),
        service_times: lines.iter().map(|line| service.write(line.service_time.map(|time| time.0))).collect(),
        tokens: lines.iter().map(|line| tokens.write(line.tokens)).collect(),
        batched: lines.iter().map(|line| line.batched.map_or(0, |batched| 1 + u32::from(batched))).collect(),
    })
}

/// Reads what [`encode_events`] wrote.
pub(in crate::store) fn decode_events(trace_id: TraceId, body: &[u8]) -> Result<EventLog, DecodeError> {
    let body: Body = open(body)?;
    let count = body.kinds.len();
    let columns = [&body.client_times, &body.seqs, &body.service_times, &body.tokens];
    if columns.iter().any(|column| column.len() != count) || body.batched.len() != count {
        return Err(DecodeError::damaged("its columns differ in length"));
    }
    let [mut client, mut seq, mut service, mut tokens] = [(); 4].map(|()| Steps::default());
    let mut lines = Vec::with_capacity(count);
    for (place, kind) in body.kinds.iter().enumerate() {
        let kind = EventKind::from_number(*kind).ok_or_else(|| DecodeError::damaged("it has a line of no kind"))?;
        lines.push(StreamEvent {
            kind,
            client_time: client.read(body.client_times[place]).map(Nanos),
            seq: seq.read(body.seqs[place]),
            service_time: service.read(body.service_times[place]).map(Nanos),
            tokens: tokens.read(body.tokens[place]),
            batched: body.batched[place].checked_sub(1).map(|batched| batched > 0),
        });
    }
    Ok(EventLog { trace_id, request_id: body.request_id, lines })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn line() -> impl Strategy<Value = StreamEvent> {
        let number = || prop::option::of(0_i64..1 << 61);
        (0_u32..4, number(), number(), number(), number(), any::<Option<bool>>()).prop_map(
            |(kind, client, seq, service, tokens, batched)| StreamEvent {
                kind: EventKind::from_number(kind).expect("a kind"),
                client_time: client.map(Nanos),
                seq,
                service_time: service.map(Nanos),
                tokens,
                batched,
            },
        )
    }

    proptest! {
        #[test]
        fn lines_come_back_sorted_and_any_order_has_the_same_bytes(
            lines in prop::collection::vec(line(), 0..40), request_id in prop::option::of("[a-z]{0,8}"),
        ) {
            let log = EventLog { trace_id: TraceId::of_request_id("r"), request_id, lines };
            let mut sorted = log.clone();
            sorted.lines.sort_unstable();
            let body = encode_events(&log);
            prop_assert_eq!(decode_events(log.trace_id, &body), Ok(sorted));
            let mut reversed = log;
            reversed.lines.reverse();
            prop_assert_eq!(encode_events(&reversed), body);
        }

        #[test]
        fn no_bytes_make_reading_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let whole = [&[1], bytes.as_slice()].concat();
            let _ = decode_events(TraceId::of_request_id("r"), &whole);
        }
    }

    #[test]
    fn a_line_of_a_stream_takes_few_bytes() {
        let lines = (0..1000).map(|n| StreamEvent {
            kind: EventKind::Business,
            client_time: Some(Nanos(1_767_323_045_678_000_000 + n * 20_000_000)),
            seq: Some(n + 1),
            service_time: None,
            tokens: Some(1),
            batched: Some(false),
        });
        let log = EventLog { trace_id: TraceId::of_request_id("r"), request_id: None, lines: lines.collect() };
        assert!(encode_events(&log).len() < 10_100);
    }
}
