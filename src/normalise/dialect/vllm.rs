//! vLLM and engines that took over its keys (TensorRT-LLM): one span a request, of kind SERVER, made when the request
//! ends. Its inside is told as attributes in seconds; newer versions add spans for the stages.

use super::durations::EngineDurations;
use super::{FirstToken, FirstTokenSource, NameRule, Reading, Role, SubPhase};
use crate::model::{Nanos, ServerPhase, Span};
use crate::normalise::scalar;

const DIALECT: &str = "vllm";

const QUEUE: &str = "gen_ai.latency.time_in_queue";
const PREFILL: &str = "gen_ai.latency.time_in_model_prefill";
const DECODE: &str = "gen_ai.latency.time_in_model_decode";
const INFERENCE: &str = "gen_ai.latency.time_in_model_inference";
const TTFT: &str = "gen_ai.latency.time_to_first_token";
const E2E: &str = "gen_ai.latency.e2e";

/// The attributes it reads.
pub const KEYS: &[&str] = &[QUEUE, PREFILL, DECODE, INFERENCE, TTFT, E2E];

const REQUESTS: &[&str] = &["llm_request", "omni_request"];

const STAGES: &[NameRule] = &[
    NameRule::new("vllm_queue", Role::EngineStage, Some(ServerPhase::GpuQueue), None),
    NameRule::new("vllm_prefill", Role::EngineStage, Some(ServerPhase::Generation), Some(SubPhase::Prefill)),
    NameRule::new("vllm_decode", Role::EngineStage, Some(ServerPhase::Generation), Some(SubPhase::Decode)),
    NameRule::new("vllm_async_kv_transfer", Role::EngineStage, None, None),
    NameRule::new("vllm_step_execution", Role::EngineStage, None, None),
];

/// Reads one span.
pub fn read(span: &Span) -> Option<Reading> {
    if let Some(rule) = NameRule::find(STAGES, &span.name) {
        return Some(stage(rule, span));
    }
    let named = REQUESTS.contains(&span.name.as_str());
    let told = [QUEUE, PREFILL, DECODE, INFERENCE].into_iter().any(|key| span.attributes.has(key));
    if !named && !told {
        return None;
    }
    let mut reading = Reading { role: Role::Engine, root: true, ..Reading::of(DIALECT, "request span") };
    durations(span).lay(span, &mut reading);
    Some(reading)
}

fn stage(rule: &NameRule, span: &Span) -> Reading {
    let mut reading = rule.reading(DIALECT);
    if rule.sub == Some(SubPhase::Prefill) {
        reading.first_token = prefill_end(span);
    }
    reading
}

/// The first token comes where prefill ends.
pub fn prefill_end(span: &Span) -> Option<FirstToken> {
    let offset = span.interval()?.length();
    Some(FirstToken { offset, source: FirstTokenSource::PrefillEnd })
}

fn durations(span: &Span) -> EngineDurations {
    let seconds = |key: &str| -> Option<Nanos> { span.attributes.get(key).and_then(scalar::seconds) };
    EngineDurations {
        queue: seconds(QUEUE),
        prefill: seconds(PREFILL),
        decode: seconds(DECODE),
        inference: seconds(INFERENCE),
        witnesses: [seconds(TTFT), seconds(E2E)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Flag, SpanKind, Value};
    use crate::normalise::dialect::{self, Anchor, Laid, sample};

    fn request(attributes: &[(&'static str, Value)]) -> Reading {
        dialect::read(&sample::span("llm_request", SpanKind::Server, 1450, attributes))
    }

    fn laid(reading: &Reading) -> Vec<(ServerPhase, Option<SubPhase>, i64)> {
        reading.laid.iter().map(|laid| (laid.phase, laid.sub, laid.length.0 / 1_000_000)).collect()
    }

    #[test]
    fn lays_decode_prefill_and_queue_from_the_end() {
        let reading = request(&[
            (QUEUE, Value::Double(0.25)),
            (PREFILL, Value::Double(0.15)),
            (DECODE, sample::text("1.05")),
            (INFERENCE, Value::Double(1.2)),
            (TTFT, Value::Double(0.4)),
        ]);
        assert_eq!(reading.role, Role::Engine);
        assert_eq!(reading.phase, None);
        let generation = ServerPhase::Generation;
        let expected = vec![
            (generation, Some(SubPhase::Decode), 1050),
            (generation, Some(SubPhase::Prefill), 150),
            (ServerPhase::GpuQueue, None, 250),
        ];
        assert_eq!(laid(&reading), expected);
        let first = FirstToken { offset: Nanos(400_000_000), source: FirstTokenSource::Attribute };
        assert_eq!(reading.first_token, Some(first));
    }

    #[test]
    fn inference_alone_is_generation_and_minus_one_is_missing() {
        let reading = request(&[(QUEUE, Value::Double(-1.0)), (INFERENCE, Value::Double(1.2))]);
        let only =
            Laid { phase: ServerPhase::Generation, sub: None, length: Nanos(1_200_000_000), anchor: Anchor::End };
        assert_eq!(reading.laid, vec![only]);
        let half = request(&[(DECODE, Value::Double(1.0)), (INFERENCE, Value::Double(1.2))]);
        assert_eq!(laid(&half)[1], (ServerPhase::Generation, Some(SubPhase::Prefill), 200));
    }

    #[test]
    fn milliseconds_taken_for_seconds_are_flagged_and_not_used() {
        let reading = request(&[(QUEUE, Value::Double(250.0)), (INFERENCE, Value::Double(1200.0))]);
        assert!(reading.laid.is_empty());
        assert!(reading.flags.has(Flag::UnitSuspect));
        let slightly_long = request(&[(INFERENCE, Value::Double(1.6))]);
        assert_eq!(slightly_long.laid.len(), 1);
        assert!(!slightly_long.flags.has(Flag::UnitSuspect));
    }

    #[test]
    fn newer_stages_are_spans() {
        let queue = dialect::read(&sample::span("vllm_queue", SpanKind::Internal, 10, &[]));
        assert_eq!((queue.role, queue.phase), (Role::EngineStage, Some(ServerPhase::GpuQueue)));
        let prefill = dialect::read(&sample::span("vllm_prefill", SpanKind::Internal, 10, &[]));
        assert_eq!(prefill.sub, Some(SubPhase::Prefill));
        assert_eq!(prefill.first_token.map(|token| token.offset), Some(Nanos(10_000_000)));
    }
}
