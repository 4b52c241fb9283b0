//! How the view is filled from the model.

use super::{
    ClientAnswer, ClientSource, PhasesAnswer, PlacementAnswer, RatesAnswer, RequestAnswer, ResponseMetricsAnswer,
    ServerAnswer, SpanAnswer, StreamAnswer, TtftAnswer,
};
use crate::explained::Explained;
use crate::time::rfc3339;
use join::{ExplainedSpan, ExplainedTiming, Placement};
use model::{ClientSide, Flag, Flags, Nanos, Rates, Request, ServerPhases, ServerSide, StreamSummary, TtftPhases};

fn ms(nanos: Option<Nanos>) -> Option<f64> {
    nanos.map(Nanos::as_millis)
}

impl From<&Explained> for RequestAnswer {
    fn from(explained: &Explained) -> Self {
        let request = &explained.request;
        let phases = request.phases.as_ref();
        Self {
            trace_id: request.trace_id.to_string(),
            server_trace_id: request.server_trace.map(|id| id.to_string()),
            request_id: request.request_id.clone(),
            client_span_id: request.client_span.map(|id| id.to_string()),
            window_at: rfc3339(request.window_at),
            state: request.state,
            flags: names(request.flags),
            result: request.result,
            completeness: request.completeness,
            client: request.client.as_ref().map(|side| ClientAnswer::new(side, request.flags)),
            server: request.server.as_ref().map(ServerAnswer::from),
            phases: phases.map(|phases| PhasesAnswer::new(request, phases)),
            prefill_ms: ms(phases.and_then(|phases| phases.prefill)),
            decode_ms: ms(phases.and_then(|phases| phases.decode)),
            ttft: request.ttft.as_ref().map(TtftAnswer::from),
            stream: request.stream.as_ref().map(StreamAnswer::from),
            rates: RatesAnswer::from(&request.rates),
            input_tokens: request.input_tokens,
            output_tokens: request.output_tokens,
            dimensions: request.dimensions.clone(),
            revision: explained.revision,
            join_method: request.join_method,
            explained_ratio: explained_ratio(request),
            phase_sources: explained.sources.clone(),
            response_metrics: explained.timing.as_ref().map(ResponseMetricsAnswer::from),
            spans: explained.spans.iter().map(SpanAnswer::from).collect(),
        }
    }
}

impl From<&ExplainedTiming> for ResponseMetricsAnswer {
    fn from(timing: &ExplainedTiming) -> Self {
        let metrics = &timing.metrics;
        Self {
            kind: metrics.kind.name().to_owned(),
            placement: match timing.placement {
                Some(Placement::Painted) => PlacementAnswer::Painted,
                Some(Placement::Compared) => PlacementAnswer::Compared,
                Some(Placement::Unplaced) => PlacementAnswer::Unplaced,
                Some(Placement::UnitSuspect) => PlacementAnswer::UnitSuspect,
                None => PlacementAnswer::NoServer,
            },
            total_ms: ms(metrics.total),
            gateway_ms: ms(metrics.gateway),
            queue_ms: ms(metrics.queue),
            prefill_ms: ms(metrics.prefill),
            decode_ms: ms(metrics.decode),
            generation_ms: ms(metrics.generation()),
        }
    }
}

fn names(flags: Flags) -> Vec<String> {
    flags.iter().map(|flag| flag.name().to_owned()).collect()
}

/// How much of the client's duration has an owner.
fn explained_ratio(request: &Request) -> Option<f64> {
    let duration = request.client.as_ref()?.duration.filter(|duration| duration.0 > 0)?;
    let unattributed = request.phases.as_ref()?.unattributed;
    Some((duration - unattributed).0 as f64 / duration.0 as f64)
}

impl ClientAnswer {
    fn new(side: &ClientSide, flags: Flags) -> Self {
        Self {
            source: if flags.has(Flag::ClientFromSpan) { ClientSource::Span } else { ClientSource::Record },
            duration_ms: ms(side.duration),
            wall_ms: ms(side.wall),
            setup_ms: ms(side.setup),
            ttft_ms: ms(side.ttft),
            ttft_visible_ms: ms(side.ttft_visible),
            headers_ms: ms(side.headers),
            client_queue_ms: ms(side.client_queue),
            status: side.status,
        }
    }
}

impl From<&ServerSide> for ServerAnswer {
    fn from(side: &ServerSide) -> Self {
        let entry_span_id = side.entry.to_string();
        Self { entry_span_id, total_ms: side.total.as_millis(), ttft_ms: ms(side.ttft) }
    }
}

impl PhasesAnswer {
    fn new(request: &Request, phases: &ServerPhases) -> Self {
        Self {
            network_envelope_ms: ms(request.network_envelope),
            wall_envelope_ms: ms(request.wall_envelope),
            gateway_ms: ms(phases.gateway),
            gpu_queue_ms: ms(phases.gpu_queue),
            generation_ms: ms(phases.generation),
            provider_ms: phases.provider.as_millis(),
            upstream_envelope_ms: phases.upstream_envelope.as_millis(),
            unattributed_ms: phases.unattributed.as_millis(),
        }
    }
}

impl From<&TtftPhases> for TtftAnswer {
    fn from(ttft: &TtftPhases) -> Self {
        Self {
            envelope_ms: ttft.envelope.as_millis(),
            gateway_ms: ms(ttft.server.gateway),
            gpu_queue_ms: ms(ttft.server.gpu_queue),
            generation_ms: ms(ttft.server.generation),
            provider_ms: ttft.server.provider.as_millis(),
            upstream_envelope_ms: ttft.server.upstream_envelope.as_millis(),
            unattributed_ms: ttft.server.unattributed.as_millis(),
        }
    }
}

impl From<&StreamSummary> for StreamAnswer {
    fn from(stream: &StreamSummary) -> Self {
        Self {
            business_events: stream.business_events,
            batched_events: stream.batched_events,
            batched_share: stream.batched_share(),
            p50_gap_ms: ms(stream.p50_gap),
            p95_gap_ms: ms(stream.p95_gap),
            p99_gap_ms: ms(stream.p99_gap),
            max_gap_ms: ms(stream.max_gap),
            gaps_over_1s: stream.gaps_over_1s,
            stall_rate: stream.stall_rate(),
            done_received: stream.done_received,
            last_seq: stream.last_seq,
            missing_seq: stream.missing_seq,
            last_event_ms: ms(stream.last_event),
            tokens_after_first: stream.tokens_after_first,
            buffered_events: stream.buffered_events,
            buffered_share: stream.buffered_share(),
            buffer_silence_ms: ms(stream.buffer_silence),
            buffer_burst: stream.buffer_burst,
        }
    }
}

impl From<&Rates> for RatesAnswer {
    fn from(rates: &Rates) -> Self {
        Self {
            rate_e2e: rates.rate_e2e,
            rate_stream: rates.rate_stream,
            rate_after_first: rates.rate_after_first,
            tpot_ms: rates.tpot_ms,
            generation_ms_per_output_token: rates.generation_ms_per_output_token,
        }
    }
}

impl From<&ExplainedSpan> for SpanAnswer {
    fn from(span: &ExplainedSpan) -> Self {
        Self {
            span_id: span.span_id.to_string(),
            parent_span_id: span.parent.map(|id| id.to_string()),
            name: span.name.clone(),
            kind: span.kind.name().to_owned(),
            service: span.service.clone(),
            start_offset_ms: ms(span.start_offset),
            painted: span.painted,
            duration_ms: ms(span.duration),
            phase: span.phase,
            rule: span.rule.clone(),
            clock_domain: span.clock_domain.clone(),
        }
    }
}
