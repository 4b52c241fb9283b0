//! One span from the wire to the model.

use std::borrow::Cow;
use std::sync::Arc;

use opentelemetry_proto::tonic::common::v1::any_value::Value as WireValue;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::span::Event as WireEvent;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{Span as WireSpan, Status};

use super::allow::AllowList;
use super::refusal::SpanError;
use super::text;
use model::{Attributes, Resource, Scope, Span, SpanEvent, SpanId, SpanKind, TraceId, UnixNanos, Value};

/// Most spans have no more attributes that are kept.
const EXPECTED: usize = 8;

/// How many members are kept of a list.
const MAX_LIST: usize = 16;

/// Attributes on an allow-list.
pub struct Trimmed {
    /// Those kept.
    pub attributes: Attributes,
    /// How many were not.
    pub dropped: u64,
    /// Whether one of them held U+0000.
    pub repaired: bool,
}

/// Keeps what the allow-list names; the rest is dropped unread.
pub fn trim(wire: Vec<KeyValue>, allowed: impl Fn(&str) -> Option<Cow<'static, str>>) -> Trimmed {
    let mut kept = Vec::with_capacity(wire.len().min(EXPECTED));
    let mut dropped = 0;
    let mut repaired = false;
    for pair in wire {
        let value = allowed(&pair.key).and_then(|key| Some((key, value(pair.value?, &mut repaired)?)));
        match value {
            Some((key, value)) => kept.push((key, value)),
            None => dropped += 1,
        }
    }
    Trimmed { attributes: Attributes::new(kept), dropped, repaired }
}

/// Texts are bounded and scrubbed; bytes and maps have no reader and are dropped.
fn value(wire: AnyValue, repaired: &mut bool) -> Option<Value> {
    Some(match wire.value? {
        WireValue::StringValue(raw) => Value::Str(clean(&raw, repaired)),
        WireValue::BoolValue(bool) => Value::Bool(bool),
        WireValue::IntValue(int) => Value::Int(int),
        WireValue::DoubleValue(double) => Value::Double(double),
        WireValue::ArrayValue(array) => {
            let texts = array.values.into_iter().filter_map(|member| member_text(member, repaired));
            Value::List(texts.take(MAX_LIST).collect())
        }
        WireValue::KvlistValue(_) | WireValue::BytesValue(_) | WireValue::StringValueStrindex(_) => return None,
    })
}

fn member_text(member: AnyValue, repaired: &mut bool) -> Option<String> {
    Some(match member.value? {
        WireValue::StringValue(raw) => clean(&raw, repaired),
        WireValue::BoolValue(bool) => bool.to_string(),
        WireValue::IntValue(int) => int.to_string(),
        WireValue::DoubleValue(double) => double.to_string(),
        _ => return None,
    })
}

fn clean(raw: &str, repaired: &mut bool) -> String {
    let clean = text::value(raw);
    *repaired |= clean.repaired;
    clean.text
}

/// What the spans of one scope share.
pub struct Origin {
    /// What made them.
    pub scope: Arc<Scope>,
    /// Who emitted them.
    pub resource: Arc<Resource>,
    /// Whether a text of the two held U+0000.
    pub repaired: bool,
}

/// One span, and how many of its attributes were dropped.
pub fn span(wire: WireSpan, identity: &Identity, origin: &Origin, allowed: &AllowList) -> (Span, u64) {
    let name = text::name(&wire.name);
    let Trimmed { attributes, dropped, repaired } = trim(wire.attributes, |key| allowed.span_key(key));
    let span = Span {
        span_id: identity.span_id,
        parent: identity.parent,
        name: name.text,
        kind: SpanKind::from_number(wire.kind),
        start: identity.start,
        end: identity.end,
        attributes,
        events: events(wire.events, allowed),
        error: is_error(wire.status.as_ref()),
        repaired: repaired || name.repaired || origin.repaired,
        scope: Arc::clone(&origin.scope),
        resource: Arc::clone(&origin.resource),
    };
    (span, dropped)
}

fn is_error(status: Option<&Status>) -> bool {
    status.is_some_and(|status| status.code == StatusCode::Error as i32)
}

/// What a span must have to be kept.
pub struct Identity {
    /// The trace it belongs to.
    pub trace_id: TraceId,
    span_id: SpanId,
    parent: Option<SpanId>,
    start: UnixNanos,
    end: Option<UnixNanos>,
}

impl Identity {
    /// Reads it.
    ///
    /// # Errors
    /// Ids of a wrong length or all zero (a parent may be all zero), and times that do not fit an `i64` of nanoseconds.
    pub fn read(wire: &WireSpan) -> Result<Self, SpanError> {
        Ok(Self {
            trace_id: TraceId::from_slice(&wire.trace_id).map_err(SpanError::TraceId)?,
            span_id: SpanId::from_slice(&wire.span_id).map_err(SpanError::SpanId)?,
            parent: parent(&wire.parent_span_id)?,
            start: time("start_time_unix_nano", wire.start_time_unix_nano)?,
            end: match wire.end_time_unix_nano {
                0 => None,
                end => Some(time("end_time_unix_nano", end)?),
            },
        })
    }
}

/// Empty and all-zero both mean that there is no parent.
fn parent(bytes: &[u8]) -> Result<Option<SpanId>, SpanError> {
    if bytes.is_empty() || bytes == [0; 8] {
        return Ok(None);
    }
    SpanId::from_slice(bytes).map(Some).map_err(SpanError::Parent)
}

fn time(field: &'static str, nanos: u64) -> Result<UnixNanos, SpanError> {
    i64::try_from(nanos).map(UnixNanos).map_err(|_| SpanError::Time { field, nanos })
}

/// Known events by time. Of each name the earliest is kept: chunk events come once a chunk, and only the first tells.
fn events(wire: Vec<WireEvent>, allowed: &AllowList) -> Vec<SpanEvent> {
    let mut kept: Vec<SpanEvent> = Vec::new();
    for event in wire {
        if !allowed.keeps_event(&event.name) {
            continue;
        }
        let Ok(at) = i64::try_from(event.time_unix_nano).map(UnixNanos) else { continue };
        match kept.iter_mut().find(|known| known.name == event.name) {
            Some(known) => known.at = known.at.min(at),
            None => kept.push(SpanEvent { name: event.name, at, attributes: Attributes::default() }),
        }
    }
    kept.sort_by(|a, b| a.at.cmp(&b.at).then_with(|| a.name.cmp(&b.name)));
    kept
}
