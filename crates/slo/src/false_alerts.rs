//! A simulated month: how often a healthy service raises an alert, and how soon a broken one does.
//!
//! Requests come at random with the rhythm of a day and are bad at random; what is judged, how and when is the real code
//! on an injected clock, evaluated every 30 s. Counts are kept by sliding windows, so that a month takes about a second.
//! docs/slo.md tells what is measured here.

use std::collections::{HashMap, VecDeque};

use rand::SeedableRng;
use rand::rngs::StdRng;
use rand_distr::{Binomial, Distribution, Poisson};

use super::alert::{Change, Condition, Presence, Watch};
use super::burn::{BurnState, Part};
use super::evidence::Evidence;
use super::fixtures::quantile;
use super::objective::{Burn, BurnWindow, Confirm, Objective};
use super::tally::Tally;
use super::verdict::Verdict;
use model::{Interval, Metric, Nanos, UnixNanos};
use stats::interval::{self, Ranks};

const TICK: i64 = 30_000_000_000;
const MINUTE: i64 = 2 * TICK;
const HOUR_OF_TICKS: i64 = 120;
const DAY_OF_TICKS: i64 = 24 * HOUR_OF_TICKS;
const MONTH_OF_TICKS: i64 = 30 * DAY_OF_TICKS;

/// What docs/slo.md states: alerts of one objective of a healthy service in a month, at most.
const STATED: u32 = 2;

/// An objective with the defaults of a document.
fn objective(target: &str, window_minutes: i64) -> Objective {
    let hours = |hours: i64| Nanos(hours * 60 * MINUTE);
    let pair = |factor, long, short_minutes| BurnWindow { factor, long, short: Nanos(short_minutes * MINUTE) };
    let windows = vec![pair(14.4, hours(1), 5), pair(6.0, hours(6), 30), pair(1.0, hours(72), 360)];
    let mut objective = quantile(Metric::GpuQueue, target, 1.0);
    objective.window = Nanos(window_minutes * MINUTE);
    objective.burn = Burn { windows, ..objective.burn };
    objective.alerting.no_verdict_after = Some(objective.window);
    objective
}

/// Requests of a service: from 0.4 times the mean rate at night to 1.6 times by day.
struct Service {
    per_minute: f64,
    bad_share: f64,
    random: StdRng,
}

impl Service {
    fn new(per_minute: f64, bad_share: f64, seed: u64) -> Self {
        Self { per_minute, bad_share, random: StdRng::seed_from_u64(seed) }
    }

    fn requests(&mut self, tick: i64) -> Tally {
        let day = (tick % DAY_OF_TICKS) as f64 / DAY_OF_TICKS as f64;
        let rhythm = 1.0 + 0.6 * (day * std::f64::consts::TAU).sin();
        let mean = self.per_minute * rhythm * TICK as f64 / MINUTE as f64;
        let n = Poisson::new(mean).expect("a rate above 0").sample(&mut self.random) as u64;
        let bad = Binomial::new(n, self.bad_share).expect("a share").sample(&mut self.random);
        Tally { good: n - bad, bad, ..Tally::default() }
    }
}

/// The counts of the last so many steps.
struct Sliding {
    steps: VecDeque<Tally>,
    length: usize,
    sum: Tally,
}

impl Sliding {
    fn of(length: Nanos, step: i64) -> Self {
        Self { steps: VecDeque::new(), length: (length.0 / step) as usize, sum: Tally::default() }
    }

    fn push(&mut self, tally: Tally) {
        if self.steps.len() == self.length
            && let Some(oldest) = self.steps.pop_front()
        {
            self.sum.good -= oldest.good;
            self.sum.bad -= oldest.bad;
        }
        self.steps.push_back(tally);
        self.sum.merge(&tally);
    }

    /// The part of the window's tenths in which there is traffic.
    fn filled(&self) -> f64 {
        let tenth = self.length / 10;
        let empty = self.length - self.steps.len();
        let busy = |tenth_steps: &&[Tally]| tenth_steps.iter().any(|step| step.n() > 0);
        let steps: Vec<Tally> =
            std::iter::repeat_n(Tally::default(), empty).chain(self.steps.iter().copied()).collect();
        steps.chunks(tenth).filter(busy).count() as f64 / 10.0
    }

