//! Design, sections 5 and 6: what an event log tells of its request.

use proptest::prelude::*;

use super::build::*;
use crate::{Explained, Progress, TraceInputs, explain};
use model::ReceivedLog;
use model::{
    Completeness, EventKind, EventLog, Flag, Nanos, Request, ResultClass, State, StreamEvent, StreamSummary, TraceId,
    UnixNanos,
};

/// A line with its client's clock in microseconds.
fn line(seq: i64, kind: EventKind, micros: i64, tokens: i64) -> StreamEvent {
    StreamEvent {
        client_time: Some(Nanos(micros * 1_000)),
        seq: Some(seq),
        kind,
        tokens: Some(tokens),
        batched: Some(false),
        service_time: None,
    }
}

/// The log of case `event-log`.
fn log() -> Vec<StreamEvent> {
    let mut lines = vec![
        line(1, EventKind::Connect, 1_000_000, 0),
        line(2, EventKind::Business, 2_100_300, 12),
        line(3, EventKind::Business, 2_155_200, 7),
        line(4, EventKind::Business, 2_290_700, 9),
    ];
    lines[3].batched = Some(true);
    lines
}

fn done(seq: i64, micros: i64) -> StreamEvent {
    line(seq, EventKind::Done, micros, 0)
}

fn arrived(request_id: Option<&str>, lines: Vec<StreamEvent>) -> ReceivedLog {
    let log = EventLog { trace_id: trace(), request_id: request_id.map(str::to_owned), lines };
    ReceivedLog { received_at: UnixNanos(5), log }
}

fn with_logs(inputs: TraceInputs, logs: Vec<ReceivedLog>) -> Explained {
    explain(TraceInputs { logs, ..inputs }, SETTLED, &read)
}

fn only(explained: Explained) -> Request {
    assert_eq!(explained.requests.len(), 1);
    explained.requests.into_iter().next().expect("one").request
}

fn alone(lines: Vec<StreamEvent>) -> Request {
    only(with_logs(inputs(vec![], vec![]), vec![arrived(Some("r"), lines)]))
}

fn near(got: Option<f64>, want: f64) -> bool {
    got.is_some_and(|got| (got - want).abs() < 1e-4 * want)
}

#[test]
fn the_figures_of_the_reference_case() {
    let request = alone(log());
    let client = request.client.expect("the log is the client's side");
    assert_eq!((client.ttft, client.duration), (Some(Nanos(1_100_300_000)), Some(Nanos(1_290_700_000))));
    let stream = request.stream.expect("a stream");
    assert_eq!(
        stream,
        StreamSummary {
            business_events: Some(3),
            batched_events: Some(1),
            // Of two gaps, 54.9 and 135.5 ms, the median is the first.
            p50_gap: Some(Nanos(54_900_000)),
            p95_gap: Some(Nanos(135_500_000)),
            p99_gap: Some(Nanos(135_500_000)),
            max_gap: Some(Nanos(135_500_000)),
            gaps_over_1s: Some(0),
            done_received: Some(false),
            last_seq: Some(4),
            missing_seq: Some(0),
            last_event: Some(Nanos(1_290_700_000)),
            tokens_after_first: Some(16),
            ..StreamSummary::default()
        }
    );
    assert_eq!((request.result, request.completeness), (Some(ResultClass::Truncated), Some(Completeness::NoEnd)));
    // 28 tokens in 1.2907 s; 27 and 16 tokens in 0.1904 s.
    assert!(near(request.rates.rate_e2e, 21.6937), "{:?}", request.rates);
    assert!(near(request.rates.rate_stream, 141.8067) && near(request.rates.rate_after_first, 84.0336));
    assert_eq!((request.output_tokens, request.state), (Some(28), State::ClientOnly));
}

#[test]
fn an_end_marker_and_no_hole_are_a_whole_answer() {
    let mut lines = log();
    lines.push(done(5, 2_400_000));
    let request = alone(lines.clone());
    assert_eq!((request.result, request.completeness), (Some(ResultClass::Ok), Some(Completeness::Ok)));
    assert_eq!(request.client.and_then(|client| client.duration), Some(ms(1_400)));
    // The last token, not the end marker, is where the rates stop.
    assert!(near(request.rates.rate_e2e, 21.6937));
    lines.remove(2);
    let holed = alone(lines);
    assert_eq!((holed.result, holed.completeness), (Some(ResultClass::Truncated), Some(Completeness::Missing)));
    assert_eq!(holed.stream.and_then(|stream| stream.missing_seq), Some(1));
}

