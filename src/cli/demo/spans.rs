//! A simulated call as the OTLP spans that its servers would export.

use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::span::{Event, SpanKind};
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, Status};

use super::gateway::{Call, Ending, Step, StepKind};
use super::{Identity, labels};
use model::{Nanos, UnixNanos};

/// The engine's clock is wrong by this much, which must not matter.
const ENGINE_CLOCK: Nanos = Nanos(-3 * 3_600_000_000_000);

/// A process that exports spans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Process {
    Gateway,
    /// The engine behind HTTP.
    Engine,
}

/// The spans of one call, each with the process that exports it.
pub fn spans(call: &Call, identity: &Identity, start: UnixNanos) -> Vec<(Process, Span)> {
    let received = start + call.at + call.way_there;
    let mut spans = vec![(Process::Gateway, entry(call, identity, received))];
    for step in &call.steps {
        let span = step_span(step, identity, received);
        if let StepKind::CallEngine { hop, queue, prefill } = step.kind {
            let inside = EngineTimes { hop, queue, prefill };
            spans.push((Process::Engine, engine_span(call, step, inside, identity, &span)));
        }
        spans.push((Process::Gateway, span));
    }
    spans
}

fn entry(call: &Call, identity: &Identity, received: UnixNanos) -> Span {
    let mut attributes = vec![
        text("http.request.method", "POST"),
        text("http.route", "/v1/chat/completions"),
        number("http.response.status_code", labels::status(call)),
        text("gen_ai.request.model", labels::model(call)),
    ];
    if call.ending == Ending::Answered {
        attributes.push(number("gen_ai.usage.input_tokens", call.input_tokens));
        attributes.push(number("gen_ai.usage.output_tokens", call.output_tokens));
    }
    let mut span = span(identity, "POST /v1/chat/completions", SpanKind::Server, received, call.server_total);
    span.span_id = identity.entry.to_vec();
    span.parent_span_id = identity.client.to_vec();
    span.attributes = attributes;
    span.events = call.first_token.map(|first| event("first_token", received + first)).into_iter().collect();
    if matches!(call.ending, Ending::Crashed | Ending::Failed | Ending::GivenUp) {
        span.status = Some(Status { code: StatusCode::Error.into(), message: String::new() });
    }
    span
}

fn step_span(step: &Step, identity: &Identity, received: UnixNanos) -> Span {
    let (name, kind) = match step.kind {
        StepKind::Auth => ("auth.check", SpanKind::Internal),
        StepKind::Prepare => ("request.prepare", SpanKind::Internal),
        StepKind::Route => ("route.select", SpanKind::Internal),
        StepKind::Queue => ("inference.acquire_slot", SpanKind::Internal),
        StepKind::Generate => ("inference.generate", SpanKind::Internal),
        StepKind::CallEngine { .. } => ("POST", SpanKind::Client),
        StepKind::CallProvider => ("provider.request", SpanKind::Client),
        StepKind::Write => ("response.write", SpanKind::Internal),
    };
    let mut span = span(identity, name, kind, received + step.start, step.length);
    span.parent_span_id = identity.entry.to_vec();
    if matches!(step.kind, StepKind::CallEngine { .. }) {
        span.attributes = vec![text("http.request.method", "POST"), text("server.address", "engine.internal")];
    }
    span
}

/// Where the engine's time went.
struct EngineTimes {
    hop: Nanos,
    queue: Nanos,
    prefill: Nanos,
}

/// vLLM's one span a request, by its own clock, with its inside told in seconds.
fn engine_span(call: &Call, step: &Step, inside: EngineTimes, identity: &Identity, caller: &Span) -> Span {
    let length = step.length - inside.hop;
    let inference = length - inside.queue;
    let called = UnixNanos(i64::try_from(caller.start_time_unix_nano).unwrap_or(i64::MAX));
    let arrived = called + Nanos(inside.hop.0 / 2) + ENGINE_CLOCK;
    let mut span = span(identity, "llm_request", SpanKind::Server, arrived, length);
    span.parent_span_id.clone_from(&caller.span_id);
    span.attributes = vec![
        seconds("gen_ai.latency.time_in_queue", inside.queue),
        seconds("gen_ai.latency.time_in_model_prefill", inside.prefill),
        seconds("gen_ai.latency.time_in_model_decode", inference - inside.prefill),
        seconds("gen_ai.latency.time_in_model_inference", inference),
        seconds("gen_ai.latency.time_to_first_token", inside.queue + inside.prefill),
        seconds("gen_ai.latency.e2e", length),
        number("gen_ai.usage.prompt_tokens", call.input_tokens),
        number("gen_ai.usage.completion_tokens", call.output_tokens),
    ];
    span
}

fn span(identity: &Identity, name: &str, kind: SpanKind, start: UnixNanos, length: Nanos) -> Span {
    // Readings before 1970 do not occur here: the play is set in the last minutes.
    let reading = |at: UnixNanos| u64::try_from(at.0).unwrap_or(0);
    Span {
        trace_id: identity.trace.as_bytes().to_vec(),
        span_id: rand::random::<[u8; 8]>().to_vec(),
        name: name.to_owned(),
        kind: kind.into(),
        start_time_unix_nano: reading(start),
        end_time_unix_nano: reading(start + length),
        ..Span::default()
    }
}

fn event(name: &str, at: UnixNanos) -> Event {
    Event { time_unix_nano: u64::try_from(at.0).unwrap_or(0), name: name.to_owned(), ..Event::default() }
}

fn attribute(key: &str, value: Value) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
}

fn text(key: &str, value: &str) -> KeyValue {
    attribute(key, Value::StringValue(value.to_owned()))
}

fn number(key: &str, value: i64) -> KeyValue {
    attribute(key, Value::IntValue(value))
}

fn seconds(key: &str, value: Nanos) -> KeyValue {
    attribute(key, Value::DoubleValue(value.as_secs()))
}

/// Spans of one process as it exports them.
pub fn exported(process: Process, spans: Vec<Span>) -> ResourceSpans {
    let (service, instance, scope) = match process {
        Process::Gateway => ("demo-gateway", "gateway-1", "demo.gateway"),
        Process::Engine => ("demo-engine", "engine-1", "vllm.llm_engine"),
    };
    let resource = Resource {
        attributes: vec![text("service.name", service), text("service.instance.id", instance)],
        ..Resource::default()
    };
    let scope = InstrumentationScope { name: scope.to_owned(), ..InstrumentationScope::default() };
    let scope_spans = vec![ScopeSpans { scope: Some(scope), spans, schema_url: String::new() }];
    ResourceSpans { resource: Some(resource), scope_spans, schema_url: String::new() }
}