    fn part(&self, now: UnixNanos, step: i64) -> Part {
        let back = |steps: usize| Interval { start: now - Nanos(steps as i64 * step), end: now };
        Part { window: back(self.length), there: back(self.steps.len()), tally: self.sum }
    }
}

/// When an alert of each kind fired and resolved, in ticks.
#[derive(Default)]
struct History {
    broken: Vec<(i64, Change)>,
    burn: [Vec<(i64, Change)>; 3],
    no_verdict: Vec<(i64, Change)>,
}

impl History {
    fn fired(transitions: &[(i64, Change)]) -> u32 {
        transitions.iter().filter(|(_, change)| *change == Change::Fired).count() as u32
    }

    /// All but those that say that there is no verdict.
    fn alerts(&self) -> u32 {
        Self::fired(&self.broken) + self.burn.iter().map(|pair| Self::fired(pair)).sum::<u32>()
    }
}

/// What the evaluator keeps and does for one objective.
struct Evaluator {
    objective: Objective,
    window: Sliding,
    minute: Tally,
    pairs: Vec<(Sliding, Sliding)>,
    /// The ends of the interval depend on n alone.
    ranks: HashMap<u64, Ranks>,
    watch: Watch,
    history: History,
}

impl Evaluator {
    fn new(objective: Objective) -> Self {
        let sliding = |length| Sliding::of(length, MINUTE);
        let pairs = objective.burn.windows.iter().map(|pair| (sliding(pair.long), sliding(pair.short)));
        Self {
            window: Sliding::of(objective.window, TICK),
            minute: Tally::default(),
            pairs: pairs.collect(),
            ranks: HashMap::new(),
            watch: Watch::default(),
            history: History::default(),
            objective,
        }
    }

    fn evaluate(&mut self, tick: i64, requests: Tally) {
        self.window.push(requests);
        self.minute.merge(&requests);
        let now = UnixNanos((tick + 1) * TICK);
        self.judge(tick, now);
        // Windows of a burn rate end with whole minutes: in between they say the same.
        if now.0 % MINUTE == 0 {
            self.burn(tick, now);
        }
    }

    fn judge(&mut self, tick: i64, now: UnixNanos) {
        let (window, tally) = (Interval { start: now - self.objective.window, end: now }, self.window.sum);
        let target = self.objective.goal.target().expect("a quantile");
        let ranks = *self.ranks.entry(tally.n()).or_insert_with(|| interval::ranks(tally.n(), target));
        let filled = Some(self.window.filled());
        let evidence = Evidence { ranks, filled, client_records: tally.n(), ..Evidence::of_tally(window, tally) };
        let verdict = Verdict::of(&self.objective, evidence);
        let alerting = &self.objective.alerting;
        let broken = Condition::of_verdict(alerting.confirm, &verdict.status, verdict.confirmed);
        follow(&mut self.history.broken, broken, tick);
        let presence = Presence { client_records: tally.n(), settled: tally.n(), with_server: tally.n() };
        self.watch = self.watch.after(&verdict, &presence, now);
        let lacks = self.watch.lacks_verdict(alerting, self.objective.window, &verdict.status, now);
        follow(&mut self.history.no_verdict, lacks, tick);
    }

    fn burn(&mut self, tick: i64, now: UnixNanos) {
        let minute = std::mem::take(&mut self.minute);
        let burn = &self.objective.burn;
        let target = self.objective.goal.target().expect("a quantile");
        for (index, (long, short)) in self.pairs.iter_mut().enumerate() {
            long.push(minute);
            short.push(minute);
            let (long, short) = (long.part(now, MINUTE), short.part(now, MINUTE));
            let state = BurnState::of(&burn.windows[index], burn, target, &long, &short);
            follow(&mut self.history.burn[index], Condition::of_burn(&state), tick);
        }
    }
}

fn follow(transitions: &mut Vec<(i64, Change)>, condition: Condition, tick: i64) {
    let firing = transitions.last().is_some_and(|(_, change)| *change == Change::Fired);
    transitions.extend(condition.change(firing).map(|change| (tick, change)));
}

