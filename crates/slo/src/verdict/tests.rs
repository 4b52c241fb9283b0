use super::*;
use crate::fixtures::{WINDOW, contents, labels, objective, only, q, quantile, request, verdict};
use crate::objective::{ColdStarts, Goal};
use crate::{Indicator, Outcome, Tally, outcome};
use model::{Dimension, Labels, Metric, Observation, ResultClass, State};

const QUEUE: f64 = 250e6;

fn queued(count: usize, millis: f64) -> Vec<Observation> {
    let readings = [(Metric::GpuQueue, millis * 1e6), (Metric::Duration, millis * 2e6)];
    vec![request(State::Matched, ResultClass::Ok, &readings); count]
}

fn lone(count: usize, result: ResultClass, duration_ms: f64) -> Vec<Observation> {
    vec![request(State::ClientOnly, result, &[(Metric::Duration, duration_ms * 1e6)]); count]
}

fn queue_p95() -> Objective {
    quantile(Metric::GpuQueue, "0.95", QUEUE)
}

fn gap_names(verdict: &Verdict) -> Vec<&'static str> {
    let Status::NoVerdict(gaps) = &verdict.status else { return Vec::new() };
    gaps.iter().map(Gap::code).collect()
}

#[test]
fn the_point_estimate_decides_between_the_two_ends() {
    // Of 400 the interval of the 0.95-quantile goes from the 371st value to the 389th, the quantile is the 380th.
    let table = [
        (400, Status::Ok { at_risk: false }, false),
        (389, Status::Ok { at_risk: false }, false),
        (388, Status::Ok { at_risk: true }, false),
        (380, Status::Ok { at_risk: true }, false),
        (379, Status::Broken, false),
        (371, Status::Broken, false),
        (370, Status::Broken, true),
        (0, Status::Broken, true),
    ];
    for (good, status, confirmed) in table {
        let verdict = verdict(&queue_p95(), &[queued(good, 250.0), queued(400 - good, 250.000_001)].concat());
        assert_eq!((&verdict.status, verdict.confirmed), (&status, confirmed), "{good}");
        assert_eq!(verdict.evidence.tally, Tally { good: good as u64, bad: 400 - good as u64, ..Tally::default() });
    }
}

#[test]
fn an_objective_may_let_the_interval_decide() {
    let patient = Objective { straddling: Straddling::Interval, ..queue_p95() };
    for (good, status) in
        [(379, Status::Ok { at_risk: true }), (371, Status::Ok { at_risk: true }), (370, Status::Broken)]
    {
        let verdict = verdict(&patient, &[queued(good, 1.0), queued(400 - good, 900.0)].concat());
        assert_eq!(verdict.status, status, "{good}");
    }
}

#[test]
fn coverage_of_62_percent_gives_no_verdict() {
    let requests = [queued(620, 400.0), lone(380, ResultClass::Ok, 500.0)].concat();
    let found = verdict(&queue_p95(), &requests);
    assert_eq!(found.status, Status::NoVerdict(vec![Gap::LowCoverage { coverage: Some(0.62), min_coverage: 0.9 }]));
    assert!(!found.confirmed, "although every known value is past the threshold");
    assert_eq!((found.evidence.client_records, found.evidence.join_coverage), (1000, Some(0.62)));
    assert_eq!((found.evidence.n, found.evidence.tally.missing), (620, 380));
    let content = Objective { min_coverage: 0.62, ..queue_p95() };
    assert_eq!(verdict(&content, &requests).status, Status::Broken);
    // What the client itself tells does not need the spans.
    let duration = quantile(Metric::Duration, "0.95", 600e6);
    assert_eq!(verdict(&duration, &requests).evidence.n, 1000);
    assert_eq!(verdict(&duration, &requests).status, Status::Broken);
}

#[test]
fn a_phase_that_is_unknown_in_matched_requests_is_low_coverage_too() {
    let unknown = vec![request(State::Matched, ResultClass::Ok, &[(Metric::Duration, 9e6)]); 200];
    let found = verdict(&queue_p95(), &[queued(300, 1.0), unknown].concat());
    assert_eq!((found.evidence.join_coverage, found.evidence.phase_coverage), (Some(1.0), Some(0.6)));
    assert_eq!(gap_names(&found), ["low_coverage"]);
}

