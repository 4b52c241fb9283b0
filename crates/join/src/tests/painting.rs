//! Design, section 3: one test a rule.

use super::build::*;
use model::{Flag, Nanos, ResponseMetrics, State, UnixNanos, Value};

#[test]
fn overlapping_children_count_once_by_strength() {
    let spans = vec![
        span(1, 0, 0, 100).server(),
        span(2, 1, 10, 40).phase("gateway"),
        span(3, 1, 30, 40).phase("gpu_queue"),
        span(4, 1, 60, 30).phase("generation"),
    ];
    assert_eq!(phases(&join_one(spans, record(110))), [20, 30, 30, 0, 0, 20]);
}

#[test]
fn depth_does_not_decide_between_subtrees() {
    let spans = vec![
        span(1, 0, 0, 100).server(),
        span(2, 1, 0, 100),
        span(3, 2, 0, 100),
        span(4, 3, 20, 50).phase("gateway"),
        span(5, 1, 40, 40).phase("generation"),
    ];
    assert_eq!(phases(&join_one(spans, record(100))), [20, -1, 40, 0, 0, 40]);
}

#[test]
fn a_child_paints_over_its_parent_and_outlives_it() {
    let spans =
        vec![span(1, 0, 0, 100).server(), span(2, 1, 0, 50).phase("gateway"), span(3, 2, 40, 40).phase("generation")];
    assert_eq!(phases(&join_one(spans, record(100))), [40, -1, 40, 0, 0, 20]);
}

#[test]
fn a_foreign_child_is_centred_with_the_odd_nanosecond_at_the_end() {
    let mut engine = span(3, 2, 9_000, 40).role("engine").number("decode", 30).of("vllm").server();
    engine.end = engine.end.map(|end| end - Nanos(1));
    let spans = vec![
        span(1, 0, 0, 100).server(),
        span(2, 1, 20, 60).client().phase("generation").number("first_token_event", 5),
        engine,
    ];
    let explained = join(spans, vec![record(100)]);
    let phases = explained.requests[0].request.phases.expect("a server side");
    assert_eq!(phases.upstream_envelope, ms(20) + Nanos(1));
    assert_eq!(phases.generation, Some(ms(30)));
    let offset = explained.requests[0].spans.iter().find(|span| span.span_id == id(3)).expect("shown").start_offset;
    assert_eq!(offset, Some(ms(30)));
}

#[test]
fn what_a_foreign_child_leaves_untold_keeps_the_phase_unless_generation_is_told() {
    let call =
        |inner: model::Span| vec![span(1, 0, 0, 100).server(), span(2, 1, 0, 100).client().phase("generation"), inner];
    let silent = span(3, 2, 500, 80).server().of("other");
    assert_eq!(phases(&join_one(call(silent.clone()), record(100))), [-1, -1, 80, 0, 20, 0]);
    let queue_only = silent.clone().role("engine").number("queue", 30);
    assert_eq!(phases(&join_one(call(queue_only), record(100))), [-1, 30, 50, 0, 20, 0]);
    let told = silent.role("engine").number("decode", 50);
    assert_eq!(phases(&join_one(call(told), record(100))), [-1, -1, 50, 0, 20, 30]);
}

#[test]
fn margins_under_a_span_that_is_no_call_keep_its_phase() {
    let spans =
        vec![span(1, 0, 0, 100).server(), span(2, 1, 0, 100).phase("gateway"), span(3, 2, 7_000, 60).of("other")];
    assert_eq!(phases(&join_one(spans, record(100))), [100, -1, -1, 0, 0, 0]);
}

#[test]
fn children_that_share_a_foreign_clock_keep_their_offsets() {
    let spans = vec![
        span(1, 0, 0, 100).server(),
        span(2, 1, 0, 100).client().phase("provider"),
        span(3, 2, 1_000, 20).of("other").phase("gpu_queue"),
        span(4, 2, 1_050, 30).of("other").phase("generation"),
    ];
    // The group is 80 long; the 30 between its members lie in no other process.
    assert_eq!(phases(&join_one(spans, record(100))), [-1, 20, 30, 0, 50, 0]);
}

#[test]
fn a_foreign_child_longer_than_its_parent_is_not_painted() {
    let spans = vec![
        span(1, 0, 0, 100).server(),
        span(2, 1, 10, 50).client().phase("generation"),
        span(3, 2, 0, 60).server().of("vllm").role("engine").number("queue", 40),
    ];
    let request = join_one(spans, record(100));
    assert_eq!(phases(&request), [-1, -1, 50, 0, 0, 50]);
    assert!(request.flags.has(Flag::NegativeUpstream));
}