/// A month of a service.
fn month(objective: Objective, mut service: Service) -> History {
    let mut evaluator = Evaluator::new(objective);
    for tick in 0..MONTH_OF_TICKS {
        evaluator.evaluate(tick, service.requests(tick));
    }
    evaluator.history
}

#[test]
fn a_healthy_service_raises_few_alerts_in_a_month() {
    // At night there are 0.4 times as many requests: 144, 120 and 1200 in the window.
    for (target, per_minute, window) in [("0.95", 3.0, 120), ("0.95", 30.0, 10), ("0.99", 300.0, 10)] {
        let allowed = 1.0 - target.parse::<f64>().expect("a number");
        let history = month(objective(target, window), Service::new(per_minute, allowed / 2.0, 1));
        let alerts = history.alerts();
        assert!(alerts <= STATED, "{target} at {per_minute} a minute: {alerts} alerts, {:?}", history.broken);
        let no_verdict = History::fired(&history.no_verdict);
        assert!(no_verdict <= STATED, "{target} at {per_minute} a minute: {no_verdict} times no verdict");
    }
}

#[test]
fn a_verdict_that_need_not_be_confirmed_would_alert_far_more_often() {
    let mut unconfirmed = objective("0.95", 10);
    unconfirmed.alerting.confirm = Confirm::Verdict;
    let history = month(unconfirmed, Service::new(30.0, 0.025, 1));
    assert!(history.alerts() > 50 * STATED, "{} alerts", history.alerts());
}

#[test]
fn a_small_sample_of_a_high_quantile_alerts_more_often_than_stated() {
    let history = month(objective("0.99", 10), Service::new(30.0, 0.005, 1));
    assert!(history.alerts() > STATED, "{} alerts", history.alerts());
}

/// A day of health, then `bad_share` for a time, then health again.
fn incident(objective: Objective, service: Service, bad_share: f64, ticks: i64) -> History {
    let mut service = service;
    let mut evaluator = Evaluator::new(objective);
    let healthy = service.bad_share;
    for tick in 0..2 * DAY_OF_TICKS {
        let lasts = (DAY_OF_TICKS..DAY_OF_TICKS + ticks).contains(&tick);
        service.bad_share = if lasts { bad_share } else { healthy };
        evaluator.evaluate(tick, service.requests(tick));
    }
    evaluator.history
}

/// How many ticks after the incident's first and last one an alert fired and resolved.
fn delays(transitions: &[(i64, Change)], ticks: i64) -> Option<(i64, i64)> {
    let [(fired, Change::Fired), (resolved, Change::Resolved)] = transitions else { return None };
    Some((fired - DAY_OF_TICKS, resolved - DAY_OF_TICKS - ticks))
}

#[test]
fn a_broken_service_fires_within_its_window_and_resolves_within_it() {
    // Three times as many bad ones as allowed, for an hour.
    let history = incident(objective("0.95", 10), Service::new(30.0, 0.0125, 1), 0.15, HOUR_OF_TICKS);
    let (fired, resolved) = delays(&history.broken, HOUR_OF_TICKS).expect("one alert, which resolves");
    assert!((0..20).contains(&fired), "fired after {fired} ticks");
    assert!((0..20).contains(&resolved), "resolved after {resolved} ticks");
}

#[test]
fn an_outage_burns_a_budget_within_nine_minutes_or_so() {
    // 14.4 % of the hour is 8.6 minutes; the rate of requests is not quite even.
    let history = incident(objective("0.99", 10), Service::new(300.0, 0.001, 1), 1.0, HOUR_OF_TICKS);
    let (fired, resolved) = delays(&history.burn[0], HOUR_OF_TICKS).expect("one alert, which resolves");
    assert!((15..=19).contains(&fired), "fired after {fired} ticks");
    assert!((7..=11).contains(&resolved), "resolved after {resolved} ticks");
    let (slower, _) = delays(&history.burn[1], HOUR_OF_TICKS).expect("one alert, which resolves");
    assert!((fired..HOUR_OF_TICKS).contains(&slower), "fired after {slower} ticks");
}
