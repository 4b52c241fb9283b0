//! Counts and times of the requests that this process joined.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use super::labels::{Cap, Combination, Exemplar, With};
use super::objectives::ObjectiveMetrics;
use super::phases::{self, PHASES, TimesFamily};
use crate::store::RequestRow;
use crate::telemetry::HealthMetrics;
use crate::workers::join::JoinObserver;
use model::{Flag, Labels, Observation, State, TraceId, UnixNanos};
use stats::cell::{has_record, told};

/// Series that a combination may take: its histograms, and the counters of records, matched ones, states and reasons.
const SERIES_EACH: usize = PHASES.len() + 8;

/// Metrics of the requests that this process joined.
pub struct RequestMetrics {
    registry: Registry,
    cap: Mutex<Cap>,
    times: TimesFamily,
    requests: Family<With, Counter>,
    records: Family<Combination, Counter>,
    matched: Family<Combination, Counter>,
    excluded: Family<With, Counter>,
    overflowed: Counter,
    objectives: ObjectiveMetrics,
    reading: Mutex<()>,
}

impl RequestMetrics {
    /// Metrics of at most about `series` series, a histogram counted as one, and those of objectives.
    pub fn new(series: usize, objectives: ObjectiveMetrics) -> Self {
        let mut metrics = Self {
            registry: Registry::with_prefix("tracejoin"),
            cap: Mutex::new(Cap::new(series, SERIES_EACH)),
            times: phases::family(),
            requests: Family::default(),
            records: Family::default(),
            matched: Family::default(),
            excluded: Family::default(),
            overflowed: Counter::default(),
            objectives,
            reading: Mutex::new(()),
        };
        metrics.register();
        metrics
    }

    /// Adds the own health of the process to what is read.
    #[must_use]
    pub fn with_health(mut self, health: HealthMetrics) -> Self {
        self.registry.register_collector(Box::new(health));
        self
    }

    fn register(&mut self) {
        let registry = &mut self.registry;
        registry.register("phase_seconds", "Time of requests by phase, as first joined", self.times.clone());
        registry.register("requests", "Requests by what became of them, as first joined", self.requests.clone());
        registry.register("client_records", "Client records that were settled", self.records.clone());
        registry.register("client_records_matched", "Client records that were matched", self.matched.clone());
        let excluded = "Client records that are in no distribution, by reason";
        registry.register("client_records_excluded", excluded, self.excluded.clone());
        let overflowed = "Requests counted under overflow, since their labels are beyond --metric-series";
        registry.register("metric_series_overflow_requests", overflowed, self.overflowed.clone());
        self.objectives.register(registry);
    }

    /// Reads everything that is counted, and what is promised and judged at the moment. One reader at a time, since the
    /// latter is written anew for each.
    pub fn read<T>(&self, now: UnixNanos, read: impl FnOnce(&Registry) -> T) -> T {
        let _alone = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        self.objectives.refresh(now);
        read(&self.registry)
    }

    fn admit(&self, combination: Combination, requests: usize) -> Combination {
        let (combination, over) = self.cap.lock().unwrap_or_else(PoisonError::into_inner).admit(combination);
        if over {
            self.overflowed.inc_by(requests as u64);
        }
        combination
    }

    fn count(&self, combination: &Combination, seen: &Seen) {
        let state = labelled("state", seen.observation.state.name(), combination);
        self.requests.get_or_create(&state).inc();
        if !has_record(&seen.observation) {
            return;
        }
        // Both are there from the first record on, so that their ratio is 0 and not unknown where nothing matches.
        self.records.get_or_create(combination).inc();
        self.matched.get_or_create(combination).inc_by(u64::from(seen.observation.state == State::Matched));
        if seen.observation.state == State::Excluded {
            let reason = seen.observation.flags.exclusion().unwrap_or(Flag::ClockInvalid);
            self.excluded.get_or_create(&labelled("reason", reason.name(), combination)).inc();
        }
    }

    fn time(&self, combination: &Combination, requests: &[Seen], at: SystemTime) {
        for phase in PHASES {
            let told = |seen: &Seen| Some((seen.trace_id, told(phase, &seen.observation)?));
            let mut values = requests.iter().filter_map(told).peekable();
            if values.peek().is_none() {
                continue;
            }
            let histogram = self.times.get_or_create_owned(&labelled("phase", phase.column(), combination));
            for (trace_id, value) in values {
                histogram.observe(phases::seconds(value), Some(Exemplar(trace_id)), Some(at));
            }
        }
    }
}

fn labelled(label: &'static str, value: &'static str, combination: &Combination) -> With {
    With { label, value, combination: combination.clone() }
}

/// A request as it is counted.
struct Seen {
    trace_id: TraceId,
    observation: Observation,
}

impl Seen {
    fn of(row: &RequestRow) -> Self {
        let observation = Observation::of(&row.request, row.arrived_at, row.dims);
        Self { trace_id: row.request.trace_id, observation }
    }
}

fn labels(row: &RequestRow) -> Labels {
    Labels { client: row.request.client_dimensions.clone(), all: row.request.dimensions.clone() }
}

impl JoinObserver for RequestMetrics {
    fn joined(&self, first: &[RequestRow], at: UnixNanos) {
        let observed: Vec<Seen> = first.iter().map(Seen::of).collect();
        self.objectives.count(observed.iter().zip(first).map(|(seen, row)| (&seen.observation, labels(row))));
        let mut groups: HashMap<Combination, Vec<Seen>> = HashMap::new();
        for (seen, row) in observed.into_iter().zip(first) {
            groups.entry(Combination::of(&row.request)).or_default().push(seen);
        }
        let at = SystemTime::from(at.to_datetime());
        for (combination, requests) in groups {
            let combination = self.admit(combination, requests.len());
            for seen in &requests {
                self.count(&combination, seen);
            }
            self.time(&combination, &requests, at);
        }
    }
}
