//! The stored form of a client record. The trace id is the arrival's key and is not repeated.

use prost::Message;

use super::{DecodeError, digest, open, seal};
use model::{
    ClientRecord, Dimension, Dimensions, MetricsKind, Nanos, ResponseMetrics, ResultClass, Setup, SpanId,
    StreamSummary, TraceId, UnixNanos,
};

/// The fields that most records have come first: their tags take one byte.
#[derive(Message)]
struct Body {
    #[prost(fixed64, optional, tag = "1")]
    span_id: Option<u64>,
    #[prost(sfixed64, optional, tag = "2")]
    started_at: Option<i64>,
    #[prost(sint64, optional, tag = "3")]
    duration: Option<i64>,
    #[prost(sint64, optional, tag = "4")]
    headers: Option<i64>,
    #[prost(sint64, optional, tag = "5")]
    sending: Option<i64>,
    /// Less what `headers` and `sending` leave for it: mostly 0.
    #[prost(sint64, optional, tag = "6")]
    waiting: Option<i64>,
    /// Less what `duration` and `headers` leave for it: mostly 0.
    #[prost(sint64, optional, tag = "7")]
    receiving: Option<i64>,
    #[prost(sint64, optional, tag = "8")]
    ttft: Option<i64>,
    #[prost(sint64, optional, tag = "9")]
    status: Option<i64>,
    #[prost(bool, optional, tag = "10")]
    streaming: Option<bool>,
    #[prost(sint64, optional, tag = "11")]
    input_tokens: Option<i64>,
    #[prost(sint64, optional, tag = "12")]
    output_tokens: Option<i64>,
    #[prost(string, optional, tag = "13")]
    scenario: Option<String>,
    /// Places in `DIMENSIONS`.
    #[prost(uint32, repeated, tag = "14")]
    dimensions: Vec<u32>,
    #[prost(string, repeated, tag = "15")]
    labels: Vec<String>,
    #[prost(string, optional, tag = "16")]
    run: Option<String>,
    #[prost(sint64, optional, tag = "17")]
    blocked: Option<i64>,
    #[prost(sint64, optional, tag = "18")]
    dns: Option<i64>,
    #[prost(sint64, optional, tag = "19")]
    connect: Option<i64>,
    #[prost(sint64, optional, tag = "20")]
    tls: Option<i64>,
    #[prost(bool, optional, tag = "21")]
    sampled: Option<bool>,
    /// `ResultClass` as a number.
    #[prost(uint32, tag = "22")]
    result: u32,
    #[prost(sint64, optional, tag = "23")]
    wall: Option<i64>,
    #[prost(sint64, optional, tag = "24")]
    client_queue: Option<i64>,
    #[prost(sint64, optional, tag = "25")]
    ttft_visible: Option<i64>,
    #[prost(message, optional, tag = "26")]
    stream: Option<StreamBody>,
    #[prost(message, optional, tag = "27")]
    response_metrics: Option<MetricsBody>,
    #[prost(bool, tag = "28")]
    headers_only: bool,
    #[prost(bool, optional, tag = "29")]
    cold_start: Option<bool>,
    #[prost(string, optional, tag = "30")]
    request_id: Option<String>,
    #[prost(string, optional, tag = "31")]
    error: Option<String>,
}

#[derive(Message)]
struct StreamBody {
    #[prost(sint64, optional, tag = "1")]
    business_events: Option<i64>,
    #[prost(sint64, optional, tag = "2")]
    batched_events: Option<i64>,
    #[prost(sint64, optional, tag = "3")]
    p50_gap: Option<i64>,
    #[prost(sint64, optional, tag = "4")]
    p95_gap: Option<i64>,
    #[prost(sint64, optional, tag = "5")]
    p99_gap: Option<i64>,
    #[prost(sint64, optional, tag = "6")]
    max_gap: Option<i64>,
    #[prost(sint64, optional, tag = "7")]
    gaps_over_1s: Option<i64>,
    #[prost(bool, optional, tag = "8")]
    done_received: Option<bool>,
    #[prost(sint64, optional, tag = "9")]
    last_seq: Option<i64>,
    #[prost(sint64, optional, tag = "10")]
    missing_seq: Option<i64>,
    #[prost(sint64, optional, tag = "11")]
    last_event: Option<i64>,
    #[prost(sint64, optional, tag = "12")]
    tokens_after_first: Option<i64>,
    #[prost(sint64, optional, tag = "13")]
    buffered_events: Option<i64>,
    #[prost(sint64, optional, tag = "14")]
    buffer_silence: Option<i64>,
    #[prost(sint64, optional, tag = "15")]
    buffer_burst: Option<i64>,
}

