//! The one entry: what arrived of a trace, joined. The settling worker and `GET /api/v1/traces/{id}` both call it.

use model::{Nanos, Side, State, TraceArrivals, TraceId, UnixNanos};

use super::across::explain;
use super::assemble::Explained;
use super::inputs::TraceInputs;
use super::request_id_pairing::{self, RequestIdPairing};
use super::rules::JoinRules;

/// A trace joined at one instant.
#[derive(Debug)]
pub struct JoinedTrace {
    /// Its requests, and what became of its spans.
    pub explained: Explained,
    /// When something that it still waits for is given up; `None` where it waits for nothing, or for a partner to
    /// settle, which brings it back itself.
    pub waits_until: Option<UnixNanos>,
}

/// Joins what arrived of a trace with what belongs to it by a request id.
pub fn join_trace(
    trace_id: TraceId,
    arrivals: TraceArrivals,
    pairing: Option<&RequestIdPairing>,
    rules: &JoinRules,
    now: UnixNanos,
) -> JoinedTrace {
    let progress = rules.progress(&arrivals, now);
    let deadline = rules.deadline_of(&arrivals);
    let mut inputs = TraceInputs::from_arrivals(trace_id, arrivals, rules.span_limit);
    if let Some(pairing) = pairing {
        pairing.complete(&mut inputs, rules, now);
    }
    let explained = explain(inputs, progress, rules.read.as_ref());
    let pending = explained.requests.iter().any(|joined| joined.request.state == State::Pending);
    let silent = |length| explained.open_since.map(|since| since + Nanos::from(length));
    let times = [Some(deadline), silent(rules.stream_hang), silent(rules.stream_quiet)];
    let waits_until = times.into_iter().flatten().filter(|at| pending && *at > now).min();
    JoinedTrace { explained, waits_until }
}

/// How a trace bears upon others that share a request id with it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TraceRelations {
    /// Whether a client described it by its trace id.
    pub has_client: bool,
    /// Whether its spans may answer a record of another trace.
    pub may_serve_others: bool,
    /// Traces to join again now.
    pub join_again: Vec<TraceId>,
    /// Traces to join again where this one has changed.
    pub join_again_if_changed: Vec<TraceId>,
}

impl TraceRelations {
    /// Reads them from what arrived under a trace's key.
    pub fn of(
        trace_id: TraceId,
        arrivals: &TraceArrivals,
        pairing: Option<&RequestIdPairing>,
        rules: &JoinRules,
    ) -> Self {
        let has_client = request_id_pairing::has_client(arrivals);
        let ids = pairing.map(|_| request_id_pairing::client_ids(arrivals)).unwrap_or_default();
        let servers =
            pairing.into_iter().flat_map(|pairing| ids.iter().flat_map(|id| pairing.related(id, Side::Server)));
        Self {
            has_client,
            may_serve_others: !has_client || request_id_pairing::client_came_late(arrivals, rules),
            join_again: request_id_pairing::touched_by(trace_id, arrivals),
            join_again_if_changed: servers.filter(|server| *server != trace_id).collect(),
        }
    }
}
