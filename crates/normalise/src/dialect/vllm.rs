//! vLLM: one span a request, of kind SERVER, made when the request ends. Its inside is told as attributes in seconds;
//! newer versions add spans for the stages, and those go before the attributes. Spans of its start-up are noise.
//!
//! Version 0 tells queue, first token and whole off one clock, and beside them overlapping times of its scheduler and
//! model that are summed over steps (`time_in_model_forward` once in another unit): from those nothing is taken. The
//! names of the stage spans and of vLLM-Omni's (`omni_request` around one span for each of its engines) are from open
//! proposals. Datadog's integration writes `vllm.request` with seconds (checked in its source).

use super::durations::{EngineDurations, part};
use super::{Anchor, FirstToken, FirstTokenSource, Laid, NameRule, Reading, Role, SubPhase};
use crate::scalar;
use crate::text::REDACTED;
use model::{Nanos, ServerPhase, Span, SpanKind};

const DIALECT: &str = "vllm";

/// Each with Datadog's spelling.
const QUEUE: [&str; 2] = ["gen_ai.latency.time_in_queue", "vllm.latency.queue"];
const PREFILL: [&str; 2] = ["gen_ai.latency.time_in_model_prefill", "vllm.latency.prefill"];
const DECODE: [&str; 2] = ["gen_ai.latency.time_in_model_decode", "vllm.latency.decode"];
const INFERENCE: [&str; 2] = ["gen_ai.latency.time_in_model_inference", "vllm.latency.inference"];
const TTFT: [&str; 2] = ["gen_ai.latency.time_to_first_token", "vllm.latency.ttft"];
const E2E: &str = "gen_ai.latency.e2e";

const REQUEST_ID: &str = "gen_ai.request.id";

/// Only version 0 writes these.
const VERSION_0: [&str; 3] = [
    "gen_ai.latency.time_in_scheduler",
    "gen_ai.latency.time_in_model_forward",
    "gen_ai.latency.time_in_model_execute",
];

/// The attributes it reads.
pub const KEYS: &[&str] = &[
    QUEUE[0],
    QUEUE[1],
    PREFILL[0],
    PREFILL[1],
    DECODE[0],
    DECODE[1],
    INFERENCE[0],
    INFERENCE[1],
    TTFT[0],
    TTFT[1],
    E2E,
    VERSION_0[0],
    VERSION_0[1],
    VERSION_0[2],
    DIFFUSION,
];

const REQUESTS: &[&str] = &["llm_request", "omni_request", "vllm.request"];

const STAGES: &[NameRule] = &[
    NameRule::new("vllm_queue", Role::EngineStage, Some(ServerPhase::GpuQueue), None),
    NameRule::new("vllm_prefill", Role::EngineStage, Some(ServerPhase::Generation), Some(SubPhase::Prefill)),
    NameRule::new("vllm_decode", Role::EngineStage, Some(ServerPhase::Generation), Some(SubPhase::Decode)),
    NameRule::new("vllm_async_kv_transfer", Role::EngineStage, None, None),
    NameRule::new("vllm_step_execution", Role::EngineStage, None, None),
];

/// What a diffusion engine of vLLM-Omni computes, in milliseconds. The span around it holds its own queue too.
const DIFFUSION: &str = "vllm_omni.diffusion.exec_ms";

/// Written once while the engine starts, in traces of their own.
const START_UP: &[&str] = &[
    "Overall Loading",
    "AsyncMPClient init",
    "EngineCoreProc init",
    "Worker init",
    "Load model",
    "Load weights",
    "Compile graph",
    "Allocate KV cache",
    "Warmup (CPU)",
    "Warmup (GPU)",
];

/// Tells vLLM's process, whatever the service is called.
const MODULE: &str = "vllm.instrumenting_module_name";

/// The resource attributes it reads.
pub const RESOURCE_KEYS: &[&str] = &[MODULE];

pub fn read(span: &Span) -> Option<Reading> {
    if let Some(rule) = NameRule::find(STAGES, &span.name) {
        return Some(stage(rule, span));
    }
    if START_UP.contains(&span.name.as_str()) && in_vllm(span) {
        return Some(Reading { role: Role::Noise, ..Reading::of(DIALECT, "start-up") });
    }
    if span.attributes.has(DIFFUSION) {
        return Some(diffusion(span));
    }
    if !is_request(span) {
        return None;
    }
    // A caller may note what its engine told on its own span: that is a call, and nobody's entry.
    let root = span.kind != SpanKind::Client;
    let mut reading = Reading { role: Role::Engine, root, ..Reading::of(DIALECT, "request span") };
    let told = latencies(span);
    let durations = if VERSION_0.iter().any(|key| span.attributes.has(key)) { after_queue(told) } else { told };
    durations.lay(span, &mut reading);
    reading.request_ids = sent_ids(span);
    Some(reading)
}

