//! Who wrote a span, where its name is too common to tell: the scope, the service, or the module that Rust's `tracing`
//! bridge notes beside each span.

use crate::scalar;
use model::Span;

/// The attributes read here.
pub const KEYS: &[&str] = &["code.namespace", "code.module.name", "target"];

/// Whether one of the words stands in the name of the scope, the service or the module.
pub fn names(span: &Span, words: &[&str]) -> bool {
    let named = |name: &str| words.iter().any(|word| name.contains(word));
    named(&span.scope.name)
        || named(&span.resource.service())
        || KEYS.iter().any(|key| span.attributes.get(key).and_then(scalar::text).is_some_and(|told| named(&told)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::sample;
    use model::SpanKind;

    #[test]
    fn scope_and_module_tell() {
        let plain = sample::span("queued", SpanKind::Internal, 5, &[]);
        assert!(!names(&plain, &["text_generation"]));
        assert!(names(&sample::with_scope(plain, "text_generation_router"), &["text_generation"]));
        let module = [("code.namespace", sample::text("text_generation_router_v3::queue"))];
        assert!(names(&sample::span("queued", SpanKind::Internal, 5, &module), &["text_generation"]));
    }
}
