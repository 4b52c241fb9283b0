//! When the server's time ends (design, section 3, rule 3).

use super::tree::{Forest, Node, Place};
use model::reading::Role;
use model::{Flag, Flags, Interval, Nanos, ServerPhase, UnixNanos};

/// The entry span's interval, extended or cut to when the answer really ended. `client` is the client's duration, or
/// its wall time. `None` where the entry span's own clock is invalid.
pub fn server_time(forest: &Forest, entry: Place, client: Option<Nanos>, flags: &mut Flags) -> Option<Interval> {
    let node = forest.node(entry);
    let own = node.interval?;
    let body = forest.body_sends(entry);
    if let Some(last) = body.map(|body| body.end).filter(|last| own.start <= *last && *last < own.end) {
        return Interval::new(own.start, last);
    }
    let Some(client) = client else { return Some(own) };
    let latest = own.start + client;
    let ends = answering_ends(forest, entry).into_iter().chain(body.map(|body| body.end));
    let extended = ends.filter(|end| *end > own.end && *end <= latest).max();
    flags.set_if(extended.is_some(), Flag::EntryEndedEarly);
    Interval::new(own.start, extended.unwrap_or(own.end))
}

/// Where the spans of the entry's own clock end that generate, call a provider or write the answer.
fn answering_ends(forest: &Forest, entry: Place) -> Vec<UnixNanos> {
    let mut ends = Vec::new();
    let mut open = vec![entry];
    while let Some(place) = open.pop() {
        for child in forest.node(place).children.iter().copied() {
            if forest.crosses_clocks(child, place) {
                continue;
            }
            open.push(child);
            let node = forest.node(child);
            if answers(node) {
                ends.extend(node.interval.map(|interval| interval.end));
            }
        }
    }
    ends
}

fn answers(node: &Node) -> bool {
    let generates = |phase: ServerPhase| matches!(phase, ServerPhase::Generation | ServerPhase::Provider);
    node.reading.writes_response
        || node.reading.phase.is_some_and(generates)
        || node.reading.laid.iter().any(|laid| generates(laid.phase))
        || (node.reading.role == Role::ProxyAttempt && node.children.is_empty())
}
