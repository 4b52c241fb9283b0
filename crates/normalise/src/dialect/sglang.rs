//! SGLang: a request span of kind INTERNAL, under it a span for each process or thread, and under those the stages.
//!
//! Its `time_in_model_inference` and `time_in_model_prefill` contain the scheduler's queue, unlike vLLM's under the
//! same keys, so its durations are never laid: stages are spans here. Each rank of a tensor-parallel group writes the
//! same stages; the join counts an instant once.

use super::vllm::prefill_end;
use super::{NameRule, Reading, Role, SubPhase};
use crate::scalar;
use model::{ServerPhase, Span};

const DIALECT: &str = "sglang";

const RID: &str = "rid";
const MODULE: &str = "module";
const THREAD_LABEL: &str = "thread_label";

/// The attributes it reads.
pub const KEYS: &[&str] = &[RID, MODULE, THREAD_LABEL];

/// Some versions put a span of this name around the servers of a disaggregated request.
const ROOM: &str = "Bootstrap Room";

const QUEUE: Option<ServerPhase> = Some(ServerPhase::GpuQueue);
const GENERATION: Option<ServerPhase> = Some(ServerPhase::Generation);
const PREFILL: Option<SubPhase> = Some(SubPhase::Prefill);
const DECODE: Option<SubPhase> = Some(SubPhase::Decode);

/// Stages whose names no other system has.
const STAGES: &[NameRule] = &[
    NameRule::new("prefill_waiting", Role::EngineStage, QUEUE, None),
    NameRule::new("decode_waiting", Role::EngineStage, QUEUE, None),
    NameRule::new("prefill_forward", Role::EngineStage, GENERATION, PREFILL),
    NameRule::new("chunked_prefill", Role::EngineStage, GENERATION, PREFILL),
    NameRule::new("decode_forward", Role::EngineStage, GENERATION, DECODE),
    NameRule::new("decode_loop", Role::EngineStage, GENERATION, DECODE),
    NameRule::new("dc_dispatch", Role::EngineStage, None, None),
    NameRule::new("prefill_prepare", Role::EngineStage, None, None),
    NameRule::new("prefill_bootstrap", Role::EngineStage, None, None),
    NameRule::new("prefill_transfer_kv_cache", Role::EngineStage, None, None),
    NameRule::new("decode_prepare", Role::EngineStage, None, None),
    NameRule::new("decode_bootstrap", Role::EngineStage, None, None),
    NameRule::new("decode_transferred", Role::EngineStage, None, None),
    NameRule::new("fake_output", Role::EngineStage, None, None),
    NameRule::new("quick_finish", Role::EngineStage, None, None),
];

/// Stages with names that others may have too: known by their scope or service only.
const SCOPED_STAGES: &[NameRule] = &[
    NameRule::new("request_process", Role::EngineStage, None, None),
    NameRule::new("tokenize", Role::EngineStage, None, None),
    NameRule::new("dispatch", Role::EngineStage, None, None),
    NameRule::new("process req", Role::EngineStage, None, None),
    // In 0.5.3 `prefill` begins before the queue, so it is no generation.
    NameRule::new("prefill", Role::EngineStage, None, None),
    NameRule::new("decode loop", Role::EngineStage, GENERATION, DECODE),
];

pub fn read(span: &Span) -> Option<Reading> {
    if is_request(span) {
        return Some(request(span));
    }
    if span.name.starts_with(ROOM) {
        return Some(Reading { role: Role::Engine, root: true, ..Reading::of(DIALECT, ROOM) });
    }
    if let Some(rule) = stage_rule(span) {
        let mut reading = rule.reading(DIALECT);
        if rule.name == "prefill_forward" {
            reading.first_token = prefill_end(span);
        }
        return Some(reading);
    }
    is_thread(span).then(|| Reading { role: Role::EngineStage, ..Reading::of(DIALECT, "thread span") })
}