#[test]
fn every_gap_is_listed() {
    let demanding = Objective { require_bounds: true, min_coverage: 0.99, ..queue_p95() };
    let observations = [queued(50, 1.0), lone(5, ResultClass::Ok, 9.0)].concat();
    let contents = contents(vec![Labels::default()], &observations);
    let evidence = |filled| Evidence::of(&demanding, WINDOW, &contents, Some(filled));
    let found = Verdict::of(&demanding, evidence(0.7));
    assert_eq!(gap_names(&found), ["too_few", "low_coverage", "window_not_full", "bounds_straddle"]);
    assert_eq!(gap_names(&Verdict::of(&demanding, evidence(0.8))), ["too_few", "low_coverage", "bounds_straddle"]);
    let none = verdict(&Objective { min_n: 0, ..queue_p95() }, &[]);
    assert_eq!(gap_names(&none), ["too_few", "low_coverage"], "from nothing follows nothing");
    assert_eq!(none.evidence.value, None);
}

#[test]
fn bounds_decide_only_where_they_are_required() {
    // 400 known and 28 missing: the 407th of 428 decides. Good for sure from 407 on, broken for sure below 379.
    let bounded = Objective { require_bounds: true, ..queue_p95() };
    for (good, status) in [(378, "broken"), (379, "no_verdict"), (400, "no_verdict")] {
        let requests = [queued(good, 1.0), queued(400 - good, 900.0), lone(28, ResultClass::Ok, 9.0)].concat();
        assert_eq!(verdict(&bounded, &requests).status.name(), status, "{good}");
        assert_ne!(verdict(&queue_p95(), &requests).status.name(), "no_verdict");
    }
    let requests = [queued(420, 1.0), queued(10, 900.0), lone(5, ResultClass::Ok, 9.0)].concat();
    assert_eq!(verdict(&bounded, &requests).status, Status::Ok { at_risk: false });
}

#[test]
fn what_was_cut_off_is_bad_after_the_threshold_and_nothing_before() {
    use Outcome::{Bad, Good, LeftOut, Missing, Outside};
    use ResultClass::{Cancelled, Error, Ok, Timeout, Truncated};
    use State::{ClientOnly, Excluded, Matched, Pending, ServerOnly};
    let [queue, ttft, duration] =
        [queue_p95(), quantile(Metric::Ttft, "0.9", 1e9), quantile(Metric::Duration, "0.9", 1e9)];
    let rate = quantile(Metric::RateStream, "0.9", 30.0);
    let (queued, lasted, first, speed) = (Metric::GpuQueue, Metric::Duration, Metric::Ttft, Metric::RateStream);
    type Case<'a> = (&'a Objective, State, ResultClass, &'a [(Metric, f64)], Outcome);
    let table: &[Case<'_>] = &[
        (&queue, Matched, Ok, &[(queued, 250e6)], Good),
        (&queue, Matched, Ok, &[(queued, 251e6)], Bad),
        (&queue, Matched, Ok, &[], Missing),
        (&queue, ClientOnly, Ok, &[(lasted, 9e6)], Missing),
        (&queue, Excluded, Ok, &[(queued, 9e6)], Missing),
        (&queue, Pending, Ok, &[(queued, 9e6)], Outside),
        (&queue, ServerOnly, Ok, &[(queued, 9e6)], Outside),
        (&queue, Matched, Error, &[(queued, 9e9)], Outside),
        (&queue, ClientOnly, Error, &[], Outside),
        (&queue, Matched, Timeout, &[(queued, 251e6)], Bad),
        (&queue, Matched, Truncated, &[(queued, 9e6)], LeftOut),
        (&queue, ClientOnly, Cancelled, &[(lasted, 250e6)], LeftOut),
        (&queue, ClientOnly, Cancelled, &[(Metric::Wall, 250e6)], LeftOut),
        (&queue, ClientOnly, Timeout, &[(lasted, 60e9)], Missing),
        (&queue, ClientOnly, Timeout, &[], Missing),
        (&queue, Excluded, Cancelled, &[(lasted, 9e6)], Missing),
        (&ttft, ClientOnly, Timeout, &[(lasted, 60e9)], Bad),
        (&ttft, ClientOnly, Timeout, &[(lasted, 60e9), (first, 1e9)], LeftOut),
        (&ttft, ClientOnly, Cancelled, &[(lasted, 1e9)], LeftOut),
        (&ttft, ClientOnly, Cancelled, &[(Metric::Wall, 60e9)], Missing),
        (&ttft, ClientOnly, Ok, &[(lasted, 60e9)], Missing),
        (&duration, ClientOnly, Timeout, &[(lasted, 60e9)], Bad),
        (&duration, ClientOnly, Timeout, &[(Metric::Wall, 1e9)], LeftOut),
        (&duration, ClientOnly, Truncated, &[(lasted, 1e9)], LeftOut),
        (&duration, ClientOnly, Ok, &[(lasted, 1e9)], Good),
        (&rate, ClientOnly, Ok, &[(speed, 30.0)], Good),
        (&rate, ClientOnly, Ok, &[(speed, 29.9)], Bad),
        (&rate, ClientOnly, Truncated, &[(speed, 29.9)], Bad),
        (&rate, ClientOnly, Truncated, &[(speed, 31.0)], LeftOut),
        (&rate, ClientOnly, Truncated, &[(lasted, 5.0)], Missing),
    ];
    for (objective, state, result, readings, expected) in table {
        let found = outcome(objective, &request(*state, *result, readings), &Labels::default());
        assert_eq!(found, *expected, "{} {state:?} {result:?} {readings:?}", objective.indicator);
    }
}

