//! Joining a trace: its own spans to its own records, and records to the spans of another trace that carry the same
//! request id, where a proxy replaced the trace id (design, section 4).

use std::collections::BTreeSet;

use super::assemble::{Explained, Joined, Progress, assemble};
use super::event_log;
use super::identity::Claimant;
use super::inputs::{Partner, TraceInputs};
use model::reading::Reading;
use model::{Flag, JoinMethod, Span};

/// Joins a trace. A function of its inputs alone: the order in which they arrived, how they were split into batches and
/// how often they were sent make no difference.
pub fn explain(mut inputs: TraceInputs, progress: Progress, read: &dyn Fn(&Span) -> Reading) -> Explained {
    let (records, logs) = (std::mem::take(&mut inputs.records), std::mem::take(&mut inputs.logs));
    let claimants = event_log::claimants(records, logs, inputs.trace_id, progress.quiet_since);
    // The log that has been silent for longest is the first to be looked at again.
    let open_since = claimants.iter().filter_map(|claimant| claimant.open_since).min();
    let ambiguous_ids = std::mem::take(&mut inputs.ambiguous_ids);
    let mut requests = Vec::new();
    let mut alone = Vec::new();
    for claimant in claimants {
        match partner_of(&claimant, &mut inputs.partners) {
            Some(partner) => requests.append(&mut across(&inputs, partner, claimant, progress, read)),
            None => alone.push(claimant),
        }
    }
    if !requests.is_empty() && alone.is_empty() {
        return Explained { requests, open_since, ..Explained::default() };
    }
    let mut own = assemble(inputs, alone, progress, read);
    mark_ambiguous(&mut own.requests, &ambiguous_ids);
    requests.append(&mut own.requests);
    Explained { requests, open_since, ..own }
}

/// The spans of another trace that answer a record.
fn partner_of(claimant: &Claimant, partners: &mut Vec<Partner>) -> Option<Partner> {
    let request_id = claimant.request_id()?;
    let place = partners.iter().position(|partner| partner.request_id == request_id)?;
    Some(partners.swap_remove(place))
}

fn across(
    inputs: &TraceInputs,
    partner: Partner,
    claimant: Claimant,
    progress: Progress,
    read: &dyn Fn(&Span) -> Reading,
) -> Vec<Joined> {
    let Partner { trace_id, fragments, oversized, settled, .. } = partner;
    let nothing = TraceInputs::empty(inputs.trace_id, inputs.first_arrival, inputs.span_limit);
    let spans = TraceInputs { fragments, oversized, ..nothing };
    let progress = Progress { settled: progress.settled && settled, ..progress };
    let mut joined = assemble(spans, vec![claimant], progress, read).requests;
    for Joined { request, .. } in &mut joined {
        if request.server.is_some() || request.flags.has(Flag::AmbiguousEntry) {
            request.join_method = JoinMethod::RequestId;
            request.server_trace = Some(trace_id);
        }
    }
    joined
}

/// Says of records without a server's part why their request id finds none.
fn mark_ambiguous(requests: &mut [Joined], ambiguous_ids: &BTreeSet<String>) {
    for Joined { request, .. } in requests {
        let ambiguous = request.request_id.as_ref().is_some_and(|id| ambiguous_ids.contains(id));
        request.flags.set_if(ambiguous && request.server.is_none(), Flag::RequestIdAmbiguous);
    }
}
