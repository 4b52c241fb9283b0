use proptest::prelude::*;

use super::*;
use crate::alert::Trouble;
use crate::evidence::Evidence;
use crate::fixtures::{contents, labels, only, quantile, request};
use crate::objective::Objective;
use crate::objective::{BurnWindow, Goal};
use crate::verdict::{Status, Verdict};
use crate::{Gap, Indicator};
use model::{Dimension, Labels, Metric, Observation, ResultClass, State};
use model::{Interval, Nanos, UnixNanos};

const SECOND: i64 = 1_000_000_000;
const MINUTE: i64 = 60 * SECOND;
const SETTLE: Nanos = Nanos(15 * SECOND);

fn at(seconds: i64) -> UnixNanos {
    UnixNanos(1_767_355_200 * SECOND + seconds * SECOND)
}

fn between(from: i64, to: i64) -> Interval {
    Interval { start: at(from), end: at(to) }
}

/// On the queue's p95 over ten minutes.
fn queue() -> Objective {
    quantile(Metric::GpuQueue, "0.95", 250e6)
}

fn question(objective: &Objective, from: i64, to: i64) -> DryRunQuestion {
    let window = between(from, to);
    DryRunQuestion { objective: objective.clone(), window, every: Nanos(30 * SECOND), noticed: Vec::new() }
}

fn queued(millis: f64) -> Observation {
    request(State::Matched, ResultClass::Ok, &[(Metric::GpuQueue, millis * 1e6), (Metric::Duration, 1e9)])
}

/// One request a second, which `what` says.
fn history(objective: &Objective, from: i64, to: i64, what: impl Fn(i64) -> Option<Observation>) -> History {
    let mut history = History::new(objective.clone(), [(0, Labels::default())].into());
    for second in (from..to).rev() {
        if let Some(observation) = what(second) {
            history.add(at(second), &observation);
        }
    }
    history.sort();
    history
}

/// Slow from the first hour on, for twenty minutes.
fn slow_for_a_while(second: i64) -> Option<Observation> {
    Some(queued(if (3600..4800).contains(&second) { 400.0 } else { 50.0 }))
}

#[test]
fn an_objective_fires_once_for_one_fault_and_resolves_when_its_window_has_passed() {
    let objective = queue();
    let history = history(&objective, 0, 9000, slow_for_a_while);
    let replayed = replay(&question(&objective, 700, 9000), &history, SETTLE);
    let [firing] = replayed.firings.as_slice() else { panic!("{:#?}", replayed.firings) };
    assert_eq!(firing.trouble, Trouble::Broken);
    // Of 600 requests 570 must be good, and to be confirmed fewer than the rank 560 of the interval's lower end: the
    // 41st bad one is there 41 s after the first, and seen 16 s later, by an evaluation at 30 s steps from 700 s on.
    // It ends when no more than 30 are left, in the window that ends at 5370 s.
    assert_eq!((firing.start, firing.end), (at(3670), Some(at(5410))));
    assert_eq!(firing.verdict.evidence.value, Some(400e6));
    // 700 to 9000 s in steps of 30 s.
    assert_eq!((replayed.verdicts.all(), replayed.verdicts.no_verdict), (277, 0));
    assert!(replayed.verdicts.broken > 55 && replayed.verdicts.ok > 200, "{:?}", replayed.verdicts);
}

#[test]
fn a_burning_budget_fires_by_its_windows() {
    let mut objective = queue();
    let pair = BurnWindow { factor: 10.0, long: Nanos(60 * MINUTE), short: Nanos(5 * MINUTE) };
    objective.burn.windows = vec![pair];
    let history = history(&objective, 0, 9000, slow_for_a_while);
    let replayed = replay(&question(&objective, 3600, 9000), &history, SETTLE);
    let burn: Vec<&Firing> = replayed.firings.iter().filter(|firing| firing.trouble == Trouble::Burn(pair)).collect();
    assert!(burn.is_empty(), "20 of 60 minutes are a rate of 6.7 only: {burn:#?}");

    objective.burn.windows = vec![BurnWindow { factor: 5.0, ..pair }];
    let replayed = replay(&question(&objective, 3600, 9000), &history, SETTLE);
    let [_, firing] = replayed.firings.as_slice() else { panic!("{:#?}", replayed.firings) };
    let burn = firing.burn.as_ref().expect("rates");
    // A quarter of the long window is bad from 4500 s on, which an evaluation 16 s later sees.
    assert_eq!((burn.long_rate, burn.short_rate, burn.bad), (Some(5.0), Some(20.0), 900));
    assert_eq!(firing.start, at(4530));
}

