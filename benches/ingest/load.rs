//! What is sent: OTLP requests of a gateway's spans, and the client records of the same requests.
//!
//! Encoded once; every use is a copy with fresh trace ids written over the old ones, so that making it costs next to
//! nothing beside what is measured.

use bytes::Bytes;
use chrono::{DateTime, SecondsFormat, Utc};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::span::{Event, SpanKind};
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use prost::Message;

/// Spans of one OTLP request: the default of OpenTelemetry's batch processors.
pub const SPANS_PER_BATCH: usize = 512;
/// Spans of one trace.
pub const SPANS_PER_TRACE: usize = 6;
/// Batches of one cycle: the fewest that hold whole traces, so that some traces come in two parts, as in life.
pub const BATCHES: usize = 3;
/// Traces, and client records, of one cycle.
pub const TRACES: usize = BATCHES * SPANS_PER_BATCH / SPANS_PER_TRACE;

/// Tells a trace id of the template from other bytes; the trace's number follows.
const MARK: [u8; 8] = *b"\xf1tr\x9cid\xe7\xb3";

type Id = [u8; 16];

/// A body and where trace ids stand in it.
struct Template {
    bytes: Vec<u8>,
    /// Place and number of each.
    ids: Vec<(usize, usize)>,
}

/// One cycle's bodies, to be sent again and again under fresh ids.
pub struct Load {
    batches: Vec<Template>,
    records: Template,
}

/// One cycle, ready to be sent.
pub struct Cycle {
    pub batches: Vec<Bytes>,
    pub records: Bytes,
    /// One of its traces, in hex.
    pub sample: String,
}

impl Load {
    /// Requests that start about now.
    pub fn new(now: DateTime<Utc>) -> Self {
        let requests: Vec<Timing> = (0..TRACES).map(|number| Timing::random(number, now)).collect();
        let spans: Vec<Span> = requests.iter().flat_map(spans).collect();
        let lines: Vec<String> = requests.iter().map(record).collect();
        Self {
            batches: spans.chunks(SPANS_PER_BATCH).map(|spans| Template::of_spans(spans.to_vec())).collect(),
            records: Template::of_records(lines.concat().into_bytes()),
        }
    }

    /// The same requests under ids of their own.
    pub fn fresh(&self) -> Cycle {
        let ids: Vec<Id> = (0..TRACES).map(|_| rand::random()).collect();
        let batches =
            self.batches.iter().map(|batch| batch.filled(|number, place| place.copy_from_slice(&ids[number])));
        let batches = batches.collect();
        let hex_ids: Vec<String> = ids.iter().map(hex::encode).collect();
        let records = self.records.filled(|number, place| place.copy_from_slice(hex_ids[number].as_bytes()));
        Cycle { batches, records, sample: hex_ids[0].clone() }
    }

    /// Bytes of all spans of a cycle, encoded.
    pub fn span_bytes(&self) -> usize {
        self.batches.iter().map(|batch| batch.bytes.len()).sum()
    }

    /// Bytes of all records of a cycle.
    pub fn record_bytes(&self) -> usize {
        self.records.bytes.len()
    }
}

impl Template {
    fn of_spans(spans: Vec<Span>) -> Self {
        let scope = InstrumentationScope { name: "bench.gateway".to_owned(), ..InstrumentationScope::default() };
        let scope_spans = vec![ScopeSpans { scope: Some(scope), spans, ..ScopeSpans::default() }];
        let attributes = vec![
            text("service.name", "gateway"),
            text("service.instance.id", "gateway-7c5d9-x2x4k"),
            text("telemetry.sdk.language", "python"),
        ];
        let resource = Some(Resource { attributes, ..Resource::default() });
        let resource_spans = vec![ResourceSpans { resource, scope_spans, ..ResourceSpans::default() }];
        let bytes = ExportTraceServiceRequest { resource_spans }.encode_to_vec();
        let ids = places(&bytes, &MARK, |place| read_number(&bytes[place + MARK.len()..place + size_of::<Id>()]));
        Self { bytes, ids }
    }

    fn of_records(bytes: Vec<u8>) -> Self {
        let ids = places(&bytes, hex::encode(MARK).as_bytes(), |place| {
            let id = hex::decode(&bytes[place..place + 2 * size_of::<Id>()]).expect("an id in hex");
            read_number(&id[MARK.len()..])
        });
        Self { bytes, ids }
    }

    fn filled(&self, fill: impl Fn(usize, &mut [u8])) -> Bytes {
        let mut bytes = self.bytes.clone();
        let width = if bytes.starts_with(b"{") { 2 * size_of::<Id>() } else { size_of::<Id>() };
        for (place, number) in &self.ids {
            fill(*number, &mut bytes[*place..*place + width]);
        }
        bytes.into()
    }
}

