use super::*;
use crate::cell::cells;
use crate::summary::Absence;
use model::{
    Completeness, Dimension, Dimensions, Flag, Flags, Interval, JoinMethod, Labels, Observation, Readings, Slice,
    UnixNanos,
};

fn labels(client: &[(Dimension, &str)], server: &[(Dimension, &str)]) -> Labels {
    let mut labels = Labels::default();
    for (dimension, value) in client {
        labels.client.set(*dimension, Some(*value));
    }
    labels.all = labels.client.clone();
    for (dimension, value) in server {
        labels.all.set(*dimension, Some(*value));
    }
    labels
}

fn observation(labels: i64, state: State, result: ResultClass, readings: &[(Metric, f64)]) -> Observation {
    let mut values = Readings::NONE;
    for (metric, value) in readings {
        values.set(*metric, Some(*value));
    }
    Observation {
        labels,
        slice: Slice::of(UnixNanos(0), UnixNanos(0)),
        state,
        result: Some(result),
        flags: Flags::NONE,
        has_client: state != State::ServerOnly,
        has_server: state != State::ClientOnly,
        join_method: JoinMethod::TraceId,
        completeness: None,
        tells_rhythm: false,
        output_tokens: None,
        readings: values,
    }
}

fn contents(dictionary: Vec<Labels>, observations: &[Observation]) -> Contents {
    let dictionary: Dictionary = (0..).zip(dictionary).collect();
    Contents { cells: cells(observations).into_iter().collect(), dictionary }
}

fn question(filters: &[(Dimension, &str)], group_by: &[GroupKey]) -> Question {
    let filters = filters.iter().map(|(label, value)| (*label, BTreeSet::from([(*value).to_owned()])));
    let selection = Selection {
        window: Interval { start: UnixNanos(0), end: UnixNanos(1) },
        filters: filters.collect(),
        results: BTreeSet::from([ResultClass::Ok]),
    };
    Question { selection, group_by: group_by.to_vec(), quantiles: vec![Quantile::P50] }
}

fn summary(group: &Group, metric: Metric) -> &Summary {
    let found = group.metrics.iter().find(|(other, _)| *other == metric);
    &found.expect("a metric that is shown").1
}

/// Matched requests tell model and pool, lone records the model only: the pool comes from the server.
fn window() -> Contents {
    use Dimension::{Model, Pool};
    let dictionary = vec![
        labels(&[(Model, "m")], &[(Pool, "a")]),
        labels(&[(Model, "m")], &[(Pool, "b")]),
        labels(&[(Model, "m")], &[]),
        labels(&[(Model, "other")], &[]),
    ];
    let mut all = Vec::new();
    for i in 1..=10_u32 {
        let readings = [(Metric::GpuQueue, f64::from(i)), (Metric::Duration, f64::from(100 + i))];
        all.push(observation(i64::from(i % 2), State::Matched, ResultClass::Ok, &readings));
    }
    for _ in 0..5 {
        all.push(observation(2, State::ClientOnly, ResultClass::Ok, &[(Metric::Duration, 1.0)]));
        all.push(observation(3, State::ClientOnly, ResultClass::Ok, &[(Metric::Duration, 1.0)]));
    }
    contents(dictionary, &all)
}

#[test]
fn no_grouping_gives_one_group_even_without_requests() {
    let answer = question(&[], &[]).answer(&Contents::default());
    assert_eq!(answer.groups.len(), 1);
    assert_eq!(answer.groups[0].n, 0);
    let queue = summary(&answer.groups[0], Metric::GpuQueue);
    assert_eq!((queue.n, queue.coverage, queue.quantiles[0].value), (0, None, None));
    assert_eq!(queue.quantiles[0].interval.absence, Some(Absence::NoValues));
}

#[test]
fn a_label_that_only_servers_tell_filters_the_numbers_and_not_the_coverage() {
    let answer = question(&[(Dimension::Pool, "a")], &[]).answer(&window());
    assert_eq!(answer.coverage.not_filtered_by, [Dimension::Pool]);
    assert_eq!(answer.coverage.tally.client_records(), 20);
    let queue = summary(&answer.groups[0], Metric::GpuQueue);
    assert_eq!((answer.groups[0].n, queue.n, queue.coverage), (5, 5, Some(0.25)));
}

