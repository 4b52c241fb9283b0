//! A file of spans, read as a server would read it.

use std::collections::{BTreeMap, BTreeSet};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans};
use serde::Serialize;
use serde_json::{Value as Json, json};

use crate::cli::import::otlp::{Message, Messages};
use api::{Explained, TraceAnswer};
use join::{Progress, TraceInputs, explain};
use model::reading::{Anchor, FirstTokenSource, Laid, Reading, Role, SubPhase};
use model::{Dimensions, Flags, Fragment, Nanos, ServerPhase, Span, TraceId, UnixNanos, Value};
use normalise::{self, Dialects, Limits};

/// What a file holds.
#[derive(Debug, Default, Serialize)]
pub struct File {
    /// Messages that were read.
    pub messages: u64,
    /// What could not be read, and why.
    pub refused: Vec<String>,
    /// Attributes that would be dropped unread, and on how many spans or resources.
    pub dropped_attributes: BTreeMap<String, u64>,
    /// The traces, in the order of the file.
    pub traces: Vec<Trace>,
}

#[derive(Debug, Serialize)]
pub struct Trace {
    pub trace_id: String,
    /// How its spans are read, in the order of the file.
    pub spans: Vec<SpanReading>,
    /// What the join makes of them without a client record; null where no span could be kept.
    pub answer: Option<TraceAnswer>,
}

/// How one span is read.
#[derive(Debug, Serialize)]
pub struct SpanReading {
    pub span_id: String,
    pub parent_span_id: Option<String>,
    pub name: String,
    pub kind: &'static str,
    pub service: String,
    pub scope: String,
    pub duration_ms: Option<f64>,
    /// Who decided; empty where no dialect knows the span.
    pub dialect: String,
    pub rule: String,
    /// What the span is, where that is special.
    pub role: Option<&'static str>,
    /// Whose time its interval is; null is transparent.
    pub phase: Option<ServerPhase>,
    pub sub: Option<&'static str>,
    /// Whether it may be a server's entry though its kind is not SERVER.
    pub root: bool,
    /// Durations that it tells of its inside.
    pub laid: Vec<LaidReading>,
    /// Phases that its system leaves out where they took no time.
    pub absent_is_zero: Vec<ServerPhase>,
    pub first_token_ms: Option<f64>,
    pub first_token_source: Option<&'static str>,
    pub input_tokens: Option<i64>,
    pub output_tokens: Option<i64>,
    pub streaming: Option<bool>,
    pub cold_start: Option<bool>,
    pub labels: Dimensions,
    pub request_ids: Vec<String>,
    pub flags: Flags,
    /// Attributes that are kept, as they would be stored.
    pub attributes: BTreeMap<String, Json>,
    /// Events that are kept, in milliseconds from the span's start.
    pub events: BTreeMap<String, f64>,
    /// Attributes that would be dropped unread.
    pub dropped: BTreeSet<String>,
}

/// A duration that a span tells of its inside.
#[derive(Debug, Serialize)]
pub struct LaidReading {
    pub phase: ServerPhase,
    pub sub: Option<&'static str>,
    pub duration_ms: f64,
    /// Where it is laid.
    pub anchor: &'static str,
    /// For a duration at an offset, from the span's start.
    pub offset_ms: Option<f64>,
}

/// What is gathered of a trace before it is joined.
#[derive(Default)]
struct Gathered {
    fragments: Vec<Fragment>,
    spans: Vec<SpanReading>,
}

impl File {
    /// Reads all messages.
    ///
    /// # Errors
    /// A failure of the input.
    pub fn read(mut messages: Messages, dialects: &Dialects) -> anyhow::Result<Self> {
        let mut file = Self::default();
        let mut traces: Vec<(TraceId, Gathered)> = Vec::new();
        while let Some(message) = messages.next()? {
            match message {
                Message::Spans(request) => {
                    file.messages += 1;
                    file.take(request, dialects, &mut traces);
                }
                Message::Bad(reason) => file.refused.push(reason),
                Message::CutOff => file.refused.push("the last message is cut off".to_owned()),
            }
        }
        file.traces = traces.into_iter().map(|(id, gathered)| gathered.joined(id, dialects)).collect();
        Ok(file)
    }

    /// Whether all of the file could be read.
    pub fn is_whole(&self) -> bool {
        self.refused.is_empty() && !self.traces.is_empty()
    }

    fn take(&mut self, request: ExportTraceServiceRequest, dialects: &Dialects, traces: &mut Vec<(TraceId, Gathered)>) {
        for lone in lone_spans(&request) {
            let dropped_here = keys(&lone);
            let normalised = normalise::fragments(lone, &Limits::default(), dialects);
            for (id, fragment) in normalised.fragments {
                for span in &fragment.spans {
                    let mut reading = SpanReading::of(span, dialects.read(span));
                    reading.dropped = dropped_here.iter().filter(|key| !span.attributes.has(key)).cloned().collect();
                    for key in &reading.dropped {
                        *self.dropped_attributes.entry(key.clone()).or_default() += 1;
                    }
                    gathered(traces, id).spans.push(reading);
                }
            }
        }
        let normalised = normalise::fragments(request, &Limits::default(), dialects);
        if normalised.rejected_spans() > 0 {
            self.refused.push(normalised.message);
        }
        for (id, fragment) in normalised.fragments {
            gathered(traces, id).fragments.push(fragment);
        }
    }
}

