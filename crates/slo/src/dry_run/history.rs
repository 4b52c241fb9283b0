//! The requests of a replay, and the window that moves over them.

use std::collections::BTreeMap;

use crate::evidence::Evidence;
use crate::indicator::{Direction, Indicator};
use crate::live::PARTS;
use crate::objective::{Goal, Objective};
use crate::outcome::{admits, classes, is_settled_record, outcome};
use crate::tally::{Outcome, Tally};
use model::{Interval, Metric, Nanos, Observation, ResultClass, Slice, UnixNanos};
use stats::Contents;
use stats::cell::{self, Cell, CellKey, Counts};
use stats::interval::{self, Ranks};
use stats::scope::Dictionary;

/// What a replay keeps of one request.
#[derive(Debug, Clone, Copy)]
struct Event {
    at: UnixNanos,
    key: CellKey,
    /// Whether a client record came.
    record: bool,
    /// Whether it shows that there is traffic: a settled client record that the objective is about.
    traffic: bool,
    outcome: Outcome,
    /// The value that the objective limits; of a share of time its part.
    value: Option<f64>,
    /// Of a share of time the whole.
    whole: f64,
}

/// The requests that an objective is asked about, ordered by the time of their window.
pub struct History {
    objective: Objective,
    dictionary: Dictionary,
    events: Vec<Event>,
    /// The times of the events that show traffic, ascending.
    traffic: Vec<UnixNanos>,
    /// The requests before each minute with one, counted up, and the end of that minute.
    minutes: Vec<(UnixNanos, Tally)>,
}

impl History {
    /// Without requests as yet; `dictionary` has the labels of all that will come.
    pub const fn new(objective: Objective, dictionary: Dictionary) -> Self {
        Self { objective, dictionary, events: Vec::new(), traffic: Vec::new(), minutes: Vec::new() }
    }

    /// Takes one request, in any order.
    pub fn add(&mut self, at: UnixNanos, observation: &Observation) {
        let Some(labels) = self.dictionary.get(&observation.labels) else { return };
        let record = cell::has_record(observation);
        let of_class = observation.result.is_none_or(|class| classes(self.objective.indicator).contains(&class));
        let traffic = is_settled_record(observation) && of_class && admits(&self.objective, labels);
        let told = |metric| cell::told(metric, observation);
        let (outcome, value, whole) = match self.objective.indicator {
            Indicator::UnattributedShare => {
                let whole = told(Metric::ServerTotal).filter(|_| observation.result == Some(ResultClass::Ok));
                let value = whole.and_then(|_| told(Metric::Unattributed));
                let outcome = match value {
                    _ if !traffic => Outcome::Outside,
                    Some(_) => Outcome::Good,
                    None => Outcome::Missing,
                };
                (outcome, value, whole.unwrap_or(0.0))
            }
            Indicator::Metric(metric) => {
                (outcome(&self.objective, observation, labels), cell::told_by_then(metric, observation), 0.0)
            }
            _ => (outcome(&self.objective, observation, labels), None, 0.0),
        };
        let key = CellKey::of(observation);
        self.events.push(Event { at, key, record, traffic, outcome, value, whole });
    }

    /// Puts all that came in order. Must be called before a window moves over it.
    pub fn sort(&mut self) {
        self.events.sort_by_key(|event| event.at);
        self.traffic = self.events.iter().filter(|event| event.traffic).map(|event| event.at).collect();
        let mut sum = Tally::default();
        for event in &self.events {
            sum.add(event.outcome);
            let minute = Slice::minute_of(event.at) + Slice::MINUTE;
            match self.minutes.last_mut() {
                Some((end, total)) if *end == minute => *total = sum,
                _ => self.minutes.push((minute, sum)),
            }
        }
    }

    /// When the first minute with a request begins; `None` without any.
    pub fn first_minute(&self) -> Option<UnixNanos> {
        self.minutes.first().map(|(end, _)| *end - Slice::MINUTE)
    }

    /// The requests of a window of whole minutes by their outcome.
    pub fn tally_of_minutes(&self, window: Interval) -> Tally {
        let before = |end: UnixNanos| {
            let minutes = self.minutes.partition_point(|(minute, _)| *minute <= end);
            minutes.checked_sub(1).and_then(|last| self.minutes.get(last)).map(|(_, sum)| *sum).unwrap_or_default()
        };
        less(before(window.end), &before(window.start))
    }

    /// The part of a window's tenths in which there is traffic.
    fn filled(&self, window: Interval) -> f64 {
        let length = window.length().0;
        let edge = |part: u32| {
            let offset = (i128::from(length) * i128::from(part) / i128::from(PARTS)) as i64;
            let at = window.start + Nanos(offset);
            self.traffic.partition_point(|time| *time < at)
        };
        let busy = (0..PARTS).filter(|part| edge(part + 1) > edge(*part)).count();
        busy as f64 / f64::from(PARTS)
    }