#[test]
fn what_clients_of_another_run_tell_does_not_narrow_this_runs_coverage() {
    use Dimension::{Model, Run};
    let dictionary = vec![
        labels(&[(Run, "a")], &[(Model, "m")]),
        labels(&[(Run, "a")], &[(Model, "other")]),
        labels(&[(Run, "a")], &[]),
        labels(&[(Run, "b"), (Model, "m")], &[]),
    ];
    let states = [State::Matched, State::Matched, State::ClientOnly, State::ClientOnly];
    let all: Vec<Observation> =
        (0..).zip(states).map(|(id, state)| observation(id, state, ResultClass::Ok, &[])).collect();
    let answer = question(&[(Run, "a"), (Model, "m")], &[]).answer(&contents(dictionary, &all));
    let tally = &answer.coverage.tally;
    assert_eq!((answer.groups[0].n, tally.matched(), tally.client_records()), (1, 2, 3));
    assert_eq!(answer.coverage.not_filtered_by, [Model]);
}

#[test]
fn a_run_that_nobody_names_has_no_records() {
    let answer = question(&[(Dimension::Run, "none")], &[]).answer(&window());
    assert_eq!(answer.coverage.tally.client_records(), 0);
    assert!(answer.coverage.not_filtered_by.is_empty());
}

#[test]
fn a_label_that_clients_tell_filters_both() {
    let answer = question(&[(Dimension::Model, "m")], &[]).answer(&window());
    assert_eq!(answer.coverage.not_filtered_by, []);
    assert_eq!(answer.coverage.tally.client_records(), 15);
    assert_eq!(answer.coverage.tally.join_coverage(), Some(10.0 / 15.0));
}

#[test]
fn a_lone_record_that_does_not_tell_what_servers_tell_may_belong() {
    let mut window = window();
    // One client tells its pool, so that pools filter; the lone records might have been of either pool.
    let told = labels(&[(Dimension::Model, "m"), (Dimension::Pool, "a")], &[]);
    window.dictionary.insert(9, told);
    let observed = observation(9, State::Matched, ResultClass::Ok, &[(Metric::GpuQueue, 7.0)]);
    window.cells.extend(cells([&observed]));
    let answer = question(&[(Dimension::Pool, "a")], &[]).answer(&window);
    assert_eq!(answer.coverage.not_filtered_by, []);
    assert_eq!((answer.coverage.tally.matched(), answer.coverage.tally.client_records()), (6, 16));
}

#[test]
fn only_requests_that_can_count_are_needed() {
    let window = window();
    let needed = |filters: &[(Dimension, &str)]| {
        question(filters, &[]).needed_labels(&window.dictionary).into_iter().collect::<Vec<_>>()
    };
    assert_eq!(needed(&[]), [0, 1, 2, 3]);
    assert_eq!(needed(&[(Dimension::Model, "m")]), [0, 1, 2]);
    // Only servers tell the pool: all requests are needed for the coverage.
    assert_eq!(needed(&[(Dimension::Pool, "a")]), [0, 1, 2, 3]);
}

#[test]
fn a_label_that_no_server_tells_is_not_assumed() {
    let dictionary = vec![labels(&[(Dimension::Run, "r")], &[]), labels(&[], &[])];
    let lone = |labels| observation(labels, State::ClientOnly, ResultClass::Ok, &[(Metric::Duration, 1.0)]);
    let answer = question(&[(Dimension::Run, "r")], &[]).answer(&contents(dictionary, &[lone(0), lone(1)]));
    assert_eq!(answer.coverage.tally.client_records(), 1);
}

#[test]
fn groups_carry_their_own_denominator() {
    let answer = question(&[], &[GroupKey::Dimension(Dimension::Model)]).answer(&window());
    let seen: Vec<_> = answer
        .groups
        .iter()
        .map(|group| (group.labels.0[0].1.as_deref(), group.n, group.coverage.tally.client_records()))
        .collect();
    assert_eq!(seen, [(Some("m"), 10, 15), (Some("other"), 0, 5)]);

    let by_pool = question(&[], &[GroupKey::Dimension(Dimension::Pool)]).answer(&window());
    let seen: Vec<_> = by_pool
        .groups
        .iter()
        .map(|group| (group.labels.0[0].1.as_deref(), group.n, group.coverage.tally.client_records()))
        .collect();
    assert_eq!(seen, [(None, 0, 20), (Some("a"), 5, 20), (Some("b"), 5, 20)]);
}