#[test]
fn numbers_count_from_one_or_from_zero() {
    let missing = |seqs: &[i64]| {
        let lines = seqs.iter().map(|seq| line(*seq, EventKind::Business, 1_000 * seq, 1)).collect();
        alone(lines).stream.and_then(|stream| stream.missing_seq)
    };
    assert_eq!(missing(&[1, 2, 3]), Some(0));
    assert_eq!(missing(&[0, 1, 2, 3]), Some(0));
    assert_eq!(missing(&[0, 3]), Some(2));
    assert_eq!(missing(&[3]), Some(2));
    let mut unnumbered = log();
    unnumbered[1].seq = None;
    assert_eq!(alone(unnumbered).stream.and_then(|stream| stream.missing_seq), None);
}

#[test]
fn without_a_connect_there_is_no_ttft_and_no_duration() {
    let request = alone(log().split_off(1));
    assert_eq!(request.client.map(|client| (client.ttft, client.duration)), Some((None, None)));
    assert_eq!(request.stream.and_then(|stream| stream.max_gap), Some(Nanos(135_500_000)));
    assert_eq!(request.rates.rate_e2e, None);
}

#[test]
fn a_line_without_a_time_may_have_been_anywhere() {
    let mut lines = log();
    lines[2].client_time = None;
    let request = alone(lines);
    assert_eq!(request.client.map(|client| client.ttft), Some(None));
    let stream = request.stream.expect("a stream");
    assert_eq!((stream.business_events, stream.max_gap, stream.gaps_over_1s), (Some(3), None, None));
    assert_eq!((request.output_tokens, stream.tokens_after_first), (Some(28), None));
}

#[test]
fn heartbeats_are_no_tokens_and_stall_nothing() {
    let mut lines = log();
    lines.push(line(5, EventKind::Heartbeat, 2_200_000, 0));
    lines.push(line(6, EventKind::Business, 4_000_000, 1));
    let stream = alone(lines).stream.expect("a stream");
    assert_eq!((stream.business_events, stream.gaps_over_1s), (Some(4), Some(1)));
}

#[test]
fn a_log_is_open_until_its_end_marker_or_a_long_silence() {
    let state = |lines: Vec<StreamEvent>, quiet_since: i64| {
        let progress = Progress { quiet_since: UnixNanos(quiet_since), ..SETTLED };
        let logs = vec![arrived(None, lines)];
        let explained = explain(TraceInputs { logs, ..inputs(vec![], vec![]) }, progress, &read);
        let open_since = explained.open_since;
        let request = only(explained);
        (request.state, request.result, request.completeness, open_since)
    };
    assert_eq!(state(log(), 4), (State::Pending, None, None, Some(UnixNanos(5))));
    let closed = (State::ClientOnly, Some(ResultClass::Truncated), Some(Completeness::NoEnd), None);
    assert_eq!(state(log(), 5), closed);
    let mut whole = log();
    whole.push(done(5, 2_300_000));
    assert_eq!(state(whole, 4), (State::ClientOnly, Some(ResultClass::Ok), Some(Completeness::Ok), None));
}

#[test]
fn the_log_that_is_silent_for_longest_is_looked_at_first() {
    let progress = Progress { quiet_since: UnixNanos(0), ..SETTLED };
    let later = ReceivedLog { received_at: UnixNanos(9), ..arrived(Some("b"), log()) };
    let logs = vec![later, arrived(Some("a"), log())];
    let explained = explain(TraceInputs { logs, ..inputs(vec![], vec![]) }, progress, &read);
    assert_eq!((explained.requests.len(), explained.open_since), (2, Some(UnixNanos(5))));
}

