//! Design, section 6: identity, states and flags.

use super::build::*;
use crate::{Progress, explain};
use model::{Dimension, Flag, Nanos, State};

#[test]
fn two_records_that_each_parent_an_entry_are_two_requests() {
    let spans =
        vec![span(1, 90, 0, 100).server(), span(2, 91, 10, 50).server(), span(3, 2, 20, 30).phase("generation")];
    let mut first = record(120);
    first.span_id = Some(id(90));
    let mut second = record(70);
    second.span_id = Some(id(91));
    let explained = join(spans, vec![first, second]);
    let totals: Vec<_> = explained.requests.iter().map(|joined| joined.request.server.map(|side| side.total)).collect();
    assert_eq!(totals, [Some(ms(100)), Some(ms(50))]);
    assert!(explained.requests.iter().all(|joined| joined.request.state == State::Matched));
    assert_eq!(explained.requests[1].spans.len(), 2);
    assert_eq!(explained.shown().len(), 2);
}

#[test]
fn records_that_share_an_entry_collide() {
    let mut first = record(120);
    first.span_id = Some(id(90));
    let explained = join(vec![span(1, 0, 0, 100).server()], vec![first, record(130)]);
    assert_eq!(explained.requests.len(), 2);
    for joined in &explained.requests {
        assert_eq!(joined.request.state, State::Excluded);
        assert!(joined.request.flags.has(Flag::TraceIdCollision));
        assert_eq!(joined.request.phases, None);
    }
    assert_eq!(explained.shown().len(), 1);
}

#[test]
fn a_record_whose_span_parents_nothing_shares_the_outermost_entry() {
    let mut lost = record(50);
    lost.span_id = Some(id(90));
    let mut answered = record(120);
    answered.span_id = Some(id(91));
    let explained = join(vec![span(1, 91, 0, 100).server()], vec![lost, answered]);
    let collided = |joined: &crate::Joined| joined.request.flags.has(Flag::TraceIdCollision);
    assert_eq!(explained.requests.len(), 2);
    assert!(explained.requests.iter().all(collided), "nothing says which of them was answered");
}

#[test]
fn the_same_identity_with_other_measured_fields_collides_and_with_other_labels_does_not() {
    let mut labelled = record(120);
    labelled.run = Some("second upload".to_owned());
    let explained = join(vec![], vec![record(120), labelled]);
    assert_eq!(explained.requests.len(), 1);
    assert_eq!(explained.requests[0].request.state, State::ClientOnly);
    let collision = join(vec![], vec![record(120), record(121)]);
    assert_eq!(collision.requests.len(), 2);
    assert!(collision.requests.iter().all(|joined| joined.request.state == State::Excluded));
}

#[test]
fn several_entries_are_ambiguous_unless_they_nest_or_yield() {
    let other = || span(2, 91, 200, 50).server().of("gw-2");
    let ambiguous = join_one(vec![span(1, 90, 0, 100).server(), other()], record(300));
    assert_eq!((ambiguous.state, ambiguous.phases), (State::Excluded, None));
    assert!(ambiguous.flags.has(Flag::AmbiguousEntry));
    let yields = join_one(vec![span(1, 90, 0, 100).server(), other().role("engine")], record(300));
    assert_eq!(yields.server.map(|side| side.entry), Some(id(1)));
    let nests = join_one(vec![span(1, 90, 0, 100).server(), span(2, 91, 20, 50).server()], record(300));
    assert_eq!(nests.server.map(|side| side.entry), Some(id(1)));
    let equal = join_one(vec![span(2, 91, 0, 100).server(), span(1, 90, 0, 100).server()], record(300));
    assert_eq!(equal.server.map(|side| side.entry), Some(id(1)));
}

#[test]
fn the_callers_own_spans_lie_above_the_entry() {
    let spans = vec![
        span(90, 0, 0, 140).client().of("caller").phase("generation"),
        span(1, 90, 500, 100).server(),
        span(2, 1, 510, 50).phase("generation"),
    ];
    let mut named = record(130);
    named.span_id = Some(id(90));
    let request = join_one(spans, named);
    assert_eq!(request.network_envelope, Some(ms(30)));
    assert!(!request.flags.has(Flag::DetachedSpans));
}

#[test]
fn a_small_negative_difference_is_kept_and_a_large_one_excludes() {
    let spans = || vec![span(1, 0, 0, 100).server()];
    let mut close = record(100);
    close.duration = Some(ms(100) - Nanos(1_000_000));
    let kept = join_one(spans(), close.clone());
    assert_eq!((kept.state, kept.network_envelope), (State::Matched, Some(Nanos(-1_000_000))));
    close.duration = Some(ms(100) - Nanos(1_000_001));
    let excluded = join_one(spans(), close);
    assert_eq!(excluded.state, State::Excluded);
    assert!(excluded.flags.has(Flag::NegativeEnvelope));
}