#[test]
fn durations_of_lone_records_count_and_their_phases_are_missing() {
    let answer = question(&[], &[]).answer(&window());
    let group = &answer.groups[0];
    assert_eq!((group.n, summary(group, Metric::GpuQueue).n, summary(group, Metric::Duration).n), (10, 10, 20));
    assert_eq!(answer.coverage.bias.verdict.suspected(), Some(true));
}

#[test]
fn what_was_cut_off_stands_beside_and_never_inside() {
    let dictionary = vec![labels(&[], &[])];
    let ok = |ms: f64| observation(0, State::Matched, ResultClass::Ok, &[(Metric::Duration, ms), (Metric::Ttft, 1.0)]);
    let mut all: Vec<_> = (1..=3_u32).map(|i| ok(f64::from(i))).collect();
    for _ in 0..4 {
        all.push(observation(0, State::ClientOnly, ResultClass::Timeout, &[(Metric::Duration, 60.0)]));
    }
    all.push(observation(0, State::Matched, ResultClass::Error, &[(Metric::Duration, 900.0)]));
    let answer = question(&[], &[]).answer(&contents(dictionary, &all));
    let duration = summary(&answer.groups[0], Metric::Duration);
    assert_eq!((duration.n, duration.quantiles[0].value, duration.quantiles[0].censored), (3, Some(2.0), Some(60.0)));
    let ttft = summary(&answer.groups[0], Metric::Ttft);
    assert_eq!((ttft.quantiles[0].value, ttft.quantiles[0].censored), (Some(1.0), Some(60.0)));
    assert_eq!(summary(&answer.groups[0], Metric::Gateway).quantiles[0].censored, None);
}

#[test]
fn exclusions_are_counted_by_reason_and_in_no_distribution() {
    let mut excluded = observation(0, State::Excluded, ResultClass::Ok, &[(Metric::Duration, 5.0)]);
    excluded.flags = Flags::from_iter([Flag::NegativeEnvelope, Flag::Late]);
    let answer = question(&[], &[]).answer(&contents(vec![labels(&[], &[])], &[excluded]));
    assert_eq!(answer.coverage.tally.excluded().get(&Flag::NegativeEnvelope), Some(&1));
    assert_eq!(summary(&answer.groups[0], Metric::Duration).n, 0);
}

#[test]
fn digests_of_the_same_cells_differ_by_their_method_only() {
    let window = window();
    let mut digested = window.clone();
    digested.cells = window.cells.iter().map(|(key, cell)| (*key, cell.clone().digested())).collect();
    let (exact, rough) = (question(&[], &[]).answer(&window), question(&[], &[]).answer(&digested));
    assert_eq!(exact.coverage.tally, rough.coverage.tally);
    let (exact, rough) = (summary(&exact.groups[0], Metric::GpuQueue), summary(&rough.groups[0], Metric::GpuQueue));
    assert_eq!((exact.n, exact.mean, exact.max), (rough.n, rough.mean, rough.max));
    assert_eq!((exact.method.name(), rough.method.name()), ("exact", "digest"));
}

#[test]
fn only_small_groups_are_read_whole() {
    let mut window = window();
    let key = window.cells[0].0;
    window.cells[0].1.counts.requests = EXACT_BELOW;
    let by_pool = question(&[], &[GroupKey::Dimension(Dimension::Pool)]);
    let exact = by_pool.exact_cells(&window);
    assert!(!exact.contains(&key) && exact.len() == window.cells.len() - 1);
    assert!(question(&[], &[]).exact_cells(&window).is_empty());
}

