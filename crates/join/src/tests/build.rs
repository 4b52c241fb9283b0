//! Spans and records in milliseconds, and a dialect of one attribute a fact.

use std::borrow::Cow;
use std::sync::Arc;

use crate::{Explained, Progress, TraceInputs, explain};
use model::ReceivedRecord;
use model::reading::{Anchor, ClientEnd, FirstToken, FirstTokenSource, Laid, Reading, Role, SubPhase};
use model::{
    Attributes, ClientRecord, Fragment, Nanos, Request, Resource, ResultClass, Scope, ServerPhase, Span, SpanId,
    SpanKind, TraceId, UnixNanos, Value,
};

pub const SETTLED: Progress = Progress::FINAL;

pub fn ms(value: i64) -> Nanos {
    Nanos(value * 1_000_000)
}

pub fn id(number: u64) -> SpanId {
    SpanId::from_bytes(number.to_be_bytes()).expect("not zero")
}

pub fn trace() -> TraceId {
    TraceId::from_bytes([7; 16]).expect("not zero")
}

/// An INTERNAL span of service `gw`, `start` and `length` in milliseconds.
pub fn span(number: u64, parent: u64, start: i64, length: i64) -> Span {
    Span {
        span_id: id(number),
        parent: (parent != 0).then(|| id(parent)),
        name: format!("span {number}"),
        kind: SpanKind::Internal,
        start: UnixNanos(0) + ms(start),
        end: Some(UnixNanos(0) + ms(start + length)),
        attributes: Attributes::default(),
        events: Vec::new(),
        error: false,
        repaired: false,
        scope: Arc::new(Scope::default()),
        resource: resource("gw"),
    }
}

fn resource(service: &str) -> Arc<Resource> {
    let name = (Cow::Borrowed("service.name"), Value::Str(service.to_owned()));
    let instance = (Cow::Borrowed("service.instance.id"), Value::Str("1".to_owned()));
    Arc::new(Resource { attributes: Attributes::new(vec![name, instance]), digest: 0 })
}

