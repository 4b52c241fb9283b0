//! TensorRT-LLM: vLLM's request span and keys, of which it writes queue, first token and whole, and -1 for what it has
//! not measured. Its servers write further spans of kind SERVER, and events for what a disaggregated request went
//! through.
//!
//! Checked against its tracing module and servers: tracer `trt.llm`, `disaggregated_request`, the list of keys and
//! events. The code that measures was not to be had; that its three times begin at the request's arrival follows from
//! their names. Time spent on moving the key-value cache lies inside other phases, so it is told by nobody's name.

use super::durations::EngineDurations;
use super::{Reading, Role, origin, vllm};
use model::Span;

const DIALECT: &str = "tensorrt-llm";

const SCOPE: &str = "trt.llm";
const KV_TRANSFER: &str = "gen_ai.latency.kv_cache_transfer_time";

/// The attributes it reads beside vLLM's.
pub const KEYS: &[&str] = &[KV_TRANSFER];

/// The events by which it is recognised.
pub const EVENTS: &[&str] =
    &["kv_cache_transfer_start", "kv_cache_transfer_end", "ctx_server.selected", "gen_server.selected"];

/// What a service or a module may be called: without it a request's span passes for vLLM's, which tells its inference.
const NAMES: &[&str] = &["tensorrt", "trtllm", "trt-llm", "trt_llm"];

/// Server spans around the engine's: they hold it and own no time.
const HOLDERS: &[&str] = &["disaggregated_request"];

pub fn read(span: &Span) -> Option<Reading> {
    let here = span.scope.name == SCOPE;
    if HOLDERS.contains(&span.name.as_str()) && (here || told(span)) {
        return Some(Reading::of(DIALECT, "server span"));
    }
    if !vllm::is_request(span) || !(here || told(span) || origin::names(span, NAMES)) {
        return here.then(|| Reading::of(DIALECT, "inner span"));
    }
    let mut reading = Reading { role: Role::Engine, root: true, ..Reading::of(DIALECT, "request span") };
    durations(span).lay(span, &mut reading);
    Some(reading)
}

fn told(span: &Span) -> bool {
    span.attributes.has(KV_TRANSFER) || span.events.iter().any(|event| EVENTS.contains(&event.name.as_str()))
}

/// It has no key for its inference, but its queue, its first token and its whole are read off one clock: what follows
/// the queue is generation.
fn durations(span: &Span) -> EngineDurations {
    vllm::after_queue(vllm::latencies(span))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::{self, SubPhase, sample};
    use model::{ServerPhase, SpanKind, Value};

    fn request(attributes: &[(&'static str, Value)]) -> Reading {
        let span = sample::span("llm_request", SpanKind::Server, 1000, attributes);
        dialect::read(&sample::with_scope(span, SCOPE))
    }

    fn laid(reading: &Reading) -> Vec<(ServerPhase, Option<SubPhase>, i64)> {
        reading.laid.iter().map(|laid| (laid.phase, laid.sub, laid.length.0 / 1_000_000)).collect()
    }

    #[test]
    fn what_follows_the_queue_is_generation() {
        let reading = request(&[
            ("gen_ai.latency.time_in_queue", Value::Double(0.2)),
            ("gen_ai.latency.time_to_first_token", Value::Double(0.3)),
            ("gen_ai.latency.e2e", Value::Double(0.98)),
        ]);
        assert_eq!((reading.dialect.as_ref(), reading.role), (DIALECT, Role::Engine));
        let generation = ServerPhase::Generation;
        let expected = vec![
            (generation, Some(SubPhase::Decode), 680),
            (generation, Some(SubPhase::Prefill), 100),
            (ServerPhase::GpuQueue, None, 200),
        ];
        assert_eq!(laid(&reading), expected);
    }

    #[test]
    fn minus_one_is_missing() {
        let reading = request(&[
            ("gen_ai.latency.time_in_queue", Value::Int(-1)),
            ("gen_ai.latency.time_to_first_token", Value::Int(-1)),
            ("gen_ai.latency.e2e", Value::Double(0.98)),
        ]);
        assert_eq!((reading.laid.len(), reading.first_token), (0, None));
    }

    #[test]
    fn events_tell_it_from_vllm() {
        let queue = [("gen_ai.latency.time_in_queue", Value::Double(0.2))];
        let span = sample::span("llm_request", SpanKind::Server, 1000, &queue);
        assert_eq!(dialect::read(&span).dialect, "vllm");
        assert_eq!(dialect::read(&sample::with_event(span, "kv_cache_transfer_start", 300)).dialect, DIALECT);
    }

    #[test]
    fn server_spans_around_it_own_no_time() {
        let span = sample::span("disaggregated_request", SpanKind::Server, 1000, &[]);
        assert_eq!(dialect::read(&span).dialect, "");
        let selected = dialect::read(&sample::with_event(span, "gen_server.selected", 10));
        assert_eq!((selected.dialect.as_ref(), selected.phase, selected.role), (DIALECT, None, Role::Plain));
    }
}