#[test]
fn what_hangs_under_a_span_that_hands_work_on_lies_in_the_one_above() {
    let spans = vec![
        span(1, 0, 0, 100).server(),
        span(2, 1, 5, 10).role("router"),
        span(3, 2, 8, 5).role("router"),
        span(4, 3, 1_000, 80).of("other").phase("generation"),
        span(5, 3, 2, 6).phase("gpu_queue"),
    ];
    let request = join_one(spans, record(100));
    // 80 of another clock centred in the entry at 10-90, and a local span at its own place, both under the entry.
    assert_eq!(phases(&request), [-1, 6, 80, 0, 0, 14]);
    assert!(!request.flags.has(Flag::NegativeUpstream));
}

#[test]
fn spans_that_hand_work_on_to_one_another_in_a_ring_do_no_harm() {
    let spans = vec![
        span(1, 0, 0, 100).server(),
        span(2, 3, 5, 10).role("router"),
        span(3, 2, 5, 10).role("router"),
        span(4, 3, 20, 50).phase("generation"),
    ];
    assert_eq!(phases(&join_one(spans, record(100)))[5], 50);
}

#[test]
fn a_server_span_outside_its_client_span_is_on_another_clock() {
    let spans = vec![
        span(1, 0, 0, 100).server(),
        span(2, 1, 10, 80).client().phase("generation"),
        span(3, 2, 60, 60).server().phase("gpu_queue"),
    ];
    assert_eq!(phases(&join_one(spans, record(130))), [-1, 60, 0, 0, 20, 20]);
}

#[test]
fn a_sibling_engine_goes_under_the_one_call_that_can_hold_it() {
    let engine = span(5, 90, 4_000, 50).server().of("vllm").role("engine").number("decode", 40).number("queue", 10);
    let spans = |extra: Vec<model::Span>| {
        let mut spans = vec![
            span(1, 90, 0, 100).server(),
            span(2, 1, 10, 60).client().phase("provider"),
            span(3, 1, 75, 20).client().phase("provider"),
            engine.clone(),
        ];
        spans.extend(extra);
        spans
    };
    assert_eq!(phases(&join_one(spans(vec![]), record(100))), [-1, 10, 40, 20, 10, 20]);
    // A second call that is long enough: under the entry span, where the margins keep its phase.
    let second = span(4, 1, 20, 55).client().phase("provider");
    let request = join_one(spans(vec![second]), record(100));
    assert_eq!(request.phases.expect("painted").upstream_envelope, Nanos::ZERO);
    assert_eq!(request.phases.expect("painted").generation, Some(ms(40)));
}

#[test]
fn attributes_that_exceed_their_span_are_cut_at_its_start() {
    let engine = span(1, 0, 0, 100).server().role("engine").number("decode", 60).number("prefill", 30);
    let request = join_one(vec![engine.number("queue", 30)], record(100));
    assert_eq!(phases(&request), [-1, 10, 90, 0, 0, 0]);
    assert!(request.flags.has(Flag::AttributesExceedSpan));
    let split = request.phases.expect("painted");
    assert_eq!((split.prefill, split.decode), (Some(ms(30)), Some(ms(60))));
}

#[test]
fn a_prefix_is_laid_from_the_start() {
    let spans = vec![span(1, 0, 0, 100).server().number("prefix", 15), span(2, 1, 10, 80).client().phase("generation")];
    assert_eq!(phases(&join_one(spans, record(100))), [10, -1, 80, 0, 0, 10]);
}

#[test]
fn a_proxys_own_time_is_the_gateways_and_an_empty_attempt_is_opaque() {
    let spans = |attempt: model::Span| vec![span(1, 0, 0, 100).server().role("proxy"), attempt];
    let attempt = span(2, 1, 10, 80).client().role("attempt");
    let opaque = join_one(spans(attempt.clone()), record(100));
    assert_eq!(phases(&opaque), [20, -1, -1, 80, 0, 0]);
    assert!(opaque.flags.has(Flag::UpstreamOpaque));
    let mut filled = spans(attempt);
    filled.push(span(3, 2, 800, 60).server().of("app"));
    let request = join_one(filled, record(100));
    assert_eq!(phases(&request), [20, -1, -1, 0, 20, 60]);
    assert!(!request.flags.has(Flag::UpstreamOpaque));
}

#[test]
fn an_invalid_span_is_passed_over_and_its_children_move_up() {
    let mut broken = span(2, 1, 50, 0).phase("gateway");
    broken.end = Some(UnixNanos(0));
    let spans = vec![span(1, 0, 0, 100).server(), broken, span(3, 2, 20, 60).phase("generation")];
    let request = join_one(spans, record(100));
    assert_eq!(phases(&request), [-1, -1, 60, 0, 0, 40]);
    assert!(request.flags.has(Flag::ClockInvalid));
    assert_eq!(request.state, State::Matched);
}

#[test]
fn an_invalid_entry_span_excludes() {
    let mut entry = span(1, 0, 50, 0).server();
    entry.end = None;
    let request = join_one(vec![entry, span(2, 1, 0, 10).phase("generation")], record(100));
    assert_eq!(request.state, State::Excluded);
    assert_eq!(request.flags.exclusion(), Some(Flag::ClockInvalid));
}