#[test]
fn neither_errors_nor_missing_spans_resolve_what_fires_and_nobody_can_tell_meanwhile() {
    let objective = queue();
    let history = history(&objective, 0, 9000, |second| match second {
        ..3600 => Some(queued(50.0)),
        3600..4800 => Some(queued(400.0)),
        4800..6600 => Some(request(State::ClientOnly, ResultClass::Error, &[(Metric::Duration, 1e6)])),
        6600..8000 => Some(request(State::ClientOnly, ResultClass::Ok, &[(Metric::Duration, 1e9)])),
        _ => Some(queued(50.0)),
    });
    let replayed = replay(&question(&objective, 700, 9000), &history, SETTLE);
    let [firing] = replayed.firings.as_slice() else { panic!("{:#?}", replayed.firings) };
    assert!(firing.end.is_some_and(|end| end > at(8000)), "{firing:#?}");
    assert!(replayed.verdicts.no_verdict_share().is_some_and(|share| share > 0.3), "{:?}", replayed.verdicts);
}

#[test]
fn traffic_without_a_verdict_is_told_where_the_objective_asks_for_it() {
    let mut objective = queue();
    objective.alerting.no_verdict_after = Some(Nanos(10 * MINUTE));
    let lone = || request(State::ClientOnly, ResultClass::Ok, &[(Metric::Duration, 1e9)]);
    let history = history(&objective, 0, 6000, |second| Some(if second < 3000 { queued(50.0) } else { lone() }));
    let replayed = replay(&question(&objective, 700, 6000), &history, SETTLE);
    let [firing] = replayed.firings.as_slice() else { panic!("{:#?}", replayed.firings) };
    assert_eq!((firing.trouble, firing.end), (Trouble::NoVerdict, None));
    let Status::NoVerdict(gaps) = &firing.verdict.status else { panic!("{:?}", firing.verdict.status) };
    assert!(matches!(gaps.as_slice(), [.., Gap::LowCoverage { .. }]), "{gaps:?}");
}

#[test]
fn what_people_noticed_is_compared_with_the_alert_that_was_about_it() {
    let objective = queue();
    let history = history(&objective, 0, 9000, slow_for_a_while);
    let firings = replay(&question(&objective, 700, 9000), &history, SETTLE).firings;
    let lead = |second| noticed(at(second), &firings);
    assert_eq!(lead(4500).before, Some(Nanos(830 * SECOND)), "it fired at 3670 s");
    assert!(lead(4500).firing.is_some_and(|firing| firing.is_on(at(4500))));
    assert_eq!(lead(3610).before, Some(Nanos(-60 * SECOND)), "people were faster");
    assert_eq!(lead(6000).before, Some(Nanos(2330 * SECOND)), "it had resolved");
    assert_eq!(lead(40_000).firing, None, "too far from any");
    assert_eq!(noticed(at(0), &[]).before, None);
}

#[test]
fn what_would_cost_too_much_is_refused_with_the_name_of_the_limit() {
    let long = question(&queue(), 0, 8 * 86_400);
    let told = |question: &DryRunQuestion| question.check().expect_err("refused").to_string();
    assert!(told(&long).contains("192 h long, more than the 168 h"), "{}", told(&long));
    let fine = DryRunQuestion { every: Nanos(SECOND), ..question(&queue(), 0, 86_400) };
    assert!(told(&fine).contains("86401 evaluations are more than the 50000"), "{}", told(&fine));
    let dropped = Objective { indicator: Indicator::DroppedIterations, ..queue() };
    assert!(matches!(question(&dropped, 0, 60).check(), Err(DryRunRefusal::NotOverTime)));
    assert!(question(&queue(), 0, 86_400).check().is_ok());
}

