//! Design, section 4: joining by a request id, where a proxy replaced the trace id.

use super::build::*;
use crate::{Partner, Progress, TraceInputs, explain};
use model::{ClientRecord, Flag, Fragment, JoinMethod, Span, State, TraceId};

fn other() -> TraceId {
    TraceId::from_bytes([9; 16]).expect("not zero")
}

fn partner(request_id: &str, spans: Vec<Span>) -> Partner {
    let fragments = vec![Fragment { spans, dropped: 0 }];
    Partner { request_id: request_id.to_owned(), trace_id: other(), fragments, oversized: false, settled: true }
}

fn known_as(request_id: &str, span: u64) -> ClientRecord {
    let mut record = record(130);
    (record.request_id, record.span_id) = (Some(request_id.to_owned()), Some(id(span)));
    record
}

fn server() -> Vec<Span> {
    vec![span(1, 77, 0, 100).server(), span(2, 1, 20, 60).phase("generation")]
}

#[test]
fn the_spans_of_the_other_trace_explain_the_record() {
    let own = inputs(vec![], vec![known_as("r", 90)]);
    let explained = explain(TraceInputs { partners: vec![partner("r", server())], ..own }, SETTLED, &read);
    assert_eq!(explained.requests.len(), 1);
    let request = &explained.requests[0].request;
    assert_eq!((request.state, request.join_method), (State::Matched, JoinMethod::RequestId));
    assert_eq!((request.trace_id, request.server_trace), (trace(), Some(other())));
    assert_eq!(request.network_envelope, Some(ms(30)));
    assert_eq!(explained.requests[0].spans.len(), 2);
    assert!(explained.stray.is_none());
}

#[test]
fn only_the_record_of_that_request_id_is_joined() {
    let own = inputs(vec![], vec![known_as("r", 90), known_as("s", 91)]);
    let explained = explain(TraceInputs { partners: vec![partner("r", server())], ..own }, SETTLED, &read);
    let mut states: Vec<_> = explained
        .requests
        .iter()
        .map(|joined| (joined.request.request_id.clone().expect("an id"), joined.request.state))
        .collect();
    states.sort();
    assert_eq!(states, [("r".to_owned(), State::Matched), ("s".to_owned(), State::ClientOnly)]);
}

#[test]
fn a_partner_that_has_not_settled_is_waited_for() {
    let waiting = Partner { settled: false, ..partner("r", server()) };
    let own = inputs(vec![], vec![known_as("r", 90)]);
    let explained = explain(TraceInputs { partners: vec![waiting], ..own }, SETTLED, &read);
    assert_eq!(explained.requests[0].request.state, State::Pending);
}

#[test]
fn an_ambiguous_id_is_told_where_nothing_else_joins() {
    let ambiguous = |spans| {
        let own = inputs(spans, vec![known_as("r", 90)]);
        let inputs = TraceInputs { ambiguous_ids: ["r".to_owned()].into(), ..own };
        explain(inputs, Progress { deadline_passed: true, ..SETTLED }, &read).requests.remove(0).request
    };
    let lone = ambiguous(vec![]);
    assert_eq!((lone.state, lone.flags.has(Flag::RequestIdAmbiguous)), (State::ClientOnly, true));
    let joined = ambiguous(server());
    assert_eq!((joined.join_method, joined.state), (JoinMethod::TraceId, State::Matched));
    assert!(!joined.flags.has(Flag::RequestIdAmbiguous));
}

#[test]
fn the_ids_of_a_server_part_are_told_outermost_first_and_bounded() {
    let with_id = |span: Span, id: &str| span.with("request_id", model::Value::Str(id.to_owned()));
    let mut spans = vec![with_id(span(1, 0, 0, 100).server(), "outer")];
    for number in 2..8 {
        spans.push(with_id(span(number, 1, 10, 10), &format!("inner {number}")));
    }
    spans.push(with_id(span(9, 1, 10, 10), "outer"));
    let explained = explain(inputs(spans, vec![]), SETTLED, &read);
    assert_eq!(explained.server_ids, ["outer", "inner 2", "inner 3", "inner 4"]);
}
