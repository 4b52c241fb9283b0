//! Hugging Face's Text Generation Inference: the handler's span is the server's root though its kind is INTERNAL. It
//! tells its inside as durations in the form that Rust prints, but only where the answer came to its end: of a
//! cancelled one the stages tell, `queued` under `schedule`, and one `infer` for prefill and one more for each step of
//! decode.

use super::durations::EngineDurations;
use super::{NameRule, Reading, Role, origin};
use crate::scalar;
use model::{Nanos, ServerPhase, Span, Value};

const DIALECT: &str = "tgi";

const QUEUE: &str = "queue_time";
const INFERENCE: &str = "inference_time";
const VALIDATION: &str = "validation_time";
const TOTAL: &str = "total_time";

/// The attributes it reads.
pub const KEYS: &[&str] = &[QUEUE, INFERENCE, VALIDATION, TOTAL];

/// Handlers, and whether their answer is streamed where the name tells.
const HANDLERS: &[(&str, Option<bool>)] = &[
    ("generate", Some(false)),
    ("generate_stream", Some(true)),
    ("chat_completions", None),
    ("completions", None),
    ("compat_generate", None),
    ("vertex_compatibility", None),
    ("sagemaker_compatibility", None),
];

const STAGES: &[NameRule] = &[
    NameRule::new("schedule", Role::EngineStage, None, None),
    NameRule::new("queued", Role::EngineStage, Some(ServerPhase::GpuQueue), None),
    NameRule::new("infer", Role::EngineStage, Some(ServerPhase::Generation), None),
    // Admitted, and stalled while another batch prefills: it has its slot, so it is generation.
    NameRule::new("waiting", Role::EngineStage, Some(ServerPhase::Generation), None),
];

pub fn read(span: &Span) -> Option<Reading> {
    if let Some((name, streaming)) = HANDLERS.iter().find(|(name, _)| *name == span.name) {
        return (in_tgi(span) || tells_durations(span)).then(|| handler(span, name, *streaming));
    }
    NameRule::find(STAGES, &span.name).filter(|_| in_tgi(span)).map(|rule| rule.reading(DIALECT))
}

fn handler(span: &Span, name: &'static str, streaming: Option<bool>) -> Reading {
    let mut reading = Reading { role: Role::Engine, root: true, streaming, ..Reading::of(DIALECT, name) };
    let told = |key: &str| -> Option<Nanos> { span.attributes.get(key).and_then(scalar::seconds) };
    let durations = EngineDurations {
        queue: told(QUEUE),
        inference: told(INFERENCE),
        whole: told(TOTAL),
        witness: told(VALIDATION),
        ..EngineDurations::default()
    };
    durations.lay(span, &mut reading);
    reading
}

/// Its short name stands in other words too, so a service must be called just that.
fn in_tgi(span: &Span) -> bool {
    origin::names(span, &["text-generation-inference", "text_generation"]) || span.resource.service() == DIALECT
}

/// Handler names are common words, so without TGI's scope the form of the durations must tell.
fn tells_durations(span: &Span) -> bool {
    [QUEUE, INFERENCE].into_iter().any(|key| match span.attributes.get(key) {
        Some(Value::Str(text)) => scalar::duration_text(text).is_some(),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::{self, sample};
    use model::SpanKind;

    #[test]
    fn a_handler_lays_inference_and_before_it_the_queue() {
        let attributes = [
            (TOTAL, sample::text("1.595s")),
            (VALIDATION, sample::text("800\u{b5}s")),
            (QUEUE, sample::text("212.5ms")),
            (INFERENCE, sample::text("1.35s")),
        ];
        let reading = dialect::read(&sample::span("chat_completions", SpanKind::Internal, 1600, &attributes));
        assert_eq!((reading.role, reading.root), (Role::Engine, true));
        let laid: Vec<_> = reading.laid.iter().map(|laid| (laid.phase, laid.length)).collect();
        let expected =
            vec![(ServerPhase::Generation, Nanos(1_350_000_000)), (ServerPhase::GpuQueue, Nanos(212_500_000))];
        assert_eq!(laid, expected);
    }

    #[test]
    fn a_cancelled_answer_has_no_durations() {
        let span = sample::span("generate_stream", SpanKind::Internal, 300, &[]);
        let reading = dialect::read(&sample::with_scope(span, "text_generation_router"));
        assert_eq!((reading.role, reading.root, reading.laid.len()), (Role::Engine, true, 0));
        assert_eq!(reading.streaming, Some(true));
    }

    #[test]
    fn common_names_need_the_scope() {
        for (name, phase) in [("queued", ServerPhase::GpuQueue), ("infer", ServerPhase::Generation)] {
            let span = sample::span(name, SpanKind::Internal, 5, &[]);
            assert_eq!(dialect::read(&span).phase, None);
            assert_eq!(dialect::read(&sample::with_scope(span, "text_generation_router_v3")).phase, Some(phase));
        }
        let module = [("code.namespace", sample::text("text_generation_router_v3::queue"))];
        let queued = sample::span("queued", SpanKind::Internal, 5, &module);
        assert_eq!(dialect::read(&queued).phase, Some(ServerPhase::GpuQueue));
        let foreign = sample::span("generate", SpanKind::Internal, 5, &[]);
        assert_eq!(dialect::read(&foreign).role, Role::Plain);
    }
}