#[derive(Message)]
struct MetricsBody {
    #[prost(sint64, optional, tag = "1")]
    queue: Option<i64>,
    #[prost(sint64, optional, tag = "2")]
    prefill: Option<i64>,
    #[prost(sint64, optional, tag = "3")]
    decode: Option<i64>,
    /// `MetricsKind` as a number: what older rows leave out is 0, vLLM's body.
    #[prost(uint32, tag = "4")]
    kind: u32,
    #[prost(sint64, optional, tag = "5")]
    total: Option<i64>,
    #[prost(sint64, optional, tag = "6")]
    gateway: Option<i64>,
    #[prost(sint64, optional, tag = "7")]
    inference: Option<i64>,
}

/// The labels by the place that stands for them on disk. Append only.
const DIMENSIONS: &[Dimension] = &[
    Dimension::Run,
    Dimension::Scenario,
    Dimension::Model,
    Dimension::Provider,
    Dimension::Region,
    Dimension::Pool,
    Dimension::Priority,
    Dimension::Concurrency,
    Dimension::Streaming,
    Dimension::InputRange,
    Dimension::OutputRange,
    Dimension::ColdStart,
];

/// A digest of what makes a record the same one: its span id and its measured fields (design, section 6). Labels, the
/// time of start, the request id and the error text may differ between two uploads of one record; so may what a client
/// concludes from the arrivals that it measured.
pub(in crate::store) fn record_identity(record: &ClientRecord) -> i64 {
    let mut body = Body::of(record);
    body.request_id = None;
    body.started_at = None;
    body.error = None;
    body.run = None;
    body.scenario = None;
    body.dimensions.clear();
    body.labels.clear();
    if let Some(stream) = &mut body.stream {
        stream.buffered_events = None;
        stream.buffer_silence = None;
        stream.buffer_burst = None;
    }
    digest(&body.encode_to_vec())
}

/// Writes a record.
pub(in crate::store) fn encode_record(record: &ClientRecord) -> Vec<u8> {
    seal(&Body::of(record))
}

/// Reads what [`encode_record`] wrote.
pub(in crate::store) fn decode_record(trace_id: TraceId, body: &[u8]) -> Result<ClientRecord, DecodeError> {
    let body: Body = open(body)?;
    body.into_record(trace_id)
}

fn raw(duration: Option<Nanos>) -> Option<i64> {
    duration.map(|duration| duration.0)
}

/// What a part leaves of a whole; 0 where either is unknown.
fn rest(whole: Option<Nanos>, part: Option<Nanos>) -> i64 {
    match (whole, part) {
        (Some(whole), Some(part)) => whole.0.wrapping_sub(part.0),
        _ => 0,
    }
}

impl Body {
    fn of(record: &ClientRecord) -> Self {
        let known = DIMENSIONS.iter().zip(0..);
        let labels = known.filter_map(|(label, place)| Some((place, record.dimensions.get(*label)?.to_owned())));
        let (dimensions, labels) = labels.unzip();
        Self {
            span_id: record.span_id.map(|id| u64::from_be_bytes(*id.as_bytes())),
            sampled: record.sampled,
            request_id: record.request_id.clone(),
            started_at: record.started_at.map(|at| at.0),
            duration: raw(record.duration),
            wall: raw(record.wall),
            blocked: raw(record.setup.blocked),
            dns: raw(record.setup.dns),
            connect: raw(record.setup.connect),
            tls: raw(record.setup.tls),
            client_queue: raw(record.client_queue),
            headers: raw(record.headers),
            sending: raw(record.sending),
            waiting: record.waiting.map(|waiting| waiting.0.wrapping_sub(rest(record.headers, record.sending))),
            receiving: record
                .receiving
                .map(|receiving| receiving.0.wrapping_sub(rest(record.duration, record.headers))),
            ttft: raw(record.ttft),
            ttft_visible: raw(record.ttft_visible),
            streaming: record.streaming,
            status: record.status,
            result: record.result as u32,
            error: record.error.clone(),
            input_tokens: record.input_tokens,
            output_tokens: record.output_tokens,
            stream: record.stream.as_ref().map(StreamBody::of),
            response_metrics: record.response_metrics.as_ref().map(MetricsBody::of),
            headers_only: record.headers_only,
            cold_start: record.cold_start,
            run: record.run.clone(),
            scenario: record.scenario.clone(),
            dimensions,
            labels,
        }
    }

