use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use url::Url;

use super::*;
use crate::burn::BurnState;
use crate::objective::{Alerting, Burn, BurnWindow, ColdStarts, Conditions, Confirm, Goal, ObjectiveId, Straddling};
use crate::{Evidence, Gap, Indicator, Status, Tally, Verdict};
use model::{Dimension, Interval, Metric, Nanos, ResultClass, TraceId, UnixNanos};
use stats::Quantile;
use stats::summary::Ends;

const SECOND: i64 = 1_000_000_000;
const MINUTE: i64 = 60 * SECOND;
const NOW: UnixNanos = UnixNanos(1_767_355_200 * SECOND);
const WINDOW: Nanos = Nanos(10 * MINUTE);

fn objective() -> Objective {
    let labels = [(Dimension::Model, &["m-7b"][..]), (Dimension::Pool, &["a100", "h100"][..])];
    let values = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect::<BTreeSet<_>>();
    let pair = |factor, long, short| BurnWindow { factor, long: Nanos(long * MINUTE), short: Nanos(short * MINUTE) };
    Objective {
        id: ObjectiveId::new("queue-p95").expect("a name"),
        description: Some("Nobody waits long for a slot.".to_owned()),
        owner: Some("inference".to_owned()),
        budget: None,
        indicator: Indicator::Metric(Metric::GpuQueue),
        goal: Goal::Quantile { target: Quantile::P95 },
        threshold: 250e6,
        conditions: Conditions {
            labels: labels.map(|(label, all)| (label, values(all))).into(),
            cold_starts: ColdStarts::Excluded,
        },
        window: WINDOW,
        min_n: 100,
        min_coverage: 0.9,
        require_bounds: false,
        straddling: Straddling::PointEstimate,
        burn: Burn { windows: vec![pair(14.4, 60, 5), pair(1.0, 4320, 360)], min_traffic: 50, min_bad: 5 },
        alerting: Alerting { confirm: Confirm::Interval, no_verdict_after: Some(WINDOW), silent_after: Some(WINDOW) },
    }
}

fn verdict(status: Status) -> Verdict {
    let tally = Tally { good: 1024, bad: 210, left_out: 3, missing: 28 };
    let evidence = Evidence {
        client_records: 1262,
        join_coverage: Some(0.985),
        phase_coverage: Some(0.978),
        filled: Some(1.0),
        value: Some(312.4e6),
        interval: Ends { lower: Some(290e6), upper: Some(340.25e6), absence: None },
        ..Evidence::of_tally(Interval { start: NOW - WINDOW, end: NOW }, tally)
    };
    Verdict { confirmed: status == Status::Broken, status, evidence }
}

fn facts<'a>(objective: &'a Objective, trouble: &'a Trouble, verdict: &'a Verdict) -> Facts<'a> {
    Facts { objective, trouble, verdict, burn: None, traffic_share: Some(0.42), exemplars: &[], public_url: None }
}

#[test]
fn only_evidence_moves_an_alert() {
    let ok = Status::Ok { at_risk: true };
    let unknown = Status::NoVerdict(vec![Gap::BoundsStraddle]);
    let cases = [
        (Confirm::Interval, &ok, false, Condition::Absent),
        (Confirm::Interval, &Status::Broken, false, Condition::Unknown),
        (Confirm::Interval, &Status::Broken, true, Condition::Present),
        (Confirm::Verdict, &Status::Broken, false, Condition::Present),
        (Confirm::Interval, &unknown, true, Condition::Unknown),
        (Confirm::Verdict, &unknown, false, Condition::Unknown),
    ];
    for (confirm, status, confirmed, expected) in cases {
        assert_eq!(Condition::of_verdict(confirm, status, confirmed), expected, "{confirm:?} {status:?} {confirmed}");
    }
    for (condition, firing, change) in [
        (Condition::Present, false, Some(Change::Fired)),
        (Condition::Present, true, None),
        (Condition::Absent, true, Some(Change::Resolved)),
        (Condition::Absent, false, None),
        (Condition::Unknown, true, None),
        (Condition::Unknown, false, None),
    ] {
        assert_eq!(condition.change(firing), change, "{condition:?} {firing}");
    }
}

