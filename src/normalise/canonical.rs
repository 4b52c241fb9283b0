//! The canonical encoding of a trimmed span, which decides between two copies that nothing else tells apart.

use opentelemetry_proto::tonic::common::v1::any_value::Value as WireValue;
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::span::Event as WireEvent;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{Span as WireSpan, Status};
use prost::Message;

use crate::model::{Attributes, Span, SpanEvent, UnixNanos, Value};

/// The span as an OTLP message: fields in the order of the proto, attributes sorted by key; then the scope's name and
/// the resource's digest, so that equal bytes mean equal spans.
pub fn canonical(span: &Span) -> Vec<u8> {
    let wire = WireSpan {
        span_id: span.span_id.as_bytes().to_vec(),
        parent_span_id: span.parent.map(|parent| parent.as_bytes().to_vec()).unwrap_or_default(),
        name: span.name.clone(),
        kind: span.kind as i32,
        start_time_unix_nano: unsigned(span.start),
        end_time_unix_nano: span.end.map_or(0, unsigned),
        attributes: attributes(&span.attributes),
        events: span.events.iter().map(event).collect(),
        status: span.error.then(|| Status { code: StatusCode::Error as i32, ..Default::default() }),
        ..Default::default()
    };
    let mut bytes = wire.encode_to_vec();
    bytes.extend_from_slice(span.scope.name.as_bytes());
    bytes.extend_from_slice(&span.resource.digest.to_be_bytes());
    bytes
}

/// Times come from unsigned numbers that fit, so nothing is lost.
fn unsigned(at: UnixNanos) -> u64 {
    at.0.max(0).unsigned_abs()
}

fn event(event: &SpanEvent) -> WireEvent {
    WireEvent {
        time_unix_nano: unsigned(event.at),
        name: event.name.clone(),
        attributes: attributes(&event.attributes),
        dropped_attributes_count: 0,
    }
}

fn attributes(attributes: &Attributes) -> Vec<KeyValue> {
    let pair = |(key, value): (&str, &Value)| KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue { value: Some(wire(value)) }),
        ..Default::default()
    };
    attributes.iter().map(pair).collect()
}

fn wire(value: &Value) -> WireValue {
    match value {
        Value::Str(text) => WireValue::StringValue(text.clone()),
        Value::Bool(bool) => WireValue::BoolValue(*bool),
        Value::Int(int) => WireValue::IntValue(*int),
        Value::Double(double) => WireValue::DoubleValue(*double),
        Value::List(members) => {
            let member = |text: &String| AnyValue { value: Some(WireValue::StringValue(text.clone())) };
            WireValue::ArrayValue(ArrayValue { values: members.iter().map(member).collect() })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::SpanKind;
    use crate::normalise::dialect::sample;

    #[test]
    fn equal_spans_have_equal_bytes() {
        let one = sample::span("a", SpanKind::Internal, 5, &[("x", Value::Double(f64::NAN)), ("b", Value::Int(1))]);
        let two = sample::span("a", SpanKind::Internal, 5, &[("b", Value::Int(1)), ("x", Value::Double(f64::NAN))]);
        assert_eq!(canonical(&one), canonical(&two));
    }

    #[test]
    fn every_difference_shows() {
        let base = sample::span("a", SpanKind::Internal, 5, &[]);
        let mut others = vec![Span { error: true, ..base.clone() }];
        others.push(Span { name: "b".to_owned(), ..base.clone() });
        others.push(Span { end: None, ..base.clone() });
        others.push(Span { kind: SpanKind::Server, ..base.clone() });
        for other in others {
            assert_ne!(canonical(&base), canonical(&other));
        }
    }
}