#[test]
fn a_storm_of_fast_errors_changes_the_error_share_and_no_latency() {
    let slow = [queued(300, 1.0), queued(100, 900.0)].concat();
    let errors = lone(3000, ResultClass::Error, 1.0);
    let storm = [slow.clone(), errors].concat();
    for metric in [Metric::GpuQueue, Metric::Duration] {
        let objective = quantile(metric, "0.95", QUEUE);
        assert_eq!(verdict(&objective, &storm), verdict(&objective, &slow));
    }
    let share = objective(Indicator::ResultShare(ResultClass::Error), Goal::Share { target: q("0.99") }, 0.01);
    let found = verdict(&share, &storm);
    assert_eq!((found.status, found.confirmed), (Status::Broken, true));
    assert_eq!(found.evidence.value, Some(3000.0 / 3400.0));
    assert_eq!(verdict(&share, &slow).evidence.value, Some(0.0));
}

#[test]
fn timeouts_do_not_turn_a_latency_green() {
    let timeouts = lone(40, ResultClass::Timeout, 60_000.0);
    let ttft = quantile(Metric::Ttft, "0.95", 1e9);
    let fast = vec![request(State::ClientOnly, ResultClass::Ok, &[(Metric::Ttft, 1e6)]); 400];
    assert_eq!(verdict(&ttft, &fast).status, Status::Ok { at_risk: false });
    let found = verdict(&ttft, &[fast, timeouts.clone()].concat());
    assert_eq!((found.status, found.confirmed), (Status::Broken, true));
    assert_eq!(found.evidence.value, Some(60e9));
    // Their queue time is unknown: it is not taken for a good one either.
    let found = verdict(&queue_p95(), &[queued(200, 1.0), timeouts].concat());
    assert_eq!(gap_names(&found), ["low_coverage"]);
}

#[test]
fn for_a_rate_the_quantile_is_the_share_that_is_at_least_as_fast() {
    let rate = quantile(Metric::RateStream, "0.95", 30.0);
    let run = |slow: u32| -> Vec<Observation> {
        let speeds = (0..400).map(|i| if i < slow { 10.0 } else { 30.0 + f64::from(i) });
        speeds.map(|speed| request(State::ClientOnly, ResultClass::Ok, &[(Metric::RateStream, speed)])).collect()
    };
    // The 380th from above is the 21st from below.
    let found = verdict(&rate, &run(20));
    assert_eq!((found.evidence.value, &found.status), (Some(50.0), &Status::Ok { at_risk: true }));
    // From the 389th to the 371st from above.
    assert_eq!((found.evidence.interval.lower, found.evidence.interval.upper), (Some(10.0), Some(59.0)));
    let found = verdict(&rate, &run(21));
    assert_eq!((found.evidence.value, &found.status, found.confirmed), (Some(10.0), &Status::Broken, false));
    assert!(verdict(&rate, &run(30)).confirmed);
    assert_eq!(verdict(&rate, &run(11)).status, Status::Ok { at_risk: false });
}