fn diffusion(span: &Span) -> Reading {
    let mut reading = Reading { role: Role::EngineStage, ..Reading::of(DIALECT, "diffusion") };
    if let Some(length) = part(span, DIFFUSION, scalar::millis, &mut reading) {
        reading.laid.push(Laid { phase: ServerPhase::Generation, sub: None, length, anchor: Anchor::End });
    }
    reading
}

/// The ids that vLLM made its own of: `chatcmpl-` and what came as X-Request-ID; `cmpl-`, the same, and the prompt's
/// number, without which it is the id of the answer (checked in its source).
fn sent_ids(span: &Span) -> Vec<String> {
    let id = span.attributes.get(REQUEST_ID).and_then(scalar::text).unwrap_or_default();
    if id.contains(REDACTED) {
        return Vec::new();
    }
    if let Some(sent) = id.strip_prefix("chatcmpl-") {
        return vec![sent.to_owned()];
    }
    let numbered = id.rsplit_once('-').filter(|(_, number)| number.bytes().all(|byte| byte.is_ascii_digit()));
    let answer = numbered.map(|(answer, _)| answer);
    answer
        .and_then(|answer| Some(vec![answer.to_owned(), answer.strip_prefix("cmpl-")?.to_owned()]))
        .unwrap_or_default()
}

/// Whether it is an engine's span around a request, under vLLM's names. Applications have spans of the same names, but
/// not of kind SERVER.
pub fn is_request(span: &Span) -> bool {
    let told = || [QUEUE, PREFILL, DECODE, INFERENCE].iter().flatten().any(|key| span.attributes.has(key));
    let named = REQUESTS.contains(&span.name.as_str());
    (named && (span.kind == SpanKind::Server || in_vllm(span))) || told()
}