#[test]
fn a_long_pause_is_suspected_to_be_a_hang_and_closes_nothing() {
    let joined = |lines: Vec<StreamEvent>, now: i64, closed: bool| {
        let quiet_since = UnixNanos(if closed { 5 } else { 4 });
        let progress = Progress { quiet_since, hang: ms(200), now: UnixNanos(now), ..SETTLED };
        let logs = vec![arrived(None, lines)];
        let request = only(explain(TraceInputs { logs, ..inputs(vec![], vec![]) }, progress, &read));
        (request.state, request.flags.has(Flag::SuspectedHang))
    };
    let silent = ms(200).0 + 5;
    assert_eq!(joined(log(), silent - 1, false), (State::Pending, false));
    assert_eq!(joined(log(), silent, false), (State::Pending, true));
    // Once it is closed, what counts is the pause between two tokens, by the client's clock: the longest was 135.5 ms.
    assert_eq!(joined(log(), silent, true), (State::ClientOnly, false));
    let mut paused = log();
    paused.push(line(5, EventKind::Business, 2_490_700, 1));
    assert_eq!(joined(paused.clone(), 6, false), (State::Pending, true));
    paused.push(done(6, 2_500_000));
    assert_eq!(joined(paused, silent, false), (State::ClientOnly, true));
}

#[test]
fn a_log_completes_a_record_and_changes_nothing_that_was_measured() {
    let mut measured = record(1_500);
    measured.request_id = Some("r".to_owned());
    measured.output_tokens = Some(30);
    measured.stream = Some(StreamSummary { business_events: Some(9), ..StreamSummary::default() });
    for request_id in [Some("r"), None] {
        let explained = with_logs(inputs(vec![], vec![measured.clone()]), vec![arrived(request_id, log())]);
        let request = only(explained);
        let client = request.client.expect("a client");
        assert_eq!((client.duration, client.ttft), (Some(ms(1_500)), Some(Nanos(1_100_300_000))));
        assert_eq!((request.output_tokens, request.result), (Some(30), Some(ResultClass::Ok)));
        let stream = request.stream.expect("a stream");
        assert_eq!((stream.business_events, stream.max_gap), (Some(9), Some(Nanos(135_500_000))));
        assert_eq!(request.completeness, Some(Completeness::NoEnd));
    }
}

#[test]
fn requests_of_one_trace_keep_their_logs_apart() {
    let of = |request_id: &str, span: u64| {
        let mut record = record(1_500);
        (record.request_id, record.span_id) = (Some(request_id.to_owned()), Some(id(span)));
        record
    };
    let logs = vec![arrived(Some("a"), log()), arrived(Some("b"), vec![line(1, EventKind::Connect, 0, 0)])];
    let explained = with_logs(inputs(vec![], vec![of("a", 90), of("b", 91)]), logs);
    let told: Vec<_> = explained.requests.iter().map(|joined| joined.request.client.and_then(|c| c.ttft)).collect();
    assert_eq!(told, [Some(Nanos(1_100_300_000)), None]);
    // Another request's log is one of its own, never this record's.
    let explained = with_logs(inputs(vec![], vec![of("a", 90)]), vec![arrived(Some("c"), log())]);
    let ids: Vec<_> = explained.requests.iter().map(|joined| joined.request.request_id.clone()).collect();
    assert_eq!(ids, [Some("a".to_owned()), Some("c".to_owned())]);
}

#[test]
fn lines_that_tell_only_the_trace_belong_to_its_one_request() {
    let mut lines = log();
    let rest = lines.split_off(1);
    let logs = vec![arrived(Some("r"), lines), arrived(None, rest)];
    assert_eq!(only(with_logs(inputs(vec![], vec![]), logs)).output_tokens, Some(28));
}

#[test]
fn a_log_meets_its_spans() {
    let spans = vec![span(1, 0, 0, 1_200).server().number("first_token_event", 1_000)];
    let mut lines = log();
    lines.push(done(5, 2_300_000));
    let request = only(with_logs(inputs(spans, vec![]), vec![arrived(Some("r"), lines)]));
    assert_eq!((request.state, request.network_envelope), (State::Matched, Some(ms(100))));
    assert_eq!(request.ttft.map(|ttft| ttft.envelope), Some(Nanos(100_300_000)));
}

#[test]
fn an_id_that_stands_for_a_request_id_is_flagged() {
    let mut inputs = inputs(vec![], vec![]);
    inputs.trace_id = TraceId::of_request_id("r");
    let request = only(with_logs(inputs, vec![arrived(Some("r"), log())]));
    assert!(request.flags.has(Flag::TraceIdUnknown));
    assert!(!alone(log()).flags.has(Flag::TraceIdUnknown));
}

