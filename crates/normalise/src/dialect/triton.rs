//! NVIDIA Triton in its OpenTelemetry mode: `InferRequest` > a span named after the model > `compute`, all of kind
//! SERVER. There is no queue span: the queue lasts from the event `QUEUE_START` on the model's span until `compute`
//! begins. A request that was cancelled in the queue has no `compute`, so its queue lasts until `REQUEST_END`. An
//! ensemble's span holds those of its models. A model whose code calls other models has their spans beside its
//! `compute`, which meanwhile does nothing but wait for them.
//!
//! Checked against Triton's tracer (scope `triton-server`) and the tree and events that its own trace tests demand.

use super::{Anchor, Laid, Reading, Role, origin};
use crate::scalar;
use model::{Dimension, Nanos, ServerPhase, Span, UnixNanos};

const DIALECT: &str = "triton";

const MODEL: &str = "triton.model_name";

/// The attributes it reads.
pub const KEYS: &[&str] = &[MODEL];

const QUEUE_START: &str = "QUEUE_START";
const REQUEST_START: &str = "REQUEST_START";
const REQUEST_END: &str = "REQUEST_END";
const COMPUTE_START: &str = "COMPUTE_START";

pub const EVENTS: &[&str] = &[QUEUE_START, REQUEST_START, REQUEST_END, COMPUTE_START];

const ROOT: &str = "InferRequest";
const COMPUTE: &str = "compute";

pub fn read(span: &Span) -> Option<Reading> {
    if span.name == ROOT {
        return Some(Reading { role: Role::Engine, root: true, ..Reading::of(DIALECT, ROOT) });
    }
    if span.name == COMPUTE && (at(span, COMPUTE_START).is_some() || in_triton(span)) {
        return Some(Reading {
            role: Role::EngineStage,
            phase: Some(ServerPhase::Generation),
            holds_siblings: true,
            ..Reading::of(DIALECT, COMPUTE)
        });
    }
    let events = at(span, REQUEST_START).is_some() && at(span, QUEUE_START).is_some();
    (events || span.attributes.has(MODEL)).then(|| model(span))
}

fn in_triton(span: &Span) -> bool {
    origin::names(span, &["triton-server", "triton-inference-server"])
}

fn model(span: &Span) -> Reading {
    let mut reading = Reading { role: Role::EngineStage, ..Reading::of(DIALECT, "model span") };
    reading.dimensions.set(Dimension::Model, span.attributes.get(MODEL).and_then(scalar::text));
    reading.laid.extend(queue(span));
    reading
}

/// From `QUEUE_START` to `COMPUTE_START` where the model's span has both, else at most to `REQUEST_END`: the join ends
/// it where a span inside begins.
fn queue(span: &Span) -> Option<Laid> {
    let start = at(span, QUEUE_START)?;
    let from = start - span.start;
    let end = at(span, COMPUTE_START).or_else(|| at(span, REQUEST_END)).or(span.end)?;
    let length = end - start;
    if from < Nanos::ZERO || length < Nanos::ZERO {
        return None;
    }
    Some(Laid { phase: ServerPhase::GpuQueue, sub: None, length, anchor: Anchor::UntilChild(from) })
}

fn at(span: &Span, name: &str) -> Option<UnixNanos> {
    span.events.iter().find(|event| event.name == name).map(|event| event.at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::{self, sample};
    use model::SpanKind;

    fn events(mut span: Span, events: &[(&str, i64)]) -> Span {
        for (name, millis) in events {
            span = sample::with_event(span, name, *millis);
        }
        span
    }

    fn model_span() -> Span {
        sample::span("m-7b", SpanKind::Server, 900, &[(MODEL, sample::text("m-7b"))])
    }

    fn queue(from: i64, length: i64) -> Laid {
        let [from, length] = [from, length].map(|millis| Nanos(millis * 1_000_000));
        Laid { phase: ServerPhase::GpuQueue, sub: None, length, anchor: Anchor::UntilChild(from) }
    }

    #[test]
    fn the_queue_lies_between_its_event_and_what_follows() {
        let told = events(model_span(), &[(REQUEST_START, 0), (QUEUE_START, 5), (REQUEST_END, 890)]);
        let reading = dialect::read(&told);
        assert_eq!((reading.dialect.as_ref(), reading.role, reading.phase), (DIALECT, Role::EngineStage, None));
        assert_eq!((reading.laid, reading.dimensions.get(Dimension::Model)), (vec![queue(5, 885)], Some("m-7b")));
        let with_compute = events(told, &[(COMPUTE_START, 205)]);
        assert_eq!(dialect::read(&with_compute).laid, vec![queue(5, 200)]);
    }

    #[test]
    fn without_its_event_there_is_no_queue_to_tell() {
        assert_eq!(dialect::read(&model_span()).laid, Vec::new());
        let early = events(model_span(), &[(REQUEST_START, 0), (QUEUE_START, -5), (REQUEST_END, 890)]);
        assert_eq!(dialect::read(&early).laid, Vec::new());
    }

    #[test]
    fn the_root_is_an_engines_and_compute_generates() {
        let root = dialect::read(&sample::span(ROOT, SpanKind::Server, 900, &[]));
        assert_eq!((root.role, root.phase), (Role::Engine, None));
        let compute = sample::span(COMPUTE, SpanKind::Server, 900, &[]);
        assert_eq!(dialect::read(&compute).role, Role::Plain, "a common word");
        let marked = dialect::read(&events(compute, &[(COMPUTE_START, 0)]));
        assert_eq!((marked.role, marked.phase), (Role::EngineStage, Some(ServerPhase::Generation)));
        assert!(marked.holds_siblings);
    }
}