/// A server that only prefills hands on what it makes: the one that decodes answers.
fn request(span: &Span) -> Reading {
    let sub = span.name.trim_start().starts_with("prefill ").then_some(SubPhase::Prefill);
    Reading { role: Role::Engine, root: true, sub, ..Reading::of(DIALECT, "request span") }
}

/// `Req 1a2b3c4d`, with the role of a disaggregated server, or nothing and a blank, before it.
fn is_request(span: &Span) -> bool {
    let Some((_, id)) = span.name.rsplit_once("Req ") else { return false };
    let module = span.attributes.get(MODULE).and_then(scalar::text);
    let marked = span.attributes.has(RID) || module.is_some_and(|module| module.starts_with("sglang"));
    marked || (in_sglang(span) && !id.is_empty())
}

fn stage_rule(span: &Span) -> Option<&'static NameRule> {
    NameRule::find(STAGES, &span.name).or_else(|| NameRule::find(SCOPED_STAGES, &span.name).filter(|_| in_sglang(span)))
}

fn in_sglang(span: &Span) -> bool {
    span.scope.name.contains(DIALECT) || span.resource.service().contains(DIALECT)
}

/// `Scheduler [TP 0] (host:aaaa | pid:2)`.
fn is_thread(span: &Span) -> bool {
    span.attributes.has(THREAD_LABEL) || (span.name.contains("(host:") && span.name.contains("| pid:"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::{self, sample};
    use model::{SpanKind, Value};

    #[test]
    fn the_request_lays_nothing_though_it_shares_keys_with_vllm() {
        let inference = ("gen_ai.latency.time_in_model_inference", Value::Double(0.88));
        for name in [" Req 1a2b3c4d", "Req 1a2b3c4d", "prefill Req 1a2b3c4d"] {
            let attributes = [(RID, sample::text("1a2b3c4d")), inference.clone()];
            let reading = dialect::read(&sample::span(name, SpanKind::Internal, 900, &attributes));
            assert_eq!((reading.role, reading.root, reading.phase), (Role::Engine, true, None), "{name}");
            assert_eq!(reading.sub, name.starts_with("prefill").then_some(SubPhase::Prefill), "{name}");
            assert!(reading.laid.is_empty());
            assert_eq!(reading.request_ids, vec!["1a2b3c4d".to_owned()]);
        }
    }

    #[test]
    fn stages_have_the_phases_of_the_table() {
        for (name, phase, sub) in [
            ("prefill_waiting", QUEUE, None),
            ("decode_waiting", QUEUE, None),
            ("prefill_forward", GENERATION, PREFILL),
            ("decode_forward", GENERATION, DECODE),
            ("Scheduler [TP 0] (host:aaaa | pid:2)", None, None),
        ] {
            let reading = dialect::read(&sample::span(name, SpanKind::Internal, 80, &[]));
            assert_eq!((reading.role, reading.phase, reading.sub), (Role::EngineStage, phase, sub), "{name}");
        }
    }

    #[test]
    fn the_span_around_both_servers_is_a_root() {
        let reading = dialect::read(&sample::span("Bootstrap Room 0x2a", SpanKind::Internal, 900, &[]));
        assert_eq!((reading.dialect.as_ref(), reading.role, reading.root), (DIALECT, Role::Engine, true));
    }

    #[test]
    fn common_names_need_the_scope() {
        let process = sample::span("request_process", SpanKind::Internal, 80, &[]);
        assert_eq!(dialect::read(&process).role, Role::Plain);
        assert_eq!(dialect::read(&sample::with_scope(process, "sglang server")).role, Role::EngineStage);
        let span = sample::span("decode loop", SpanKind::Internal, 80, &[]);
        assert_eq!(dialect::read(&span).role, Role::Plain);
        assert_eq!(dialect::read(&sample::with_scope(span, "sglang")).phase, GENERATION);
    }
}
