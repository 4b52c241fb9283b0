//! One OTLP request, split into what belongs to each trace.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::Span as WireSpan;

use super::allow::AllowList;
use super::refusal::{Refusals, SpanError};
use super::rules::Dialects;
use super::span::{Identity, Origin};
use super::{fold, resource, span, text};
use model::{Fragment, Scope, Span, TraceId};

/// The setting that names [`Limits::spans_per_trace`].
pub const SPAN_LIMIT_SETTING: &str = "--max-spans-per-trace";

/// What is kept of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub spans_per_trace: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { spans_per_trace: 10_000 }
    }
}

/// What became of one OTLP request.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Normalised {
    /// The spans kept, by trace, in the order in which the traces first appear.
    pub fragments: Vec<(TraceId, Fragment)>,
    /// Spans refused for good, by reason.
    pub rejected: BTreeMap<&'static str, u64>,
    /// What was refused and how to mend it, in English; empty where nothing was.
    pub message: String,
    /// Attributes that are not on the allow-list and were dropped unread.
    pub dropped_attributes: u64,
    /// Spans that tell nothing beyond those kept (an ASGI server's message per chunk).
    pub folded: u64,
}

impl Normalised {
    /// How many spans were refused.
    pub fn rejected_spans(&self) -> u64 {
        self.rejected.values().sum()
    }
}

/// Splits a request into fragments of traces, with what `dialects` read. A span that cannot be kept is refused alone; its
/// batch mates are kept.
pub fn fragments(request: ExportTraceServiceRequest, limits: &Limits, dialects: &Dialects) -> Normalised {
    let allowed = dialects.allowed();
    let mut split = Split::default();
    for group in request.resource_spans {
        let (resource, dropped, repaired) = resource::resource(group.resource, allowed);
        split.dropped_attributes += dropped;
        let resource = Arc::new(resource);
        for spans in group.scope_spans {
            let scope = text::name(spans.scope.as_ref().map_or("", |scope| &scope.name));
            let origin = Origin {
                scope: Arc::new(Scope { name: scope.text }),
                resource: Arc::clone(&resource),
                repaired: repaired || scope.repaired,
            };
            for wire in spans.spans {
                split.take(wire, &origin, allowed);
            }
        }
    }
    split.finish(limits)
}

/// The request as far as it has been read.
#[derive(Default)]
struct Split {
    places: HashMap<TraceId, usize>,
    fragments: Vec<(TraceId, Fragment)>,
    refusals: Refusals,
    dropped_attributes: u64,
}

impl Split {
    fn take(&mut self, wire: WireSpan, origin: &Origin, allowed: &AllowList) {
        let identity = match Identity::read(&wire) {
            Ok(identity) => identity,
            Err(error) => {
                let example = format!("span \"{}\"", text::name(&wire.name).text);
                return self.refusals.add(&error, 1, &example);
            }
        };
        let (span, dropped) = span::span(wire, &identity, origin, allowed);
        self.dropped_attributes += dropped;
        self.push(identity.trace_id, span);
    }

    fn push(&mut self, trace_id: TraceId, span: Span) {
        let place = *self.places.entry(trace_id).or_insert_with(|| {
            self.fragments.push((trace_id, Fragment::default()));
            self.fragments.len() - 1
        });
        self.fragments[place].1.spans.push(span);
    }

    fn finish(mut self, limits: &Limits) -> Normalised {
        let mut folded = 0;
        for (trace_id, fragment) in &mut self.fragments {
            folded += fold::messages(&mut fragment.spans);
            let dropped = fold::longest(&mut fragment.spans, limits.spans_per_trace);
            if dropped > 0 {
                fragment.dropped = u32::try_from(dropped).unwrap_or(u32::MAX);
                let error = SpanError::TraceTooLarge { limit: limits.spans_per_trace, setting: SPAN_LIMIT_SETTING };
                self.refusals.add(&error, dropped as u64, &format!("trace {trace_id}"));
            }
        }
        let (rejected, message) = self.refusals.finish();
        let fragments = self.fragments;
        Normalised { fragments, rejected, message, dropped_attributes: self.dropped_attributes, folded }
    }
}

#[cfg(test)]
mod tests;