fn in_vllm(span: &Span) -> bool {
    span.scope.name.starts_with("vllm") || span.resource.attributes.has(MODULE) || span.resource.service() == DIALECT
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

/// What its attributes tell.
pub fn latencies(span: &Span) -> EngineDurations {
    let seconds = |keys: &[&str]| -> Option<Nanos> {
        keys.iter().find_map(|key| span.attributes.get(key).and_then(scalar::seconds))
    };
    EngineDurations {
        queue: seconds(&QUEUE),
        prefill: seconds(&PREFILL),
        decode: seconds(&DECODE),
        inference: seconds(&INFERENCE),
        whole: seconds(&[E2E]),
        witness: seconds(&TTFT),
    }
}

/// For those that tell no inference but read queue, first token and whole off one clock: what follows the queue.
pub fn after_queue(told: EngineDurations) -> EngineDurations {
    let after =
        |until: Option<Nanos>| -> Option<Nanos> { Some(until? - told.queue?).filter(|rest| *rest >= Nanos::ZERO) };
    EngineDurations {
        inference: told.inference.or_else(|| after(told.whole)),
        prefill: told.prefill.or_else(|| after(told.witness)),
        ..told
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::{self, sample};
    use model::{Flag, SpanKind, Value};

    fn request(attributes: &[(&'static str, Value)]) -> Reading {
        dialect::read(&sample::span("llm_request", SpanKind::Server, 1450, attributes))
    }

    fn laid(reading: &Reading) -> Vec<(ServerPhase, Option<SubPhase>, i64)> {
        reading.laid.iter().map(|laid| (laid.phase, laid.sub, laid.length.0 / 1_000_000)).collect()
    }

    #[test]
    fn an_application_may_have_a_span_of_that_name() {
        let own = sample::span("llm_request", SpanKind::Internal, 1450, &[]);
        let reading = dialect::read(&own);
        assert_eq!((reading.dialect.as_ref(), reading.role, reading.root), ("", Role::Plain, false));
        assert_eq!(dialect::read(&sample::with_scope(own, "vllm.tracing")).role, Role::Engine);
        let server = sample::span("llm_request", SpanKind::Server, 1450, &[]);
        assert_eq!(dialect::read(&server).role, Role::Engine);
    }

    #[test]
    fn lays_decode_prefill_and_queue_from_the_end() {
        for spelling in 0..2 {
            let reading = request(&[
                (QUEUE[spelling], Value::Double(0.25)),
                (PREFILL[spelling], Value::Double(0.15)),
                (DECODE[spelling], sample::text("1.05")),
                (INFERENCE[spelling], Value::Double(1.2)),
                (TTFT[spelling], Value::Double(0.4)),
            ]);
            assert_eq!((reading.dialect.as_ref(), reading.role, reading.phase), (DIALECT, Role::Engine, None));
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
    }

    #[test]
    fn the_id_that_was_sent_is_found_in_its_own() {
        for (id, ids) in [
            ("chatcmpl-run-7-0", vec!["run-7-0", "chatcmpl-run-7-0"]),
            ("cmpl-run-7-1-0", vec!["cmpl-run-7-1", "run-7-1", "cmpl-run-7-1-0"]),
            ("cmpl-x", vec!["cmpl-x"]),
            ("other-1", vec!["other-1"]),
        ] {
            assert_eq!(request(&[(REQUEST_ID, sample::text(id))]).request_ids, ids);
        }
    }

    #[test]
    fn inference_alone_is_generation_and_minus_one_is_missing() {
        let reading = request(&[(QUEUE[0], Value::Double(-1.0)), (INFERENCE[0], Value::Double(1.2))]);
        let only =
            Laid { phase: ServerPhase::Generation, sub: None, length: Nanos(1_200_000_000), anchor: Anchor::End };
        assert_eq!(reading.laid, vec![only]);
    }

    #[test]
    fn version_0_tells_generation_as_what_follows_the_queue() {
        let reading = request(&[
            (QUEUE[0], Value::Double(0.25)),
            (TTFT[0], Value::Double(0.4)),
            (E2E, Value::Double(1.45)),
            (VERSION_0[0], Value::Double(0.002)),
            (VERSION_0[1], Value::Double(0.9)),
            (VERSION_0[2], Value::Double(1.0)),
        ]);
        let generation = ServerPhase::Generation;
        let expected = vec![
            (generation, Some(SubPhase::Decode), 1050),
            (generation, Some(SubPhase::Prefill), 150),
            (ServerPhase::GpuQueue, None, 250),
        ];
        assert_eq!(laid(&reading), expected);
    }

    #[test]
    fn milliseconds_under_a_key_of_seconds_are_flagged_and_not_used() {
        let reading = request(&[(QUEUE[0], Value::Double(250.0)), (INFERENCE[0], Value::Double(1200.0))]);
        assert!(reading.laid.is_empty());
        assert!(reading.flags.has(Flag::UnitSuspect));
        let slightly_long = request(&[(INFERENCE[0], Value::Double(1.6))]);
        assert_eq!(slightly_long.laid.len(), 1);
        assert!(!slightly_long.flags.has(Flag::UnitSuspect));
    }

    #[test]
    fn a_whole_a_thousand_times_shorter_than_its_span_is_in_another_unit() {
        let reading = request(&[(INFERENCE[0], Value::Double(0.0012)), (E2E, Value::Double(0.00145))]);
        assert!(reading.laid.is_empty());
        assert!(reading.flags.has(Flag::UnitSuspect));
    }

    #[test]
    fn newer_stages_are_spans() {
        let generation = Some(ServerPhase::Generation);
        for (name, phase, sub) in [
            ("vllm_queue", Some(ServerPhase::GpuQueue), None),
            ("vllm_prefill", generation, Some(SubPhase::Prefill)),
            ("vllm_decode", generation, Some(SubPhase::Decode)),
            ("vllm_async_kv_transfer", None, None),
            ("vllm_step_execution", None, None),
        ] {
            let reading = dialect::read(&sample::span(name, SpanKind::Internal, 10, &[]));
            assert_eq!((reading.role, reading.phase, reading.sub), (Role::EngineStage, phase, sub), "{name}");
            let first = reading.first_token.map(|token| token.offset);
            assert_eq!(first, (name == "vllm_prefill").then_some(Nanos(10_000_000)));
        }
    }

    #[test]
    fn a_diffusion_engine_tells_what_it_computes() {
        let span = sample::span("diffusion_request", SpanKind::Internal, 6000, &[(DIFFUSION, Value::Double(5800.0))]);
        assert_eq!(laid(&dialect::read(&span)), vec![(ServerPhase::Generation, None, 5800)]);
    }

    #[test]
    fn start_up_is_noise_in_vllm_only() {
        let span = sample::span("Load weights", SpanKind::Internal, 90_000, &[]);
        assert_eq!(dialect::read(&span).role, Role::Plain);
        assert_eq!(dialect::read(&sample::with_scope(span, "vllm.tracing")).role, Role::Noise);
    }
}
