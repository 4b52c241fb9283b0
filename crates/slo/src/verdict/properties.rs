use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::*;
use crate::fixtures::{WINDOW, contents, labels, objective, only, request, verdict};
use crate::objective::{ColdStarts, Goal};
use crate::{Indicator, Tally, outcome};
use model::{Dimension, Flag, Labels, Metric, Observation, ResultClass, State};
use stats::sample::Method;
use stats::{Contents, Quantile};

const METRICS: [Metric; 7] = [
    Metric::GpuQueue,
    Metric::Duration,
    Metric::Ttft,
    Metric::TtftEnvelope,
    Metric::Setup,
    Metric::RateStream,
    Metric::StallRate,
];

/// Values that often meet the threshold itself.
fn value() -> impl Strategy<Value = f64> {
    prop_oneof![(0_u8..20).prop_map(f64::from), 0.0_f64..20.0]
}

fn any_request() -> impl Strategy<Value = Observation> {
    let readings = prop::collection::vec((select(&METRICS[..]), value()), 0..7);
    let wall = prop::option::of(value());
    let flags =
        prop::collection::vec(select(&[Flag::HeadersOnly, Flag::ClientFromSpan, Flag::TraceIdCollision][..]), 0..2);
    let told = (select(&State::ALL[..]), prop::option::of(select(&ResultClass::ALL[..])), any::<bool>(), 0_i64..4);
    (readings, wall, flags, told).prop_map(|(readings, wall, flags, (state, result, excluded_client, labels))| {
        let mut request = request(state, ResultClass::Ok, &readings);
        request.readings.set(Metric::Wall, wall);
        request.flags = flags.into_iter().collect();
        (request.result, request.labels) = (result, labels);
        if state == State::Excluded {
            request.has_client = excluded_client;
        }
        request
    })
}

fn dictionary() -> Vec<Labels> {
    vec![
        labels(&[(Dimension::Model, "m"), (Dimension::Scenario, "steady")], &[(Dimension::ColdStart, "true")]),
        labels(&[(Dimension::Scenario, "steady")], &[(Dimension::Model, "m"), (Dimension::ColdStart, "false")]),
        labels(&[(Dimension::Model, "other")], &[]),
        labels(&[], &[]),
    ]
}

fn any_target() -> impl Strategy<Value = Quantile> {
    (1_u32..100).prop_map(|percent| format!("0.{percent:02}").parse().expect("a quantile"))
}

fn any_objective() -> impl Strategy<Value = Objective> {
    let metrics = METRICS.map(Indicator::Metric).to_vec();
    let shares = [Indicator::ResultShare(ResultClass::Timeout), Indicator::JoinCoverage];
    let indicators = [metrics, shares.to_vec()].concat();
    let cold_starts = select(&[ColdStarts::Excluded, ColdStarts::Included, ColdStarts::Only][..]);
    let conditions =
        (prop::option::of(select(&[(Dimension::Model, "m"), (Dimension::Scenario, "steady")][..])), cold_starts);
    (select(indicators), any_target(), 0_u8..20, any::<bool>(), conditions).prop_map(
        |(indicator, target, threshold, as_ratio, (condition, cold_starts))| {
            let goal = match indicator {
                Indicator::Metric(_) if as_ratio => Goal::Ratio { target },
                Indicator::Metric(_) => Goal::Quantile { target },
                _ => Goal::Share { target },
            };
            let mut objective = objective(indicator, goal, f64::from(threshold));
            if let Some((label, value)) = condition {
                objective = only(objective, label, value);
            }
            objective.conditions.cold_starts = cold_starts;
            objective
        },
    )
}

/// A latency's objective that every window can tell something of.
fn any_latency() -> impl Strategy<Value = Objective> {
    let metric = select(&[Metric::GpuQueue, Metric::Duration, Metric::Ttft][..]);
    (metric, any_target(), 0_u8..20, any::<bool>()).prop_map(|(metric, target, threshold, patient)| {
        let goal = Goal::Quantile { target };
        let straddling = if patient { Straddling::Interval } else { Straddling::PointEstimate };
        let objective = objective(Indicator::Metric(metric), goal, f64::from(threshold));
        Objective { min_n: 1, min_coverage: 0.0, straddling, ..objective }
    })
}

fn requests(most: usize) -> impl Strategy<Value = Vec<Observation>> {
    prop::collection::vec(any_request(), 0..most)
}

/// From the worst to the best.
fn goodness(status: &Status) -> u8 {
    match status {
        Status::Broken => 0,
        Status::NoVerdict(_) => 1,
        Status::Ok { at_risk: true } => 2,
        Status::Ok { at_risk: false } => 3,
    }
}