fn burn_state(window: &BurnWindow, fires: bool, long_rate: Option<f64>, short_rate: Option<f64>) -> BurnState {
    BurnState {
        factor: window.factor,
        long: window.long,
        short: window.short,
        long_rate,
        short_rate,
        filled_long: 0.5,
        filled_short: 1.0,
        n: 6000,
        bad: 900,
        fires,
    }
}

#[test]
fn a_burn_ends_with_either_window_and_not_with_the_traffic() {
    let window = objective().burn.windows[0];
    for (fires, long, short, expected) in [
        (true, Some(20.0), Some(15.0), Condition::Present),
        (false, Some(20.0), Some(14.3), Condition::Absent),
        (false, Some(14.3), Some(20.0), Condition::Absent),
        (false, Some(20.0), None, Condition::Unknown),
        (false, None, None, Condition::Unknown),
        (false, Some(20.0), Some(20.0), Condition::Unknown),
    ] {
        let state = burn_state(&window, fires, long, short);
        assert_eq!(Condition::of_burn(&state), expected, "{long:?} {short:?}");
    }
}

#[test]
fn no_verdict_is_told_after_its_time_and_only_under_traffic() {
    let objective = objective();
    let low = Status::NoVerdict(vec![Gap::LowCoverage { coverage: Some(0.62), min_coverage: 0.9 }]);
    let told = |watch: Watch, status: &Status, at: UnixNanos| {
        watch.lacks_verdict(&objective.alerting, objective.window, status, at)
    };
    let watch = Watch::default().after(&verdict(low.clone()), &Presence::default(), NOW);
    assert_eq!(watch.no_verdict_since, Some(NOW));
    assert_eq!(told(watch, &low, NOW + WINDOW - Nanos(1)), Condition::Unknown);
    assert_eq!(told(watch, &low, NOW + WINDOW), Condition::Present);
    assert_eq!(told(watch, &Status::Broken, NOW + WINDOW), Condition::Absent);

    let burst = Status::NoVerdict(vec![Gap::WindowNotFull { filled: 0.2 }]);
    assert_eq!(told(watch, &burst, NOW + WINDOW + WINDOW - Nanos(1)), Condition::Unknown);
    assert_eq!(told(watch, &burst, NOW + WINDOW + WINDOW), Condition::Present);

    let mut idle = verdict(low.clone());
    idle.evidence.client_records = 0;
    assert_eq!(watch.after(&idle, &Presence::default(), NOW).no_verdict_since, None);
    let failing = Presence { client_records: 5, settled: 5, with_server: 0 };
    let watch = watch.after(&idle, &failing, NOW + WINDOW);
    assert_eq!(watch.no_verdict_since, Some(NOW), "errors are traffic too");
}

#[test]
fn a_source_is_silent_only_where_it_spoke() {
    let both = Presence { client_records: 20, settled: 20, with_server: 19 };
    let lone = Presence { client_records: 20, settled: 20, with_server: 0 };
    let few = Presence { client_records: 3, settled: 3, with_server: 0 };
    let nobody = Presence::default();
    let spoke = Watch::default().after(&verdict(Status::Broken), &both, NOW);
    let hour = NOW + Nanos(60 * MINUTE);
    let silent = |watch: Watch, source, presence: &Presence, at| watch.is_silent(source, presence, WINDOW, at);
    assert_eq!(silent(spoke, Source::Client, &nobody, hour), Condition::Present);
    assert_eq!(silent(spoke, Source::Server, &nobody, hour), Condition::Unknown, "its clients are silent");
    assert_eq!(silent(spoke, Source::Server, &lone, hour), Condition::Present);
    assert_eq!(silent(spoke, Source::Server, &few, hour), Condition::Unknown);
    assert_eq!(silent(spoke, Source::Server, &both, hour), Condition::Absent);
    assert_eq!(silent(Watch::default(), Source::Client, &nobody, hour), Condition::Unknown, "it never spoke");
    let next_week = NOW + Nanos(7 * 1440 * MINUTE);
    assert_eq!(silent(spoke, Source::Client, &nobody, next_week), Condition::Unknown);
}