/// A request of one of many kinds, from some numbers.
fn any_request(kind: u8, millis: u32) -> Observation {
    let result = ResultClass::ALL[usize::from(kind) % ResultClass::ALL.len()];
    let time = f64::from(millis) * 1e6;
    let whole = [(Metric::Duration, 3.0 * time), (Metric::ServerTotal, 2.0 * time), (Metric::Unattributed, time / 4.0)];
    let mut observation = match kind % 7 {
        0 => request(State::ClientOnly, result, &whole[..1]),
        1 => request(State::Excluded, result, &whole),
        2 => request(State::Pending, result, &whole),
        3 => request(State::ServerOnly, result, &whole),
        _ => request(State::Matched, result, &[&whole[..], &[(Metric::GpuQueue, time)]].concat()),
    };
    observation.labels = i64::from(kind % 3);
    observation
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn a_window_that_moves_says_what_one_that_is_read_at_once_says(
        rows in prop::collection::vec((0_i64..3000, any::<u8>(), 1_u32..500), 0..300),
        indicator in prop::sample::select(vec![
            Indicator::Metric(Metric::GpuQueue), Indicator::Metric(Metric::Duration), Indicator::JoinCoverage,
            Indicator::ResultShare(ResultClass::Error), Indicator::UnattributedShare,
        ]),
    ) {
        let mut objective = only(queue(), Dimension::Model, "m-7b");
        objective.indicator = indicator;
        (objective.min_n, objective.min_coverage) = (5, 0.3);
        match indicator {
            Indicator::Metric(_) => {}
            Indicator::UnattributedShare => (objective.goal, objective.threshold) = (Goal::Pooled, 0.12),
            _ => (objective.goal, objective.threshold) =
                (Goal::Share { target: objective.goal.target().expect("one") }, 0.05),
        }
        let model = |name| labels(&[(Dimension::Model, name)], &[]);
        let dictionary = vec![model("m-7b"), model("m-8b"), labels(&[], &[(Dimension::Model, "m-7b")])];
        let mut history = History::new(objective.clone(), (0..).zip(dictionary.clone()).collect());
        for (second, kind, millis) in &rows {
            history.add(at(*second), &any_request(*kind, *millis));
        }
        history.sort();
        let mut moving = history.window();
        for end in (0..4000).step_by(170) {
            let window = between(end - 600, end);
            let moved = moving.evidence(window);
            let inside = rows.iter().filter(|(second, ..)| (end - 600..end).contains(second));
            let inside: Vec<Observation> = inside.map(|(_, kind, millis)| any_request(*kind, *millis)).collect();
            let whole = Evidence::of(&objective, window, &contents(dictionary.clone(), &inside), moved.filled);
            prop_assert_eq!(moved.n, whole.n);
            prop_assert_eq!(moved.tally, whole.tally);
            prop_assert_eq!(moved.ranks, whole.ranks);
            prop_assert_eq!((moved.client_records, moved.unplaced), (whole.client_records, whole.unplaced));
            prop_assert_eq!((moved.join_coverage, moved.phase_coverage), (whole.join_coverage, whole.phase_coverage));
            let value = moving.value(&moved);
            let close = value.zip(whole.value).is_none_or(|(one, other)| (one - other).abs() <= 1e-9 * other.abs());
            prop_assert!(value.is_some() == whole.value.is_some() && close, "{:?} {:?}", value, whole.value);
            let (moved, whole) = (Verdict::of(&objective, moved), Verdict::of(&objective, whole));
            prop_assert_eq!((moved.status, moved.confirmed), (whole.status, whole.confirmed));
        }
    }
}