fn gathered(traces: &mut Vec<(TraceId, Gathered)>, id: TraceId) -> &mut Gathered {
    let at = traces.iter().position(|(known, _)| *known == id).unwrap_or_else(|| {
        traces.push((id, Gathered::default()));
        traces.len() - 1
    });
    &mut traces[at].1
}

/// Each span of a request as a request of its own.
fn lone_spans(request: &ExportTraceServiceRequest) -> Vec<ExportTraceServiceRequest> {
    let mut lone = Vec::new();
    for resource in &request.resource_spans {
        for scope in &resource.scope_spans {
            for span in &scope.spans {
                let scope_spans =
                    vec![ScopeSpans { scope: scope.scope.clone(), spans: vec![span.clone()], ..Default::default() }];
                let resource_spans =
                    vec![ResourceSpans { resource: resource.resource.clone(), scope_spans, ..Default::default() }];
                lone.push(ExportTraceServiceRequest { resource_spans });
            }
        }
    }
    lone
}

/// The keys of the attributes of all spans.
fn keys(request: &ExportTraceServiceRequest) -> BTreeSet<String> {
    let scopes = request.resource_spans.iter().flat_map(|resource| &resource.scope_spans);
    let spans = scopes.flat_map(|scope| &scope.spans);
    spans.flat_map(|span| &span.attributes).map(|attribute| attribute.key.clone()).collect()
}

impl Gathered {
    /// Joined as a trace whose client record never came.
    fn joined(self, trace_id: TraceId, dialects: &Dialects) -> Trace {
        let starts = self.fragments.iter().flat_map(|fragment| &fragment.spans).map(|span| span.start);
        let first_arrival = starts.min().unwrap_or(UnixNanos(0));
        let nothing = TraceInputs::empty(trace_id, first_arrival, Limits::default().spans_per_trace);
        let inputs = TraceInputs { fragments: self.fragments, ..nothing };
        let joined = explain(inputs, Progress::FINAL, &|span| dialects.read(span)).shown();
        let explained: Vec<Explained> = joined.into_iter().map(|joined| Explained::of(joined, 0)).collect();
        Trace { trace_id: trace_id.to_string(), spans: self.spans, answer: TraceAnswer::of(&explained) }
    }
}

impl SpanReading {
    fn of(span: &Span, reading: Reading) -> Self {
        let first = reading.first_token;
        Self {
            span_id: span.span_id.to_string(),
            parent_span_id: span.parent.map(|id| id.to_string()),
            name: span.name.clone(),
            kind: span.kind.name(),
            service: span.resource.service().into_owned(),
            scope: span.scope.name.clone(),
            duration_ms: span.interval().map(|at| at.length().as_millis()),
            dialect: reading.dialect.into_owned(),
            rule: reading.rule.into_owned(),
            role: role_name(reading.role),
            phase: reading.phase,
            sub: reading.sub.map(sub_name),
            root: reading.root,
            laid: reading.laid.iter().map(LaidReading::of).collect(),
            absent_is_zero: reading.absent_is_zero,
            first_token_ms: first.map(|token| token.offset.as_millis()),
            first_token_source: first.map(|token| source_name(token.source)),
            input_tokens: reading.input_tokens,
            output_tokens: reading.output_tokens,
            streaming: reading.streaming,
            cold_start: reading.cold_start,
            labels: reading.dimensions,
            request_ids: reading.request_ids,
            flags: reading.flags,
            attributes: span.attributes.iter().map(|(key, value)| (key.to_owned(), as_json(value))).collect(),
            events: span.events.iter().map(|event| (event.name.clone(), (event.at - span.start).as_millis())).collect(),
            dropped: BTreeSet::new(),
        }
    }
}

impl LaidReading {
    fn of(laid: &Laid) -> Self {
        let (anchor, offset) = match laid.anchor {
            Anchor::Start => ("start", None),
            Anchor::End => ("end", None),
            Anchor::At(offset) => ("at", Some(offset)),
            Anchor::UntilChild(offset) => ("until_child", Some(offset)),
        };
        Self {
            phase: laid.phase,
            sub: laid.sub.map(sub_name),
            duration_ms: laid.length.as_millis(),
            anchor,
            offset_ms: offset.map(Nanos::as_millis),
        }
    }
}

const fn role_name(role: Role) -> Option<&'static str> {
    match role {
        Role::Plain => None,
        Role::Engine => Some("engine"),
        Role::EngineStage => Some("engine_stage"),
        Role::ProxyServer => Some("proxy_server"),
        Role::ProxyAttempt => Some("proxy_attempt"),
        Role::Observer => Some("observer"),
        Role::AsgiSend { .. } => Some("asgi_send"),
        Role::Noise => Some("noise"),
    }
}

const fn sub_name(sub: SubPhase) -> &'static str {
    match sub {
        SubPhase::Prefill => "prefill",
        SubPhase::Decode => "decode",
    }
}

const fn source_name(source: FirstTokenSource) -> &'static str {
    match source {
        FirstTokenSource::Event => "event",
        FirstTokenSource::Attribute => "attribute",
        FirstTokenSource::PrefillEnd => "prefill_end",
        FirstTokenSource::FirstChunk => "first_chunk",
        FirstTokenSource::ChunkEvent => "chunk_event",
        FirstTokenSource::BodySend => "body_send",
    }
}

fn as_json(value: &Value) -> Json {
    match value {
        Value::Str(text) => json!(text),
        Value::Bool(bool) => json!(bool),
        Value::Int(int) => json!(int),
        Value::Double(double) => json!(double),
        Value::List(list) => json!(list),
    }
}

#[cfg(test)]
mod tests;