fn places(bytes: &[u8], mark: &[u8], number: impl Fn(usize) -> usize) -> Vec<(usize, usize)> {
    let found = bytes.windows(mark.len()).enumerate().filter(|(_, window)| *window == mark);
    found.map(|(place, _)| (place, number(place))).collect()
}

fn read_number(bytes: &[u8]) -> usize {
    usize::from_be_bytes(bytes.try_into().expect("eight bytes"))
}

fn marked_id(number: usize) -> Id {
    let mut id = [0; 16];
    id[..8].copy_from_slice(&MARK);
    id[8..].copy_from_slice(&number.to_be_bytes());
    id
}

/// How long the parts of one request take, in nanoseconds.
struct Timing {
    number: usize,
    started_at: DateTime<Utc>,
    envelope: u64,
    prepare: u64,
    queue: u64,
    generation: u64,
    first_token: u64,
    write: u64,
}

impl Timing {
    fn random(number: usize, now: DateTime<Utc>) -> Self {
        let millis = |from: u64, to: u64| rand::random_range(from * 1_000_000..to * 1_000_000);
        let generation = millis(300, 3_000);
        Self {
            number,
            started_at: now - chrono::Duration::milliseconds(5_000),
            envelope: millis(2, 60),
            prepare: millis(1, 20),
            queue: millis(1, 800),
            generation,
            first_token: generation / 8,
            write: millis(1, 5),
        }
    }

    fn server_total(&self) -> u64 {
        3 * self.prepare + self.queue + self.generation + self.write
    }
}

/// The project's own schema: entry, two steps of the gateway, queue, generation, writing.
fn spans(timing: &Timing) -> Vec<Span> {
    let start = timing.started_at.timestamp_nanos_opt().expect("a time of our days").unsigned_abs();
    let start = start + timing.envelope / 2;
    let queued = start + 2 * timing.prepare;
    let generated = queued + timing.queue;
    let written = generated + timing.generation;
    let first_token =
        Event { time_unix_nano: generated + timing.first_token, name: "first_token".to_owned(), ..Event::default() };
    let mut entry = span(timing, 1, "POST /v1/chat/completions", start, timing.server_total());
    entry.kind = SpanKind::Server as i32;
    entry.events = vec![first_token];
    vec![
        span(timing, 2, "auth.check", start, timing.prepare),
        span(timing, 3, "route.select", start + timing.prepare, timing.prepare),
        span(timing, 4, "inference.acquire_slot", queued, timing.queue),
        span(timing, 5, "inference.generate", generated, timing.generation),
        span(timing, 6, "response.write", written, timing.write),
        entry,
    ]
}

fn span(timing: &Timing, place: u8, name: &str, start: u64, length: u64) -> Span {
    let client = client_span(timing.number);
    let own = |place: u8| [&client[..7], &[place]].concat();
    let tokens = |key: &str, count: usize| KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue { value: Some(Value::IntValue(count as i64)) }),
        ..KeyValue::default()
    };
    Span {
        trace_id: marked_id(timing.number).to_vec(),
        span_id: own(place),
        parent_span_id: if place == 1 { client.to_vec() } else { own(1) },
        name: name.to_owned(),
        kind: SpanKind::Internal as i32,
        start_time_unix_nano: start,
        end_time_unix_nano: start + length,
        attributes: vec![
            text("llm.model", "m-7b"),
            text("llm.pool", "a100-east"),
            text("http.route", "/v1/chat/completions"),
            text("tenant.tier", "standard"),
            tokens("gen_ai.usage.input_tokens", 400 + timing.number),
            tokens("gen_ai.usage.output_tokens", 100 + timing.number),
        ],
        ..Span::default()
    }
}

fn client_span(number: usize) -> [u8; 8] {
    let mut id = [0xc1; 8];
    id[..4].copy_from_slice(&(number as u32).to_be_bytes());
    id
}

fn text(key: &str, value: &str) -> KeyValue {
    let value = Some(AnyValue { value: Some(Value::StringValue(value.to_owned())) });
    KeyValue { key: key.to_owned(), value, ..KeyValue::default() }
}

/// One line of NDJSON.
fn record(timing: &Timing) -> String {
    let millis = |nanos: u64| nanos as f64 / 1e6;
    let record = serde_json::json!({
        "trace_id": hex::encode(marked_id(timing.number)),
        "span_id": hex::encode(client_span(timing.number)),
        "started_at": timing.started_at.to_rfc3339_opts(SecondsFormat::Millis, true),
        "duration_ms": millis(timing.server_total() + timing.envelope),
        "setup": {"blocked_ms": 0.1, "dns_ms": 0, "connect_ms": 0.4, "tls_ms": 3.2},
        "headers_ms": millis(timing.prepare + timing.envelope),
        "ttft_ms": millis(2 * timing.prepare + timing.queue + timing.first_token + timing.envelope),
        "streaming": true,
        "status": 200,
        "output_tokens": 100 + timing.number,
        "scenario": "steady",
        "dimensions": {"model": "m-7b"},
    });
    format!("{record}\n")
}
