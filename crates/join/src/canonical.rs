//! The canonical encoding of a trimmed span, which decides between two copies that nothing else tells apart
//! (design, section 3, rule 1).
//!
//! It has OTLP's field numbers, written out here since the generated messages bring a gRPC stack with them.

use model::{Attributes, Span, SpanEvent, UnixNanos, Value};
use prost::{Message, Oneof};

/// `STATUS_CODE_ERROR` of OTLP.
const STATUS_ERROR: i32 = 2;

#[derive(Clone, PartialEq, Message)]
struct CanonicalSpan {
    #[prost(bytes = "vec", tag = "2")]
    span_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "4")]
    parent_span_id: Vec<u8>,
    #[prost(string, tag = "5")]
    name: String,
    #[prost(int32, tag = "6")]
    kind: i32,
    #[prost(fixed64, tag = "7")]
    start_time_unix_nano: u64,
    #[prost(fixed64, tag = "8")]
    end_time_unix_nano: u64,
    #[prost(message, repeated, tag = "9")]
    attributes: Vec<KeyValue>,
    #[prost(message, repeated, tag = "11")]
    events: Vec<Event>,
    #[prost(message, optional, tag = "15")]
    status: Option<Status>,
}

#[derive(Clone, PartialEq, Message)]
struct Event {
    #[prost(fixed64, tag = "1")]
    time_unix_nano: u64,
    #[prost(string, tag = "2")]
    name: String,
    #[prost(message, repeated, tag = "3")]
    attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct Status {
    #[prost(int32, tag = "3")]
    code: i32,
}

#[derive(Clone, PartialEq, Message)]
struct KeyValue {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(message, optional, tag = "2")]
    value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct AnyValue {
    #[prost(oneof = "AnyKind", tags = "1, 2, 3, 4, 5")]
    kind: Option<AnyKind>,
}

#[derive(Clone, PartialEq, Oneof)]
enum AnyKind {
    #[prost(string, tag = "1")]
    String(String),
    #[prost(bool, tag = "2")]
    Bool(bool),
    #[prost(int64, tag = "3")]
    Int(i64),
    #[prost(double, tag = "4")]
    Double(f64),
    #[prost(message, tag = "5")]
    Array(Array),
}

#[derive(Clone, PartialEq, Message)]
struct Array {
    #[prost(message, repeated, tag = "1")]
    values: Vec<AnyValue>,
}

/// The span as an OTLP message: fields in the order of the proto, attributes sorted by key; then the scope's name and
/// the resource's digest, so that equal bytes mean equal spans.
pub fn canonical(span: &Span) -> Vec<u8> {
    let message = CanonicalSpan {
        span_id: span.span_id.as_bytes().to_vec(),
        parent_span_id: span.parent.map(|parent| parent.as_bytes().to_vec()).unwrap_or_default(),
        name: span.name.clone(),
        kind: span.kind as i32,
        start_time_unix_nano: unsigned(span.start),
        end_time_unix_nano: span.end.map_or(0, unsigned),
        attributes: attributes(&span.attributes),
        events: span.events.iter().map(event).collect(),
        status: span.error.then_some(Status { code: STATUS_ERROR }),
    };
    let mut bytes = message.encode_to_vec();
    bytes.extend_from_slice(span.scope.name.as_bytes());
    bytes.extend_from_slice(&span.resource.digest.to_be_bytes());
    bytes
}

/// Times come from unsigned numbers that fit, so nothing is lost.
fn unsigned(at: UnixNanos) -> u64 {
    at.0.max(0).unsigned_abs()
}

fn event(event: &SpanEvent) -> Event {
    Event { time_unix_nano: unsigned(event.at), name: event.name.clone(), attributes: attributes(&event.attributes) }
}

fn attributes(attributes: &Attributes) -> Vec<KeyValue> {
    let pair = |(key, value): (&str, &Value)| KeyValue { key: key.to_owned(), value: Some(any(kind(value))) };
    attributes.iter().map(pair).collect()
}

fn any(kind: AnyKind) -> AnyValue {
    AnyValue { kind: Some(kind) }
}

fn kind(value: &Value) -> AnyKind {
    match value {
        Value::Str(text) => AnyKind::String(text.clone()),
        Value::Bool(bool) => AnyKind::Bool(*bool),
        Value::Int(int) => AnyKind::Int(*int),
        Value::Double(double) => AnyKind::Double(*double),
        Value::List(members) => {
            let member = |text: &String| any(AnyKind::String(text.clone()));
            AnyKind::Array(Array { values: members.iter().map(member).collect() })
        }
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;
    use crate::tests::build;
    use model::SpanKind;

    fn span(attributes: &[(&'static str, Value)]) -> Span {
        let pairs = attributes.iter().map(|(key, value)| (Cow::Borrowed(*key), value.clone())).collect();
        Span { attributes: Attributes::new(pairs), ..build::span(1, 9, 0, 5) }
    }

    #[test]
    fn the_order_of_attributes_makes_no_difference() {
        let one = span(&[("x", Value::Double(f64::NAN)), ("b", Value::Int(1))]);
        let two = span(&[("b", Value::Int(1)), ("x", Value::Double(f64::NAN))]);
        assert_eq!(canonical(&one), canonical(&two));
    }

    #[test]
    fn the_bytes_are_those_of_an_otlp_span() {
        let base = Span {
            parent: None,
            name: "a".to_owned(),
            start: UnixNanos(1),
            end: None,
            ..span(&[("k", Value::Int(7))])
        };
        let digest = base.resource.digest.to_be_bytes();
        let mut expected = vec![0x12, 8];
        expected.extend_from_slice(base.span_id.as_bytes());
        expected.extend_from_slice(&[0x2a, 1, b'a', 0x30, base.kind as u8, 0x39, 1, 0, 0, 0, 0, 0, 0, 0]);
        expected.extend_from_slice(&[0x4a, 7, 0x0a, 1, b'k', 0x12, 2, 0x18, 7]);
        expected.extend_from_slice(base.scope.name.as_bytes());
        expected.extend_from_slice(&digest);
        assert_eq!(canonical(&base), expected);
    }

    #[test]
    fn every_difference_shows() {
        let base = span(&[]);
        let mut others = vec![Span { error: true, ..base.clone() }];
        others.push(Span { name: "b".to_owned(), ..base.clone() });
        others.push(Span { end: None, ..base.clone() });
        others.push(Span { kind: SpanKind::Server, ..base.clone() });
        for other in others {
            assert_ne!(canonical(&base), canonical(&other));
        }
    }
}