#[test]
fn shares_and_ratios_are_shown_with_their_exact_interval() {
    let ratio = objective(Indicator::Metric(Metric::GpuQueue), Goal::Ratio { target: q("0.95") }, QUEUE);
    let found = verdict(&ratio, &[queued(370, 1.0), queued(30, 900.0)].concat());
    assert_eq!((found.evidence.value, found.confirmed), (Some(0.925), true));
    let interval = found.evidence.interval;
    assert!(interval.upper.expect("an end") < 0.95 && interval.lower.expect("an end") > 0.89, "{interval:?}");
    let join = objective(Indicator::JoinCoverage, Goal::Share { target: q("0.95") }, 0.95);
    let found = verdict(&join, &[queued(940, 1.0), lone(60, ResultClass::Error, 1.0)].concat());
    assert_eq!((found.evidence.value, found.status), (Some(0.94), Status::Broken));
    assert_eq!((found.evidence.tally.good, found.evidence.tally.bad), (940, 60));
}

#[test]
fn the_pooled_share_is_of_all_time_and_the_other_of_each_request() {
    let of = |unattributed: f64, total: f64| {
        let share = (Metric::UnattributedShare, unattributed / total);
        request(
            State::Matched,
            ResultClass::Ok,
            &[(Metric::Unattributed, unattributed), (Metric::ServerTotal, total), share],
        )
    };
    let requests = [vec![of(0.0, 100.0); 99], vec![of(5000.0, 10_000.0); 51]].concat();
    let pooled = objective(Indicator::UnattributedShare, Goal::Pooled, 0.25);
    let found = verdict(&pooled, &requests);
    assert_eq!(found.evidence.value, Some(255_000.0 / 519_900.0));
    assert_eq!((found.evidence.n, &found.status, found.confirmed), (150, &Status::Broken, true));
    let median = quantile(Metric::UnattributedShare, "0.5", 0.25);
    assert_eq!(verdict(&median, &requests).evidence.value, Some(0.0));
    let unmatched = [requests, lone(50, ResultClass::Ok, 1.0)].concat();
    assert_eq!(gap_names(&verdict(&pooled, &unmatched)), ["low_coverage"]);
}

#[test]
fn cold_starts_are_left_aside_unless_they_are_asked_for() {
    let dictionary = || {
        vec![
            labels(&[], &[]),
            labels(&[], &[(Dimension::ColdStart, "true")]),
            labels(&[], &[(Dimension::ColdStart, "false")]),
        ]
    };
    let mut observations = queued(30, 1.0);
    for (place, observation) in observations.iter_mut().enumerate() {
        observation.labels = (place % 3) as i64;
    }
    for (cold_starts, n) in [(ColdStarts::Excluded, 20), (ColdStarts::Included, 30), (ColdStarts::Only, 10)] {
        let mut objective = queue_p95();
        objective.conditions.cold_starts = cold_starts;
        let evidence = Evidence::of(&objective, WINDOW, &contents(dictionary(), &observations), None);
        assert_eq!((evidence.n, evidence.join_coverage), (n, Some(1.0)), "{cold_starts:?}");
    }
}

#[test]
fn a_label_that_only_spans_tell_does_not_hide_requests_without_spans() {
    let dictionary =
        vec![labels(&[], &[(Dimension::Pool, "a100")]), labels(&[], &[(Dimension::Pool, "h100")]), labels(&[], &[])];
    let mut observations = [queued(300, 1.0), queued(300, 900.0), lone(400, ResultClass::Ok, 9.0)].concat();
    for (place, observation) in observations.iter_mut().enumerate() {
        observation.labels = (place / 300).min(2) as i64;
    }
    observations.truncate(1000);
    for observation in &mut observations[600..] {
        observation.labels = 2;
    }
    let contents = contents(dictionary, &observations);
    let pool = only(queue_p95(), Dimension::Pool, "a100");
    let found = Verdict::of(&pool, Evidence::of(&pool, WINDOW, &contents, None));
    assert_eq!((found.evidence.n, found.evidence.tally.missing, found.evidence.unplaced), (300, 0, 400));
    assert_eq!(found.evidence.join_coverage, Some(0.6));
    assert_eq!(found.evidence.not_filtered_by, [Dimension::Pool]);
    assert_eq!(gap_names(&found), ["low_coverage"]);
    let join =
        only(objective(Indicator::JoinCoverage, Goal::Share { target: q("0.95") }, 0.95), Dimension::Pool, "a100");
    assert_eq!(Evidence::of(&join, WINDOW, &contents, None).value, Some(0.6), "as if they were not filtered");
}