#[test]
fn what_was_cut_off_beside_a_small_group_is_read_whole_too() {
    let timeout = observation(0, State::ClientOnly, ResultClass::Timeout, &[(Metric::Duration, 60.0)]);
    let ok = observation(0, State::Matched, ResultClass::Ok, &[(Metric::Duration, 1.0)]);
    let mut window = contents(vec![labels(&[], &[])], &[timeout.clone(), ok]);
    assert_eq!(question(&[], &[]).exact_cells(&window).len(), 2);
    let timeouts = window.cells.iter_mut().find(|(key, _)| *key == CellKey::of(&timeout));
    timeouts.expect("its cell").1.counts.requests = EXACT_BELOW;
    assert!(!question(&[], &[]).exact_cells(&window).contains(&CellKey::of(&timeout)));
}

#[test]
fn an_unknown_dimension_groups_under_none() {
    let answer = question(&[], &[GroupKey::Dimension(Dimension::Region), GroupKey::Result]).answer(&window());
    let expected = vec![(GroupKey::Dimension(Dimension::Region), None), (GroupKey::Result, Some("ok".to_owned()))];
    assert_eq!(answer.groups.len(), 1);
    assert_eq!(answer.groups[0].labels.0, expected);
    assert_eq!(Dimensions::default().get(Dimension::Region), None);
}

/// Streamed answers of two models: whole ones, one that was cut off, one that failed, one whose client collided.
fn streams() -> Contents {
    use Dimension::{Model, Streaming};
    let dictionary =
        vec![labels(&[(Model, "m"), (Streaming, "true")], &[]), labels(&[(Model, "n"), (Streaming, "true")], &[])];
    let mut all = Vec::new();
    for i in 0..4_u32 {
        let gap = f64::from(10 + i) * 1e6;
        let mut whole = observation(i64::from(i % 2), State::Matched, ResultClass::Ok, &[(Metric::MaxGap, gap)]);
        (whole.completeness, whole.tells_rhythm, whole.output_tokens) = (Some(Completeness::Ok), true, Some(100));
        whole.flags.set_if(i == 1, Flag::SuspectedBuffering);
        all.push(whole);
    }
    let mut cut = observation(0, State::ClientOnly, ResultClass::Truncated, &[(Metric::MaxGap, 5e9)]);
    (cut.completeness, cut.tells_rhythm, cut.output_tokens) = (Some(Completeness::NoEnd), true, Some(7));
    cut.flags.set(Flag::SuspectedBuffering);
    let failed = observation(0, State::ClientOnly, ResultClass::Error, &[]);
    let mut collided = observation(0, State::Excluded, ResultClass::Ok, &[]);
    (collided.completeness, collided.output_tokens) = (Some(Completeness::Ok), Some(50));
    collided.flags.set(Flag::TraceIdCollision);
    all.extend([cut, failed, collided]);
    contents(dictionary, &all)
}

#[test]
fn what_was_cut_off_counts_in_completeness_and_output_and_not_in_gaps() {
    let answer = question(&[], &[]).answer(&streams());
    let group = &answer.groups[0];
    assert_eq!(summary(group, Metric::MaxGap).max, Some(13e6), "the gaps are those of the result asked for");
    assert_eq!(group.rhythm, Rhythm { judged: 4, suspected: 1, not_judged: 0 });
    assert_eq!(group.wholeness.classes, BTreeMap::from([(Completeness::Ok, 4), (Completeness::NoEnd, 1)]));
    assert_eq!(group.wholeness.not_told, 1, "the one that failed");
    assert_eq!(group.output, Output { tokens: 407, counted: 5, not_counted: 2 });
}

#[test]
fn streams_are_counted_by_group_and_by_result() {
    let by_model = question(&[], &[GroupKey::Dimension(Dimension::Model)]).answer(&streams());
    let [m, n] = by_model.groups.as_slice() else { panic!("two models, not {}", by_model.groups.len()) };
    assert_eq!((m.rhythm.suspected, n.rhythm.suspected), (0, 1));
    assert_eq!((m.wholeness.n(), n.wholeness.n()), (3, 2));
    assert_eq!((m.output.tokens, n.output.tokens), (207, 200));

    let mut by_result = question(&[], &[GroupKey::Result]);
    by_result.selection.results = BTreeSet::from(ResultClass::ALL);
    let answer = by_result.answer(&streams());
    let tokens: Vec<u64> = answer.groups.iter().map(|group| group.output.tokens).collect();
    assert_eq!(tokens.iter().sum::<u64>(), 407, "each request in one group: {tokens:?}");
}
