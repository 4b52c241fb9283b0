//! What to look at first, for each owner of time.

use super::trouble::Source;
use crate::indicator::Indicator;
use crate::verdict::{Gap, Status};
use model::{Metric, ResultClass};

/// The first check to make where an indicator is past its threshold.
pub const fn first_check(indicator: Indicator) -> &'static str {
    match indicator {
        Indicator::Metric(metric) => of_metric(metric),
        Indicator::ResultShare(class) => of_result(class),
        Indicator::JoinCoverage => {
            "Whether both sides still arrive: spans through the collector, client records from the clients, and whether \
             a proxy replaces the traceparent or sampling drops traces (GET /api/v1/coverage gives the reasons)."
        }
        Indicator::UnattributedShare => LOST_PHASE,
        Indicator::DroppedIterations => {
            "The load generator before the service: its CPU, its sockets, and whether it has enough virtual users for \
             the planned rate."
        }
    }
}

/// The first check to make where a source is silent.
pub const fn of_silence(source: Source) -> &'static str {
    match source {
        Source::Client => {
            "Whether the clients still send requests at all; then their uploads: address, refusals in their logs, the \
             network between."
        }
        Source::Server => {
            "Whether the gateway still exports spans: its exporter and the collector (queue, refusals, sampling), then \
             whether the traceparent still reaches it."
        }
    }
}

/// The first check to make where there is no verdict.
pub fn of_no_verdict(status: &Status) -> &'static str {
    let Status::NoVerdict(gaps) = status else { return "Nothing: there is a verdict now." };
    let uncovered = gaps.iter().any(|gap| matches!(gap, Gap::LowCoverage { .. } | Gap::BoundsStraddle));
    if uncovered {
        first_check(Indicator::JoinCoverage)
    } else {
        "Whether the traffic is as expected; if it is, give the objective a longer window or a smaller min_n."
    }
}

const LOST_PHASE: &str = "Which spans are gone: a phase that lost its spans or changed their names shows up here. \
    Compare a new trace with an old one, then the last release of the gateway or the engine.";

const SETUP: &str = "Connection reuse (keep-alive, pool size), socket and port limits, and the CPU of the load generator \
    or client; then DNS and TLS.";

const ENVELOPE: &str = "Where the entry span begins and ends (it may leave out work), the size of bodies, and the \
    balancers and proxies before it.";

const GATEWAY: &str = "Rate limits and quotas, serialisation of large bodies, and whether there are enough replicas; \
    then waits in HTTP pools and brokers.";

const QUEUE: &str = "The pool's capacity against its load, the batch policy, limits on output length, and admission: who \
    sent more or longer requests.";

const GENERATION: &str = "Time per output token: batch size and memory (cache use, preemption, swapping); then whether \
    answers became longer.";

const PROVIDER: &str = "The provider's own status and rate limits, and whether retries or a fallback route took over.";

const UPSTREAM: &str = "The hop between gateway and engine: connection reuse, proxies between them, and the size of \
    bodies.";

const WHOLE: &str =
    "Which phase moved: compare the phases of the linked traces, then the objectives of the same budget.";

const RHYTHM: &str = "Whether something holds the stream back (a buffering proxy, compression), then batch size and \
    preemption in the engine.";

const fn of_metric(metric: Metric) -> &'static str {
    match metric {
        Metric::Setup | Metric::ClientQueue => SETUP,
        Metric::NetworkEnvelope | Metric::WallEnvelope | Metric::TtftEnvelope => ENVELOPE,
        Metric::Gateway | Metric::TtftGateway => GATEWAY,
        Metric::GpuQueue | Metric::TtftGpuQueue => QUEUE,
        Metric::Generation
        | Metric::Prefill
        | Metric::Decode
        | Metric::TtftGeneration
        | Metric::GenerationPerOutputToken
        | Metric::Tpot => GENERATION,
        Metric::Provider | Metric::TtftProvider => PROVIDER,
        Metric::UpstreamEnvelope | Metric::TtftUpstreamEnvelope => UPSTREAM,
        Metric::Unattributed | Metric::TtftUnattributed => LOST_PHASE,
        Metric::Duration
        | Metric::Wall
        | Metric::Ttft
        | Metric::TtftVisible
        | Metric::Headers
        | Metric::ServerTotal
        | Metric::ServerTtft => WHOLE,
        _ => RHYTHM,
    }
}

const fn of_result(class: ResultClass) -> &'static str {
    match class {
        ResultClass::Ok | ResultClass::Error => {
            "Which status and error class the failed requests have, and since when; then the last release, rate limits \
             and quotas. Latencies leave these requests out and may look good meanwhile."
        }
        ResultClass::Timeout => {
            "Where the requests stood when their clients gave up: the linked traces show the phase; then queue length \
             and the clients' time limit."
        }
        ResultClass::Cancelled => {
            "Whether clients give up for waiting too long (the time to the first token), or a release of theirs."
        }
        ResultClass::Truncated => {
            "What cuts answers off: idle limits of proxies and balancers, restarts of the engine, limits on output length."
        }
    }
}
