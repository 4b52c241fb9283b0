//! Ray Serve: the proxy's span, the router's, and the replica's, all of kind SERVER. The router's names itself as the
//! replica's parent, and may end as soon as a replica has been chosen; what waits inside a replica has no span.

use super::{NameRule, Reading, Role};
use model::Span;

const DIALECT: &str = "ray-serve";

const ROUTER: &str = "route_to_replica";

/// The first word: deployment and method follow it.
const FIRST_WORDS: &[NameRule] = &[
    NameRule::new("proxy_http_request", Role::Plain, None, None),
    NameRule::new("proxy_grpc_request", Role::Plain, None, None),
    NameRule::new(ROUTER, Role::Plain, None, None),
    NameRule::new("replica_handle_request", Role::Plain, None, None),
];

pub fn read(span: &Span) -> Option<Reading> {
    let first = span.name.split(' ').next()?;
    let reading = NameRule::find(FIRST_WORDS, first)?.reading(DIALECT);
    Some(Reading { hands_on: first == ROUTER, ..reading })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::{self, sample};
    use model::{SpanKind, Value};

    #[test]
    fn its_spans_hold_others_and_tell_streaming_and_request() {
        for name in ["proxy_http_request", "route_to_replica LLM chat", "replica_handle_request LLM chat"] {
            let attributes = [("is_streaming", Value::Bool(true)), ("request_id", sample::text("r-1"))];
            let reading = dialect::read(&sample::span(name, SpanKind::Server, 900, &attributes));
            assert_eq!((reading.dialect.as_ref(), reading.phase, reading.role), (DIALECT, None, Role::Plain), "{name}");
            assert_eq!(reading.hands_on, name.starts_with("route"), "{name}");
            assert_eq!((reading.streaming, reading.request_ids), (Some(true), vec!["r-1".to_owned()]), "{name}");
        }
    }
}
