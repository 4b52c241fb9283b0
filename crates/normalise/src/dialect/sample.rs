//! Spans for tests.

use std::borrow::Cow;
use std::sync::Arc;

use model::{Attributes, Nanos, Resource, Scope, Span, SpanEvent, SpanId, SpanKind, UnixNanos, Value};

/// A span that starts at second 1,000 and lasts so many milliseconds.
pub fn span(name: &str, kind: SpanKind, millis: i64, attributes: &[(&'static str, Value)]) -> Span {
    let start = UnixNanos(1_000_000_000_000);
    Span {
        span_id: SpanId::from_bytes([1; 8]).expect("not zero"),
        parent: None,
        name: name.to_owned(),
        kind,
        start,
        end: Some(start + Nanos(millis * 1_000_000)),
        attributes: Attributes::new(
            attributes.iter().map(|(key, value)| (Cow::Borrowed(*key), value.clone())).collect(),
        ),
        events: Vec::new(),
        error: false,
        repaired: false,
        scope: Arc::new(Scope::default()),
        resource: Arc::new(Resource::default()),
    }
}

/// The same span with an event so many milliseconds after its start.
pub fn with_event(mut span: Span, name: &str, millis: i64) -> Span {
    let at = span.start + Nanos(millis * 1_000_000);
    span.events.push(SpanEvent { name: name.to_owned(), at, attributes: Attributes::default() });
    span
}

/// The same span made by another scope.
pub fn with_scope(mut span: Span, name: &str) -> Span {
    span.scope = Arc::new(Scope { name: name.to_owned() });
    span
}

pub fn text(text: &str) -> Value {
    Value::Str(text.to_owned())
}