proptest! {
    #[test]
    fn cells_count_what_each_request_is(objective in any_objective(), requests in requests(60)) {
        let dictionary = dictionary();
        let mut tally = Tally::default();
        for request in &requests {
            tally.add(outcome(&objective, request, &dictionary[request.labels as usize]));
        }
        let evidence = Evidence::of(&objective, WINDOW, &contents(dictionary, &requests), None);
        prop_assert_eq!(evidence.tally, tally);
        prop_assert_eq!((evidence.n, evidence.phase_coverage), (tally.n(), tally.coverage()));
        prop_assert_eq!(evidence.rank_error, 0);
    }

    #[test]
    fn too_few_good_ones_means_that_the_value_is_past_the_threshold(
        mut objective in any_objective(),
        target in any_target(),
        requests in requests(80),
    ) {
        objective.goal = Goal::Quantile { target };
        let evidence = Evidence::of(&objective, WINDOW, &contents(dictionary(), &requests), None);
        if !matches!(objective.indicator, Indicator::Metric(_)) || evidence.n == 0 {
            return Ok(());
        }
        let value = evidence.value.expect("the value of a rank from 1 to n");
        prop_assert_eq!(evidence.is_broken(&objective), !objective.is_good(value));
        let (lower, upper) = (evidence.interval.lower, evidence.interval.upper);
        let (better, worse) = match objective.indicator.direction() {
            crate::indicator::Direction::AtMost => (lower, upper),
            crate::indicator::Direction::AtLeast => (upper, lower),
        };
        prop_assert_eq!(evidence.is_past(&objective), better.is_some_and(|end| !objective.is_good(end)));
        prop_assert_eq!(evidence.is_within(&objective), worse.is_some_and(|end| objective.is_good(end)));
        prop_assert!(lower.is_none_or(|lower| lower <= value) && upper.is_none_or(|upper| value <= upper));
    }

    #[test]
    fn the_interval_of_a_share_says_what_the_ranks_say(good in 0_u64..400, bad in 0_u64..400, target in any_target()) {
        let threshold = 1.0 - target.as_f64();
        let objective = objective(Indicator::DroppedIterations, Goal::Share { target }, threshold);
        let evidence = Evidence::counted(&objective, WINDOW, Tally { good, bad, ..Tally::default() });
        if evidence.n == 0 {
            return Ok(());
        }
        let (lower, upper) = (evidence.interval.lower.expect("an end"), evidence.interval.upper.expect("an end"));
        let value = evidence.value.expect("a share");
        prop_assert!(lower <= value && value <= upper);
        // At the edge itself rounding may decide.
        if (lower - threshold).abs() > 1e-9 {
            prop_assert_eq!(evidence.is_past(&objective), lower > threshold);
        }
        if (upper - threshold).abs() > 1e-9 {
            prop_assert_eq!(evidence.is_within(&objective), upper < threshold);
        }
    }

    #[test]
    fn errors_change_no_latency(objective in any_latency(), mut requests in requests(60), errors in requests(60)) {
        requests.iter_mut().for_each(|request| request.labels = 0);
        let before = verdict(&objective, &requests);
        let failed = |mut request: Observation| {
            request.labels = 0;
            request.result = Some(ResultClass::Error);
            request
        };
        requests.extend(errors.into_iter().map(failed));
        let after = verdict(&objective, &requests);
        prop_assert_eq!((after.status, after.evidence.value), (before.status, before.evidence.value));
    }

    #[test]
    fn what_was_bad_and_times_out_instead_makes_nothing_better(
        objective in any_latency(),
        mut requests in requests(60),
        chosen in prop::collection::vec((any::<Index>(), 0.0_f64..5.0, any::<bool>()), 1..20),
    ) {
        requests.iter_mut().for_each(|request| request.labels = 0);
        let before = verdict(&objective, &requests);
        for (index, longer, without_token) in chosen {
            let Some(request) = requests.get_mut(index.index(60)) else { continue };
            let is_bad = outcome(&objective, request, &Labels::default()) == crate::Outcome::Bad;
            if request.result != Some(ResultClass::Ok) || !is_bad {
                continue;
            }
            request.result = Some(ResultClass::Timeout);
            let ttft = request.readings.get(Metric::Ttft);
            // It lasted at least until its first token.
            let duration = request.readings.get(Metric::Duration);
            let duration = duration.map(|duration| duration.max(ttft.unwrap_or(0.0)) + longer);
            request.readings.set(Metric::Duration, duration);
            if without_token && duration.is_some() && !request.flags.has(Flag::HeadersOnly) {
                request.readings.set(Metric::Ttft, None);
            }
        }
        let after = verdict(&objective, &requests);
        prop_assert!(goodness(&after.status) <= goodness(&before.status), "{:?} after {:?}", after.status, before.status);
        prop_assert_eq!(after.evidence.n, before.evidence.n);
    }

}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_digest_confirms_nothing_that_its_error_could_turn(
        seed in any::<u32>(),
        steps in 1_u32..2000,
        target in any_target(),
        threshold in 0.0_f64..1.0,
        rates in any::<bool>(),
    ) {
        // With few steps there are many equal values, on which a digest errs most.
        let shares = (0..6000_u32).map(|i| f64::from(i.wrapping_mul(2_654_435_761).wrapping_add(seed) % steps) / f64::from(steps));
        let metric = if rates { Metric::RateStream } else { Metric::GpuQueue };
        let result = |place: usize| if place.is_multiple_of(5) { ResultClass::Timeout } else { ResultClass::Ok };
        let requests = shares.enumerate().map(|(i, share)| request(State::Matched, result(i), &[(metric, share)]));
        let requests: Vec<Observation> = requests.collect();
        let objective = objective(Indicator::Metric(metric), Goal::Quantile { target }, threshold);
        let exact = verdict(&objective, &requests);
        let minutes = requests.chunks(500).flat_map(|part| contents(vec![Labels::default()], part).cells);
        let cells = minutes.map(|(key, cell)| (key, cell.digested())).collect();
        let dictionary = contents(vec![Labels::default()], &[]).dictionary;
        let digest = Verdict::of(&objective, Evidence::of(&objective, WINDOW, &Contents { cells, dictionary }, None));
        prop_assert_eq!((exact.evidence.method, digest.evidence.method), (Method::Exact, Method::Digest));
        let off = exact.evidence.tally.good.abs_diff(digest.evidence.tally.good);
        prop_assert!(off <= digest.evidence.rank_error, "{off} of {}", digest.evidence.rank_error);
        prop_assert!(!digest.confirmed || exact.confirmed);
        let safe = Status::Ok { at_risk: false };
        prop_assert!(digest.status != safe || exact.status == safe);
        let value = digest.evidence.value.expect("a value");
        prop_assert_eq!(digest.evidence.is_broken(&objective), !objective.is_good(value));
    }
}