    fn into_record(self, trace_id: TraceId) -> Result<ClientRecord, DecodeError> {
        let span_id = self.span_id.map(|id| SpanId::from_bytes(id.to_be_bytes())).transpose();
        let result = i16::try_from(self.result).ok().and_then(ResultClass::from_number);
        let dimensions = read_dimensions(&self.dimensions, self.labels)?;
        let [duration, headers, sending] = [self.duration, self.headers, self.sending].map(|time| time.map(Nanos));
        let waiting = self.waiting.map(|more| Nanos(more.wrapping_add(rest(headers, sending))));
        let receiving = self.receiving.map(|more| Nanos(more.wrapping_add(rest(duration, headers))));
        Ok(ClientRecord {
            trace_id,
            span_id: span_id.map_err(|_| DecodeError::damaged("the span id is zero"))?,
            sampled: self.sampled,
            request_id: self.request_id,
            started_at: self.started_at.map(UnixNanos),
            duration,
            wall: self.wall.map(Nanos),
            setup: Setup {
                blocked: self.blocked.map(Nanos),
                dns: self.dns.map(Nanos),
                connect: self.connect.map(Nanos),
                tls: self.tls.map(Nanos),
            },
            client_queue: self.client_queue.map(Nanos),
            headers,
            sending,
            waiting,
            receiving,
            ttft: self.ttft.map(Nanos),
            ttft_visible: self.ttft_visible.map(Nanos),
            streaming: self.streaming,
            status: self.status,
            result: result.ok_or_else(|| DecodeError::damaged("the result class is unknown"))?,
            error: self.error,
            input_tokens: self.input_tokens,
            output_tokens: self.output_tokens,
            stream: self.stream.map(StreamBody::into_summary),
            response_metrics: self.response_metrics.map(MetricsBody::into_metrics).transpose()?,
            headers_only: self.headers_only,
            cold_start: self.cold_start,
            run: self.run,
            scenario: self.scenario,
            dimensions,
        })
    }
}

fn read_dimensions(places: &[u32], labels: Vec<String>) -> Result<Dimensions, DecodeError> {
    if places.len() != labels.len() {
        return Err(DecodeError::damaged("labels and values differ in number"));
    }
    let mut dimensions = Dimensions::default();
    for (place, label) in places.iter().zip(labels) {
        let dimension = DIMENSIONS.get(*place as usize);
        let dimension = dimension.ok_or_else(|| DecodeError::damaged("it names an unknown label"))?;
        dimensions.0.insert(*dimension, label);
    }
    Ok(dimensions)
}

impl StreamBody {
    fn of(stream: &StreamSummary) -> Self {
        Self {
            business_events: stream.business_events,
            batched_events: stream.batched_events,
            p50_gap: raw(stream.p50_gap),
            p95_gap: raw(stream.p95_gap),
            p99_gap: raw(stream.p99_gap),
            max_gap: raw(stream.max_gap),
            gaps_over_1s: stream.gaps_over_1s,
            done_received: stream.done_received,
            last_seq: stream.last_seq,
            missing_seq: stream.missing_seq,
            last_event: raw(stream.last_event),
            tokens_after_first: stream.tokens_after_first,
            buffered_events: stream.buffered_events,
            buffer_silence: raw(stream.buffer_silence),
            buffer_burst: stream.buffer_burst,
        }
    }

    fn into_summary(self) -> StreamSummary {
        StreamSummary {
            business_events: self.business_events,
            batched_events: self.batched_events,
            p50_gap: self.p50_gap.map(Nanos),
            p95_gap: self.p95_gap.map(Nanos),
            p99_gap: self.p99_gap.map(Nanos),
            max_gap: self.max_gap.map(Nanos),
            gaps_over_1s: self.gaps_over_1s,
            done_received: self.done_received,
            last_seq: self.last_seq,
            missing_seq: self.missing_seq,
            last_event: self.last_event.map(Nanos),
            tokens_after_first: self.tokens_after_first,
            buffered_events: self.buffered_events,
            buffer_silence: self.buffer_silence.map(Nanos),
            buffer_burst: self.buffer_burst,
        }
    }
}

impl MetricsBody {
    fn of(metrics: &ResponseMetrics) -> Self {
        Self {
            kind: metrics.kind as u32,
            total: raw(metrics.total),
            gateway: raw(metrics.gateway),
            queue: raw(metrics.queue),
            prefill: raw(metrics.prefill),
            decode: raw(metrics.decode),
            inference: raw(metrics.inference),
        }
    }

    fn into_metrics(self) -> Result<ResponseMetrics, DecodeError> {
        let kind = MetricsKind::from_number(self.kind);
        Ok(ResponseMetrics {
            kind: kind.ok_or_else(|| DecodeError::damaged("the kind of the answer's timing is unknown"))?,
            total: self.total.map(Nanos),
            gateway: self.gateway.map(Nanos),
            queue: self.queue.map(Nanos),
            prefill: self.prefill.map(Nanos),
            decode: self.decode.map(Nanos),
            inference: self.inference.map(Nanos),
        })
    }
}

#[cfg(test)]
#[path = "record_tests.rs"]
mod tests;