#[test]
fn wall_time_alone_has_no_network_envelope() {
    let mut walled = record(130);
    (walled.duration, walled.wall) = (None, walled.duration);
    let request = join_one(vec![span(1, 0, 0, 100).server()], walled);
    assert_eq!((request.network_envelope, request.wall_envelope), (None, Some(ms(30))));
    assert!(request.flags.has(Flag::SetupUnknown));
    assert_eq!(request.state, State::Matched);
}

#[test]
fn a_client_that_gave_up_without_a_duration_says_why_there_is_no_envelope() {
    let mut cut = record(0);
    cut.duration = None;
    let request = join_one(vec![span(1, 0, 0, 100).server()], cut);
    assert_eq!((request.state, request.network_envelope), (State::Matched, None));
    assert!(request.flags.has(Flag::DurationUnknown));
}

#[test]
fn a_record_that_ends_at_headers_has_no_envelope_and_is_not_excluded() {
    let mut headers = record(12);
    headers.headers_only = true;
    let request = join_one(vec![span(1, 0, 0, 100).server()], headers);
    assert_eq!((request.state, request.network_envelope), (State::Matched, None));
    assert!(request.flags.has(Flag::HeadersOnly));
}

#[test]
fn a_lone_side_waits_for_the_deadline() {
    let waiting = Progress { deadline_passed: false, ..SETTLED };
    let state = |progress, spans, records| explain(inputs(spans, records), progress, &read).requests[0].request.state;
    assert_eq!(state(waiting, vec![], vec![record(5)]), State::Pending);
    assert_eq!(state(SETTLED, vec![], vec![record(5)]), State::ClientOnly);
    assert_eq!(state(waiting, vec![span(1, 0, 0, 5).server()], vec![]), State::Pending);
    assert_eq!(state(waiting, vec![span(1, 0, 0, 5).server()], vec![record(6)]), State::Matched);
    let unsettled = Progress { settled: false, ..SETTLED };
    assert_eq!(state(unsettled, vec![span(1, 0, 0, 5).server()], vec![record(6)]), State::Pending);
}

#[test]
fn spans_without_an_entry_are_no_request_of_their_own() {
    let explained = join(vec![span(1, 0, 0, 5)], vec![]);
    assert!(explained.requests.is_empty());
    let stray = explained.stray.expect("spans to show");
    assert_eq!((stray.request.state, stray.spans.len()), (State::ServerOnly, 1));
    assert!(stray.request.flags.has(Flag::NoEntrySpan));
    let request = join_one(vec![span(1, 0, 0, 5)], record(10));
    assert_eq!(request.state, State::ClientOnly);
    assert!(request.flags.has(Flag::NoEntrySpan));
}

#[test]
fn the_clients_labels_win_and_the_servers_complete_them() {
    let mut labelled = record(120);
    labelled.run = Some("r1".to_owned());
    labelled.output_tokens = Some(200);
    let request = join_one(vec![span(1, 0, 0, 100).server()], labelled);
    assert_eq!(request.dimensions.get(Dimension::Run), Some("r1"));
    assert_eq!(request.client_dimensions.get(Dimension::OutputRange), Some("output_129_256"));
}

/// Each comparison of all records with all others, or of all with all spans, would keep this from ending.
#[test]
fn thousands_of_records_on_thousands_of_nested_servers_are_still_told_apart() {
    let chain = (1..=3_000_u64).map(|n| span(n, n - 1, n as i64, 10_000 - 2 * n as i64).server());
    let mut records = Vec::new();
    for n in 0..1_000 {
        let mut unchanged = record(20_000 + n);
        unchanged.span_id = Some(id(90_000));
        let mut lost = record(20_000);
        lost.span_id = Some(id(100_000 + n as u64));
        records.extend([unchanged, lost]);
    }
    let explained = join(chain.collect(), records);
    assert_eq!(explained.requests.len(), 2_000);
    assert!(explained.requests.iter().all(|joined| joined.request.flags.has(Flag::TraceIdCollision)));
}

/// Spans of other clients lie around each of those whose parents are not held: only the client's own may hold them.
#[test]
fn a_span_whose_parent_is_unknown_is_not_hung_under_another_clients() {
    let mut spans: Vec<_> = (1..=1_000_u64).map(|n| span(n, 0, 0, 10_000 - n as i64).server()).collect();
    spans[0] = span(1, 90, 0, 9_999).server();
    spans.push(span(2_000, 91, 1, 10).server());
    let mut first = record(20_000);
    first.span_id = Some(id(90));
    let mut second = record(50);
    second.span_id = Some(id(91));
    let explained = join(spans, vec![first, second]);
    let totals: Vec<_> = explained.requests.iter().map(|joined| joined.request.server.map(|side| side.total)).collect();
    assert_eq!(totals, [Some(ms(9_999)), Some(ms(10))]);
}
