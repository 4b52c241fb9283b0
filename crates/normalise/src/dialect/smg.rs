//! SGLang's model gateway: a root of kind INTERNAL for the HTTP request, and one around the dispatch over gRPC, which
//! may end before the stream does. It hands its context on, so its engine's spans lie inside.
//!
//! Checked against its source: scope and service `smg`, the names, `module=smg`. Older versions do not take the
//! caller's trace id over.

use super::{NameRule, Reading, Role};
use crate::scalar;
use model::Span;

const DIALECT: &str = "smg";

const MODULE: &str = "module";
const STATUS: &str = "status_code";

/// The attributes it reads.
pub const KEYS: &[&str] = &[MODULE, STATUS];

const ROOT: &str = "http_request";

const DISPATCHES: &[NameRule] =
    &[NameRule::new("grpc_generate", Role::Plain, None, None), NameRule::new("grpc_execute", Role::Plain, None, None)];

pub fn read(span: &Span) -> Option<Reading> {
    let module = span.attributes.get(MODULE).and_then(scalar::text);
    let here = span.scope.name == DIALECT
        || span.resource.service() == DIALECT
        || module.is_some_and(|module| module == DIALECT);
    if !here {
        return None;
    }
    if span.name == ROOT {
        let http_status = span.attributes.get(STATUS).and_then(scalar::count);
        return Some(Reading { root: true, http_status, ..Reading::of(DIALECT, ROOT) });
    }
    NameRule::find(DISPATCHES, &span.name).map(|rule| rule.reading(DIALECT))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::{self, sample};
    use model::SpanKind;

    #[test]
    fn the_root_is_known_by_its_module_and_dispatch_by_scope() {
        let attributes = [(MODULE, sample::text("smg")), (STATUS, sample::text("503"))];
        let root = dialect::read(&sample::span(ROOT, SpanKind::Internal, 900, &attributes));
        assert_eq!((root.dialect.as_ref(), root.root, root.http_status), (DIALECT, true, Some(503)));
        assert!(!dialect::read(&sample::span(ROOT, SpanKind::Internal, 900, &[])).root);
        let dispatch = sample::with_scope(sample::span("grpc_execute", SpanKind::Internal, 5, &[]), DIALECT);
        assert_eq!((dialect::read(&dispatch).phase, dialect::read(&dispatch).dialect.as_ref()), (None, DIALECT));
    }
}