#[test]
fn what_an_objective_asks_for_is_what_can_be_told() {
    let mut objective = objective();
    let names: Vec<_> = Trouble::of(&objective).iter().map(|one| (one.name(), one.severity().name())).collect();
    assert_eq!(
        names,
        [
            ("TracejoinObjectiveBroken", "page"),
            ("TracejoinBudgetBurn", "page"),
            ("TracejoinBudgetBurn", "ticket"),
            ("TracejoinNoVerdict", "ticket"),
            ("TracejoinSourceSilent", "ticket"),
            ("TracejoinSourceSilent", "ticket"),
        ]
    );
    objective.indicator = Indicator::ResultShare(ResultClass::Error);
    objective.goal = Goal::Pooled;
    objective.alerting.no_verdict_after = None;
    assert_eq!(Trouble::of(&objective), [Trouble::Broken, Trouble::Silent(Source::Client)]);
    objective.budget = Some(ObjectiveId::new("whole").expect("a name"));
    assert_eq!(Trouble::of(&objective), [Trouble::Broken], "the whole tells of its clients");
}

#[test]
fn labels_are_few_and_stable() {
    let objective = objective();
    let labels = Labels::of(&objective, &Trouble::of(&objective)[1]);
    insta::assert_json_snapshot!("labels", labels.as_map());
    // Receivers know alerts by these: a change here makes every firing alert another one.
    assert_eq!(labels.fingerprint().to_string(), "a5ee5949dd888c798c4198e5a929d1d4");
    let all: BTreeSet<_> =
        Trouble::of(&objective).iter().map(|one| Labels::of(&objective, one).fingerprint()).collect();
    assert_eq!(all.len(), Trouble::of(&objective).len(), "each is an alert of its own");
}

#[test]
fn transitions_have_keys_of_their_own() {
    let fingerprint = Labels::stored(BTreeMap::from([("slo".to_owned(), "a".to_owned())])).fingerprint();
    let keys: BTreeSet<_> = (0..100).map(|number| fingerprint.transition(number, NOW)).collect();
    assert_eq!(keys.len(), 100);
}

#[test]
fn every_kind_says_the_phase_the_numbers_and_what_to_check() {
    let objective = objective();
    let exemplars = [7_u128, 8].map(|id| TraceId::from_bytes(id.to_be_bytes()).expect("not zero"));
    let url: Url = "https://tracejoin.example/base/".parse().expect("a URL");
    let gap = Gap::LowCoverage { coverage: Some(0.62), min_coverage: 0.9 };
    let mut told = BTreeMap::new();
    for trouble in Trouble::of(&objective) {
        let status = match trouble {
            Trouble::NoVerdict => Status::NoVerdict(vec![gap, Gap::TooFew { n: 62, min_n: 100 }]),
            _ => Status::Broken,
        };
        let verdict = verdict(status);
        let burn = match trouble {
            Trouble::Burn(window) => Some(burn_state(&window, false, Some(20.25), Some(15.0))),
            _ => None,
        };
        let facts = Facts {
            burn: burn.as_ref(),
            exemplars: &exemplars,
            public_url: Some(&url),
            ..facts(&objective, &trouble, &verdict)
        };
        let name = format!("{} {:?}", trouble.name(), Labels::of(&objective, &trouble).fingerprint().0);
        told.insert(name, annotations(&facts));
    }
    insta::assert_json_snapshot!("annotations", told.into_values().collect::<Vec<_>>());
    assert_eq!(
        state_url(&url, &objective).map(String::from).as_deref(),
        Some("https://tracejoin.example/base/api/v1/slos/queue-p95/status")
    );
}