fn lines() -> impl Strategy<Value = Vec<StreamEvent>> {
    let line = (0_u32..4, prop::option::of(0_i64..8), prop::option::of(0_i64..50), prop::option::of(0_i64..3));
    let line = line.prop_map(|(kind, seq, micros, tokens)| StreamEvent {
        kind: EventKind::from_number(kind).expect("a kind"),
        client_time: micros.map(|micros| Nanos(1_000 * micros)),
        seq,
        tokens,
        batched: None,
        service_time: None,
    });
    prop::collection::vec(line, 1..12)
}

proptest! {
    #[test]
    fn neither_the_order_nor_the_uploads_nor_copies_of_lines_matter(
        lines in lines(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..3), seed in any::<u64>(),
    ) {
        let progress = Progress { hang: Nanos(20_000), ..SETTLED };
        let joined = |logs| only(explain(TraceInputs { logs, ..inputs(vec![], vec![]) }, progress, &read));
        let whole = joined(vec![arrived(Some("r"), lines.clone())]);
        let mut shuffled = lines.clone();
        shuffled.extend(lines.iter().take(seed as usize % 4).copied());
        shuffled.rotate_left(seed as usize % lines.len());
        shuffled.reverse();
        let mut parts = vec![shuffled];
        for cut in cuts {
            let rest = parts.last_mut().map(|last| last.split_off(cut.index(last.len() + 1))).expect("a part");
            parts.push(rest);
        }
        let later = |(at, part)| ReceivedLog { received_at: UnixNanos(at), ..arrived(Some("r"), part) };
        prop_assert_eq!(joined((5..).zip(parts).map(later).collect()), whole);
    }
}

/// A log of ten bursts of eight events, 400 ms apart, or of the same events at an even pace.
fn paced(bursts: bool) -> Vec<StreamEvent> {
    let mut lines = vec![line(1, EventKind::Connect, 1_000_000, 0)];
    for n in 0..80 {
        let micros = if bursts { n / 8 * 400_000 + n % 8 * 100 } else { n * 50_000 };
        lines.push(line(n + 2, EventKind::Business, 1_300_000 + micros, 1));
    }
    lines.push(done(82, 6_000_000));
    lines
}

#[test]
fn a_log_tells_a_buffer_on_the_way_with_its_evidence() {
    let request = alone(paced(true));
    assert!(request.flags.has(Flag::SuspectedBuffering));
    let stream = request.stream.expect("a stream");
    assert_eq!((stream.buffered_events, stream.buffered_share()), (Some(80), Some(1.0)));
    assert_eq!((stream.buffer_silence, stream.buffer_burst), (Some(Nanos(399_300_000)), Some(8)));
    assert!(stream.p50_gap < Some(Nanos(1_000_000)), "the median gap looks fine");

    let request = alone(paced(false));
    assert!(!request.flags.has(Flag::SuspectedBuffering));
    let stream = request.stream.expect("a stream");
    assert_eq!((stream.buffered_events, stream.buffer_silence, stream.buffer_burst), (Some(0), None, None));
}

#[test]
fn lines_that_came_together_tell_a_buffer_that_the_clock_does_not() {
    let mut lines = paced(false);
    lines.iter_mut().filter(|line| line.kind == EventKind::Business).for_each(|line| line.batched = Some(true));
    let without_silence = alone(lines.clone());
    assert!(!without_silence.flags.has(Flag::SuspectedBuffering), "50 ms are no silence");
    let half = lines.len() / 2;
    lines[half..].iter_mut().for_each(|line| line.client_time = line.client_time.map(|at| at + ms(700)));
    let request = alone(lines);
    assert!(request.flags.has(Flag::SuspectedBuffering));
    assert_eq!(request.stream.and_then(|stream| stream.buffered_events), None, "no evidence but the lines' own");
}

#[test]
fn tokens_that_no_number_holds_are_unknown() {
    let mut lines = vec![line(0, EventKind::Connect, 0, 0)];
    lines.extend((1..4).map(|seq| line(seq, EventKind::Business, seq, i64::MAX / 2)));
    lines.push(done(4, 9));
    let request = alone(lines);
    assert_eq!((request.output_tokens, request.result), (None, Some(ResultClass::Ok)));
    assert_eq!(request.stream.and_then(|stream| stream.tokens_after_first), Some(i64::MAX - 1));
}