pub trait Build: Sized {
    fn kind(self, kind: SpanKind) -> Self;
    fn of(self, service: &str) -> Self;
    fn with(self, key: &'static str, value: Value) -> Self;

    fn server(self) -> Self {
        self.kind(SpanKind::Server)
    }
    fn client(self) -> Self {
        self.kind(SpanKind::Client)
    }
    fn phase(self, phase: &str) -> Self {
        self.with("phase", Value::Str(phase.to_owned()))
    }
    fn role(self, role: &str) -> Self {
        self.with("role", Value::Str(role.to_owned()))
    }
    fn number(self, key: &'static str, value: i64) -> Self {
        self.with(key, Value::Int(value))
    }
}

impl Build for Span {
    fn kind(mut self, kind: SpanKind) -> Self {
        self.kind = kind;
        self
    }
    fn of(mut self, service: &str) -> Self {
        self.resource = resource(service);
        self
    }
    fn with(mut self, key: &'static str, value: Value) -> Self {
        let mut pairs: Vec<(Cow<'static, str>, Value)> =
            self.attributes.iter().map(|(key, value)| (Cow::Owned(key.to_owned()), value.clone())).collect();
        pairs.push((Cow::Borrowed(key), value));
        self.attributes = Attributes::new(pairs);
        self
    }
}

/// Reads the attributes that [`Build`] writes: `phase`, `role`, `absent_is_zero`, and milliseconds of `decode`, `prefill`, `queue`,
/// `placed`, `until_child`, `prefix`, `first_token` and `first_token_event`.
pub fn read(span: &Span) -> Reading {
    let text = |key| match span.attributes.get(key) {
        Some(Value::Str(text)) => Some(text.as_str()),
        _ => None,
    };
    let length = |key| match span.attributes.get(key) {
        Some(Value::Int(value)) => Some(ms(*value)),
        _ => None,
    };
    let laid = [
        ("prefix", ServerPhase::Gateway, None, Anchor::Start),
        ("decode", ServerPhase::Generation, Some(SubPhase::Decode), Anchor::End),
        ("prefill", ServerPhase::Generation, Some(SubPhase::Prefill), Anchor::End),
        ("queue", ServerPhase::GpuQueue, None, Anchor::End),
        ("placed", ServerPhase::GpuQueue, None, Anchor::At(Nanos(50_000))),
        ("until_child", ServerPhase::GpuQueue, None, Anchor::UntilChild(Nanos(20_000))),
    ];
    let event = length("first_token_event").map(|offset| FirstToken { offset, source: FirstTokenSource::Event });
    let attribute = length("first_token").map(|offset| FirstToken { offset, source: FirstTokenSource::Attribute });
    let phase = |key| text(key).and_then(|name| ServerPhase::ALL.into_iter().find(|phase| phase.name() == name));
    Reading {
        dialect: "test".into(),
        phase: phase("phase"),
        absent_is_zero: phase("absent_is_zero").into_iter().collect(),
        role: match text("role") {
            Some("engine") => Role::Engine,
            Some("stage") => Role::EngineStage,
            Some("observer") => Role::Observer,
            Some("proxy") => Role::ProxyServer,
            Some("attempt") => Role::ProxyAttempt,
            Some("noise") => Role::Noise,
            Some("body") => Role::AsgiSend { body: true },
            _ => Role::Plain,
        },
        laid: laid
            .into_iter()
            .filter_map(|(key, phase, sub, anchor)| Some(Laid { phase, sub, length: length(key)?, anchor }))
            .collect(),
        first_token: event.or(attribute),
        request_ids: text("request_id").map(str::to_owned).into_iter().collect(),
        writes_response: text("role") == Some("writer"),
        client_end: if text("role") == Some("whole") { ClientEnd::Body } else { ClientEnd::Headers },
        root: text("role") == Some("engine"),
        holds_siblings: text("role") == Some("holder"),
        hands_on: text("role") == Some("router"),
        ..Reading::default()
    }
}

/// A record of `duration` milliseconds.
pub fn record(duration: i64) -> ClientRecord {
    ClientRecord {
        duration: Some(ms(duration)),
        status: Some(200),
        ..ClientRecord::unmeasured(trace(), ResultClass::Ok)
    }
}

pub fn inputs(spans: Vec<Span>, records: Vec<ClientRecord>) -> TraceInputs {
    let arrive = |record| ReceivedRecord { record, received_at: UnixNanos(5) };
    TraceInputs {
        fragments: vec![Fragment { spans, dropped: 0 }],
        records: records.into_iter().map(arrive).collect(),
        ..TraceInputs::empty(trace(), UnixNanos(5), 10_000)
    }
}

pub fn join(spans: Vec<Span>, records: Vec<ClientRecord>) -> Explained {
    explain(inputs(spans, records), SETTLED, &read)
}

/// The only request of a trace with one record.
pub fn join_one(spans: Vec<Span>, record: ClientRecord) -> Request {
    let mut explained = join(spans, vec![record]);
    assert_eq!(explained.requests.len(), 1);
    explained.requests.remove(0).request
}

/// Gateway, queue, generation, provider, upstream envelope, unattributed in milliseconds; −1 is unknown.
pub fn phases(request: &Request) -> [i64; 6] {
    let phases = request.phases.expect("a server side");
    let whole = |nanos: Nanos| {
        assert_eq!(nanos.0 % 1_000_000, 0, "not whole milliseconds");
        nanos.0 / 1_000_000
    };
    let known = |phase: Option<Nanos>| phase.map_or(-1, whole);
    [
        known(phases.gateway),
        known(phases.gpu_queue),
        known(phases.generation),
        whole(phases.provider),
        whole(phases.upstream_envelope),
        whole(phases.unattributed),
    ]
}