#[test]
fn a_goal_is_told_in_its_own_form() {
    let mut objective = objective();
    let told = |objective: &Objective, value: Option<f64>| {
        let mut verdict = verdict(Status::Broken);
        verdict.evidence.value = value;
        annotations(&facts(objective, &Trouble::Broken, &verdict))["summary"].clone()
    };
    objective.goal = Goal::Ratio { target: Quantile::P99 };
    let ratio = told(&objective, Some(0.829_82));
    assert!(ratio.contains("82.982 % of the requests are at most 250 ms, and 99 % were promised"), "{ratio}");
    (objective.indicator, objective.threshold) = (Indicator::Metric(Metric::RateStream), 30.0);
    objective.goal = Goal::Quantile { target: Quantile::P95 };
    let rate = told(&objective, Some(28.5));
    assert!(rate.ends_with("p95 is 28.5 tokens/s, under the threshold of 30 tokens/s"), "{rate}");
    (objective.indicator, objective.threshold) = (Indicator::ResultShare(ResultClass::Error), 0.05);
    objective.goal = Goal::Share { target: Quantile::P95 };
    let share = told(&objective, Some(0.071));
    assert!(share.ends_with("it is 7.1 %, over the threshold of 5 %"), "{share}");
    assert!(told(&objective, None).contains("it is unknown"));
}

#[test]
fn texts_are_safe_whatever_an_objective_says() {
    let mut objective = objective();
    objective.owner = Some("a\0b\u{1b}[31m".to_owned());
    objective.description = Some("long ".repeat(1000));
    let labels = Labels::of(&objective, &Trouble::Broken);
    assert_eq!(labels.as_map()["owner"], "a b [31m");
    let told = annotations(&facts(&objective, &Trouble::Broken, &verdict(Status::Broken)));
    assert!(told["description"].ends_with('…') && told["description"].chars().count() < 1600);
}

#[test]
fn every_indicator_has_a_first_check() {
    for indicator in Indicator::all() {
        assert!(advice::first_check(indicator).len() > 30, "{indicator}");
    }
    for (metric, told) in [
        (Metric::Setup, "reuse"),
        (Metric::NetworkEnvelope, "entry span"),
        (Metric::TtftGateway, "replicas"),
        (Metric::GpuQueue, "batch policy"),
        (Metric::Decode, "memory"),
        (Metric::Unattributed, "lost"),
    ] {
        assert!(advice::first_check(Indicator::Metric(metric)).contains(told), "{metric:?}");
    }
}

#[test]
fn lengths_read_as_prometheus_writes_them() {
    for (seconds, name) in [(30, "30s"), (300, "5m"), (3600, "1h"), (90 * 60, "90m"), (3 * 86_400, "3d")] {
        assert_eq!(length(Nanos(seconds * SECOND)), name);
    }
    assert_eq!((length(Nanos(0)), length(Nanos(1_500_000_000))), ("0s".to_owned(), "1500ms".to_owned()));
}

fn statuses() -> impl Strategy<Value = (Status, bool)> {
    prop_oneof![
        any::<bool>().prop_map(|at_risk| (Status::Ok { at_risk }, false)),
        any::<bool>().prop_map(|confirmed| (Status::Broken, confirmed)),
        any::<bool>().prop_map(|confirmed| (Status::NoVerdict(vec![Gap::TooFew { n: 0, min_n: 1 }]), confirmed)),
    ]
}

proptest! {
    #[test]
    fn only_an_ok_resolves_whatever_came_between(history in prop::collection::vec(statuses(), 0..40)) {
        let mut firing = false;
        for (status, confirmed) in history {
            let change = Condition::of_verdict(Confirm::Interval, &status, confirmed).change(firing);
            let is_ok = matches!(status, Status::Ok { .. });
            prop_assert_eq!(change == Some(Change::Resolved), firing && is_ok);
            prop_assert_eq!(change == Some(Change::Fired), !firing && confirmed && status == Status::Broken);
            firing = change.map_or(firing, |change| change == Change::Fired);
        }
    }

    #[test]
    fn labels_know_no_numbers(threshold in 1.0..1e12, min_n in 1_u64..1_000_000, window in 1_i64..86_400, at_risk: bool) {
        let (before, mut after) = (objective(), objective());
        (after.threshold, after.min_n, after.window) = (threshold, min_n, Nanos(window * SECOND));
        after.description = Some(format!("{at_risk}"));
        after.goal = Goal::Quantile { target: Quantile::P99 };
        for (one, other) in Trouble::of(&before).iter().zip(&Trouble::of(&after)) {
            prop_assert_eq!(Labels::of(&before, one), Labels::of(&after, other));
        }
    }
}
