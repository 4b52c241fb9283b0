//! Spans in batches of a size that a server takes, however they were grouped in the file.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use prost::Message;

/// Most spans of one upload; an exporter's usual batch.
const BATCH_SPANS: usize = 512;
/// Most bytes of one upload, but for a single span that is larger.
const BATCH_BYTES: usize = 2 * 1024 * 1024;

/// How many spans a request holds.
pub fn span_count(request: &ExportTraceServiceRequest) -> u64 {
    let scopes = request.resource_spans.iter().flat_map(|resource| &resource.scope_spans);
    scopes.map(|scope| scope.spans.len() as u64).sum()
}

/// The batch that is being filled.
#[derive(Debug, Default)]
pub struct Pack {
    batch: ExportTraceServiceRequest,
    spans: usize,
    bytes: usize,
}

impl Pack {
    /// Adds a request's spans, and sends each batch that is full.
    ///
    /// # Errors
    /// The failure of `send`.
    pub fn add<E>(
        &mut self,
        request: ExportTraceServiceRequest,
        send: &mut impl FnMut(ExportTraceServiceRequest) -> Result<(), E>,
    ) -> Result<(), E> {
        for mut resource in request.resource_spans {
            for mut scope in std::mem::take(&mut resource.scope_spans) {
                let spans = std::mem::take(&mut scope.spans);
                self.add_scope(&resource, &scope, spans, send)?;
            }
        }
        Ok(())
    }

    /// Adds spans of one resource and scope, which are repeated in each batch that the spans fall into.
    fn add_scope<E>(
        &mut self,
        resource: &ResourceSpans,
        scope: &ScopeSpans,
        spans: Vec<Span>,
        send: &mut impl FnMut(ExportTraceServiceRequest) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut held = Vec::new();
        for span in spans {
            let bytes = span.encoded_len();
            if self.spans > 0 && (self.spans >= BATCH_SPANS || self.bytes + bytes > BATCH_BYTES) {
                self.hold(resource, scope, std::mem::take(&mut held));
                self.finish(send)?;
            }
            self.spans += 1;
            self.bytes += bytes;
            held.push(span);
        }
        self.hold(resource, scope, held);
        Ok(())
    }

    fn hold(&mut self, resource: &ResourceSpans, scope: &ScopeSpans, spans: Vec<Span>) {
        if spans.is_empty() {
            return;
        }
        self.bytes += resource.encoded_len() + scope.encoded_len();
        let scope_spans = vec![ScopeSpans { spans, ..scope.clone() }];
        self.batch.resource_spans.push(ResourceSpans { scope_spans, ..resource.clone() });
    }

    /// Sends what is left.
    ///
    /// # Errors
    /// The failure of `send`.
    pub fn finish<E>(&mut self, send: &mut impl FnMut(ExportTraceServiceRequest) -> Result<(), E>) -> Result<(), E> {
        let full = std::mem::take(self);
        if full.spans == 0 { Ok(()) } else { send(full.batch) }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn request(spans: usize, name: &str) -> ExportTraceServiceRequest {
        let span = Span { name: name.into(), ..Span::default() };
        let scope = ScopeSpans { spans: vec![span; spans], schema_url: "scope".into(), ..ScopeSpans::default() };
        let resource = ResourceSpans { scope_spans: vec![scope], schema_url: "resource".into(), ..Default::default() };
        ExportTraceServiceRequest { resource_spans: vec![resource] }
    }

    fn pack(requests: Vec<ExportTraceServiceRequest>) -> Vec<ExportTraceServiceRequest> {
        let mut batches = Vec::new();
        let mut pack = Pack::default();
        let mut send = |batch| {
            batches.push(batch);
            Ok::<(), Infallible>(())
        };
        for request in requests {
            pack.add(request, &mut send).expect("infallible");
        }
        pack.finish(&mut send).expect("infallible");
        batches
    }

    #[test]
    fn batches_are_full_whatever_the_grouping() {
        let sizes = |batches: &[ExportTraceServiceRequest]| batches.iter().map(span_count).collect::<Vec<_>>();
        assert_eq!(sizes(&pack(vec![request(1_200, "a")])), [512, 512, 176]);
        assert_eq!(sizes(&pack((0..600).map(|_| request(1, "a")).collect())), [512, 88]);
        assert_eq!(sizes(&pack(vec![request(3, &"x".repeat(BATCH_BYTES))])), [1, 1, 1]);
        assert_eq!(sizes(&pack(vec![request(0, "a")])), [] as [u64; 0]);
    }

    #[test]
    fn every_batch_keeps_its_resource_and_scope() {
        for batch in pack(vec![request(600, "a")]) {
            let resource = &batch.resource_spans[0];
            assert_eq!(
                (resource.schema_url.as_str(), resource.scope_spans[0].schema_url.as_str()),
                ("resource", "scope")
            );
        }
    }
}