#[test]
fn what_lies_wholly_outside_the_servers_time_tells_nothing() {
    let spans = vec![span(1, 0, 0, 100).server(), span(2, 1, 200, 50).phase("gateway")];
    assert_eq!(phases(&join_one(spans, record(100))), [-1, -1, -1, 0, 0, 100]);
}

#[test]
fn the_server_is_extended_to_the_last_answering_end_that_the_client_allows() {
    let spans = vec![
        span(1, 0, 0, 50).server(),
        span(2, 1, 10, 80).phase("generation"),
        span(3, 1, 10, 300).phase("generation"),
        span(4, 1, 20, 75).phase("gateway"),
    ];
    let request = join_one(spans.clone(), record(120));
    assert_eq!(request.server.expect("a server side").total, ms(90));
    assert!(request.flags.has(Flag::EntryEndedEarly));
    let server_only = join(spans, vec![]).requests.remove(0).request;
    assert_eq!(server_only.server.expect("a server side").total, ms(50));
    assert_eq!(server_only.state, State::ServerOnly);
}

#[test]
fn the_last_body_part_ends_an_entry_that_outlives_the_answer() {
    let spans = vec![
        span(1, 0, 0, 200).server(),
        span(2, 1, 60, 1).role("body"),
        span(3, 1, 119, 1).role("body"),
        span(4, 1, 10, 100).phase("generation"),
    ];
    let request = join_one(spans, record(130));
    assert_eq!(request.server.expect("a server side").total, ms(120));
    assert_eq!(request.server.expect("a server side").ttft, Some(ms(60)));
    assert!(!request.flags.has(Flag::EntryEndedEarly));
}

#[test]
fn the_answers_own_timing_fills_the_one_call() {
    let metrics = ResponseMetrics {
        queue: Some(ms(20)),
        prefill: Some(ms(10)),
        decode: Some(ms(40)),
        ..ResponseMetrics::default()
    };
    let mut told = record(110);
    told.response_metrics = Some(metrics);
    let one = vec![span(1, 0, 0, 100).server(), span(2, 1, 10, 80).client().phase("provider")];
    let placed = join(one.clone(), vec![told.clone()]);
    assert_eq!(phases(&placed.requests[0].request), [-1, 20, 50, 0, 10, 20]);
    assert_eq!(placed.requests[0].spans.len(), 2, "what no span tells is not shown as one");
    let mut two = one;
    two.push(span(3, 1, 10, 75).client().phase("provider"));
    let unplaced = join_one(two, told);
    assert_eq!(phases(&unplaced), [-1, -1, -1, 80, 0, 20]);
    assert!(unplaced.flags.has(Flag::ResponseMetricsUnplaced));
}

#[test]
fn noise_is_neither_painted_nor_shown_and_its_children_move_up() {
    let spans = vec![
        span(1, 0, 0, 100).server(),
        span(2, 1, 0, 100).role("noise").phase("gateway"),
        span(3, 2, 10, 50).phase("generation"),
    ];
    let explained = join(spans, vec![record(100)]);
    assert_eq!(phases(&explained.requests[0].request), [-1, -1, 50, 0, 0, 50]);
    assert_eq!(explained.requests[0].spans.len(), 2);
}

#[test]
fn a_lost_parent_is_mended_by_time_within_one_clock() {
    let spans = vec![
        span(1, 0, 0, 100).server(),
        span(2, 77, 10, 50).phase("generation"),
        span(3, 78, 10, 50).phase("gpu_queue").of("elsewhere"),
    ];
    let request = join_one(spans, record(100));
    assert_eq!(phases(&request), [-1, -1, 50, 0, 0, 50]);
    assert!(request.flags.has(Flag::DetachedSpans));
}

#[test]
fn parent_links_in_a_ring_are_cut() {
    let spans =
        vec![span(1, 3, 0, 100).server(), span(2, 1, 10, 50).phase("generation"), span(3, 2, 20, 10).phase("gateway")];
    assert_eq!(phases(&join_one(spans, record(100))), [10, -1, 40, 0, 0, 50]);
}

#[test]
fn a_system_that_leaves_out_a_phase_of_no_time_makes_it_known() {
    let waits = |inner: model::Span| {
        let silent = Value::Str("gpu_queue".to_owned());
        vec![span(1, 0, 0, 100).server().with("absent_is_zero", silent), inner]
    };
    let absent = join_one(waits(span(2, 1, 10, 50).phase("generation")), record(100));
    assert_eq!(phases(&absent), [-1, 0, 50, 0, 0, 50]);
    assert!(!absent.flags.has(Flag::QueueUnknown));
    let told = join_one(waits(span(2, 1, 10, 50).phase("gpu_queue")), record(100));
    assert_eq!(phases(&told), [-1, 50, -1, 0, 0, 50]);
}
