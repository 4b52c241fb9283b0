//! OpenTelemetry's HTTP conventions in old and new names, and what ASGI servers add to them.

use super::{Reading, Role};
use crate::scalar;
use model::{Span, SpanKind};

const METHODS: &[&str] = &["http.request.method", "http.method"];
/// The scope of the spans that newer versions of FastAPI write themselves.
const FASTAPI: &str = "fastapi";
const FASTAPI_ENDPOINT: &str = "fastapi.endpoint";
const ASGI_TYPE: &str = "asgi.event.type";

/// The attributes by which its spans are recognised.
pub const KEYS: &[&str] = &["http.request.method", "http.method", ASGI_TYPE];

/// A message between an ASGI server and its application: each has a span of its own, one for every chunk of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AsgiMessage {
    /// A part of the answer.
    Send {
        /// Whether it carries a part of the body.
        body: bool,
    },
    /// A part of the request.
    Receive,
}

/// Whether a span is an ASGI message, and which.
pub fn asgi_message(span: &Span) -> Option<AsgiMessage> {
    if span.kind != SpanKind::Internal && span.kind != SpanKind::Unspecified {
        return None;
    }
    let kind = span.attributes.get(ASGI_TYPE).and_then(scalar::text);
    match kind.as_deref() {
        Some("http.response.body" | "websocket.send") => return Some(AsgiMessage::Send { body: true }),
        Some("http.response.start" | "websocket.accept") => return Some(AsgiMessage::Send { body: false }),
        Some("http.request" | "http.disconnect" | "websocket.receive" | "websocket.disconnect") => {
            return Some(AsgiMessage::Receive);
        }
        _ => {}
    }
    let ends = |suffix: &str| span.name.ends_with(suffix);
    if ends(" http send") || ends(" websocket send") {
        return Some(AsgiMessage::Send { body: false });
    }
    (ends(" http receive") || ends(" websocket receive")).then_some(AsgiMessage::Receive)
}

pub fn read(span: &Span) -> Option<Reading> {
    match asgi_message(span) {
        Some(AsgiMessage::Send { body }) => {
            return Some(Reading { role: Role::AsgiSend { body }, ..Reading::of("http", "asgi send") });
        }
        Some(AsgiMessage::Receive) => {
            return Some(Reading { role: Role::Noise, ..Reading::of("http", "asgi receive") });
        }
        None => {}
    }
    if span.scope.name == FASTAPI && span.name == FASTAPI_ENDPOINT {
        // It ends when the function returns, and a stream goes on after that.
        return Some(Reading { hands_on: true, ..Reading::of("http", FASTAPI_ENDPOINT) });
    }
    if !METHODS.iter().any(|key| span.attributes.has(key)) {
        return None;
    }
    let rule = match span.kind {
        SpanKind::Server => "server span",
        SpanKind::Client => "client span",
        _ => "inner span",
    };
    Some(Reading::of("http", rule))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::{self, sample};
    use model::Value;

    #[test]
    fn old_and_new_names_tell_method_and_status() {
        for (method, status) in
            [("http.method", "http.status_code"), ("http.request.method", "http.response.status_code")]
        {
            let attributes = [(method, sample::text("POST")), (status, sample::text("503"))];
            let reading = dialect::read(&sample::span("POST /v1", SpanKind::Server, 5, &attributes));
            assert_eq!((reading.dialect.as_ref(), reading.rule.as_ref()), ("http", "server span"));
            assert_eq!((reading.phase, reading.role, reading.http_status), (None, Role::Plain, Some(503)));
        }
        let number = [("http.method", sample::text("GET")), ("http.status_code", Value::Int(200))];
        assert_eq!(dialect::read(&sample::span("x", SpanKind::Client, 5, &number)).http_status, Some(200));
    }

    #[test]
    fn fastapis_endpoint_may_end_before_the_stream_that_it_returned() {
        let span = sample::span("fastapi.endpoint", SpanKind::Internal, 5, &[]);
        assert!(!dialect::read(&span).hands_on, "only FastAPI's own");
        let reading = dialect::read(&sample::with_scope(span, "fastapi"));
        assert_eq!((reading.dialect.as_ref(), reading.hands_on, reading.role), ("http", true, Role::Plain));
    }

    #[test]
    fn asgi_messages_are_known_by_type_and_by_name() {
        for (name, kind, role) in [
            ("POST /v1 http send", "http.response.body", Role::AsgiSend { body: true }),
            ("POST /v1 http send", "http.response.start", Role::AsgiSend { body: false }),
            ("POST /v1 http receive", "http.request", Role::Noise),
        ] {
            let attributes = [(ASGI_TYPE, sample::text(kind))];
            assert_eq!(dialect::read(&sample::span(name, SpanKind::Internal, 0, &attributes)).role, role);
        }
        let named = sample::span("POST /v1 http send", SpanKind::Internal, 0, &[]);
        assert_eq!(dialect::read(&named).role, Role::AsgiSend { body: false });
    }
}