    /// A window that moves over the requests, forwards only.
    pub fn window(&self) -> Moving<'_> {
        let contents = Contents { cells: Vec::new(), dictionary: self.dictionary.clone() };
        let (cells, tally) = (BTreeMap::new(), Tally::default());
        Moving { history: self, contents, cells, tally, part: 0.0, whole: 0.0, span: 0..0 }
    }
}

fn less(mut tally: Tally, other: &Tally) -> Tally {
    tally.good -= other.good;
    tally.bad -= other.bad;
    tally.left_out -= other.left_out;
    tally.missing -= other.missing;
    tally
}

/// A window over a history. Each request is counted once when it comes in and once when it goes out.
pub struct Moving<'a> {
    history: &'a History,
    contents: Contents,
    cells: BTreeMap<CellKey, (u64, u64)>,
    tally: Tally,
    part: f64,
    whole: f64,
    span: std::ops::Range<usize>,
}

impl Moving<'_> {
    /// What the window says once it is moved to these ends.
    pub fn evidence(&mut self, window: Interval) -> Evidence {
        self.move_to(window);
        self.contents.cells.clear();
        for (key, (requests, client)) in &self.cells {
            let counts = Counts { requests: *requests, client: *client, ..Counts::default() };
            self.contents.cells.push((*key, Cell { counts, ..Cell::default() }));
        }
        let objective = &self.history.objective;
        let counted = Evidence::of(objective, window, &self.contents, Some(self.history.filled(window)));
        match objective.indicator {
            Indicator::Metric(_) => self.with_tally(counted),
            Indicator::UnattributedShare => self.with_share(counted),
            _ => counted,
        }
    }

    fn with_tally(&self, counted: Evidence) -> Evidence {
        let n = self.tally.n();
        let none = Ranks { lower: None, upper: None };
        let ranks = self.history.objective.goal.target().map_or(none, |target| interval::ranks(n, target));
        Evidence { n, tally: self.tally, phase_coverage: self.tally.coverage(), ranks, ..counted }
    }

    fn with_share(&self, counted: Evidence) -> Evidence {
        let n = self.tally.n();
        let value = (n > 0 && self.whole > 0.0).then(|| self.part / self.whole);
        let tally = Tally { missing: self.tally.missing, ..Tally::default() };
        Evidence { n, tally, value, phase_coverage: self.tally.coverage(), ..counted }
    }

    /// The value that a verdict on this window would show; dear, since it orders the values.
    pub fn value(&self, evidence: &Evidence) -> Option<f64> {
        let (Goal::Quantile { target }, Indicator::Metric(_)) =
            (self.history.objective.goal, self.history.objective.indicator)
        else {
            return evidence.value;
        };
        let decides = |event: &&Event| matches!(event.outcome, Outcome::Good | Outcome::Bad);
        let events = self.history.events.get(self.span.clone())?.iter().filter(decides);
        let mut values: Vec<f64> = events.filter_map(|event| event.value).collect();
        values.sort_unstable_by(f64::total_cmp);
        let good_first = self.history.objective.indicator.direction() == Direction::AtMost;
        if !good_first {
            values.reverse();
        }
        let rank = usize::try_from(target.rank(values.len() as u64)).ok()?;
        values.get(rank.checked_sub(1)?).copied()
    }

    fn move_to(&mut self, window: Interval) {
        let history = self.history;
        while let Some(event) = history.events.get(self.span.end).filter(|event| event.at < window.end) {
            self.count(event, 1);
            self.span.end += 1;
        }
        while let Some(event) = history.events.get(self.span.start).filter(|event| event.at < window.start) {
            self.count(event, -1);
            self.span.start += 1;
        }
    }

    /// Counts one request in, or out by −1.
    fn count(&mut self, event: &Event, by: i64) {
        let (requests, client) = self.cells.entry(event.key).or_default();
        *requests = requests.saturating_add_signed(by);
        *client = client.saturating_add_signed(by * i64::from(event.record));
        if *requests == 0 {
            self.cells.remove(&event.key);
        }
        let mut one = Tally::default();
        one.add(event.outcome);
        if by > 0 {
            self.tally.merge(&one)
        } else {
            self.tally = less(self.tally, &one)
        }
        if event.outcome == Outcome::Good {
            // Whole nanoseconds below 2^53: sums of a million of them differ from the exact one by less than a part in 1e9.
            self.part += by as f64 * event.value.unwrap_or(0.0);
            self.whole += by as f64 * event.whole;
        }
    }
}
