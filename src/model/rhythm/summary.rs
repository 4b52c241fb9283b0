//! The same judgement where only a summary of the gaps is known.

use super::{BURST, FASTEST_EVENT, MIN_BURSTS, MIN_EVENTS, SHARE, SILENCE, TOGETHER};
use crate::model::record::StreamSummary;
use crate::model::time::Nanos;

impl StreamSummary {
    /// Whether something on the way held events back: by the evidence of whoever saw all arrivals, else by how many
    /// events came together, else by gaps of two kinds, hardly any and long. `ttft` is the wait for the first event.
    /// `None` where nothing tells, or the answer is too short to.
    pub fn suspected_buffering(&self, ttft: Option<Nanos>) -> Option<bool> {
        let events = self.business_events.filter(|events| *events >= MIN_EVENTS as i64)?;
        if let Some(held) = self.buffered_events {
            return Some(held as f64 / events as f64 >= SHARE);
        }
        let longest = self.max_gap?;
        if let Some(share) = self.batched_share()
            && share < SHARE
        {
            return Some(false);
        }
        if longest < TOGETHER {
            return Some(self.came_at_once(ttft, events));
        }
        let silences = self.silences_at_least(events)? + i64::from(ttft.is_some_and(|ttft| ttft >= SILENCE));
        let two_kinds = self.p50_gap? < TOGETHER && silences >= MIN_BURSTS as i64;
        Some(two_kinds && self.bursts_are_large(ttft, events))
    }

    /// Whether all of it was one burst, in a time in which no model could have written it.
    fn came_at_once(&self, ttft: Option<Nanos>, events: i64) -> bool {
        let waited = ttft.is_none_or(|ttft| ttft >= SILENCE);
        let span = self.last_event.zip(ttft).map(|(last, first)| last - first);
        let fast = match span {
            Some(span) => span.0 / FASTEST_EVENT.0 < events,
            None => self.p50_gap.is_some_and(|gap| gap < FASTEST_EVENT),
        };
        waited && fast
    }

    /// How many gaps are silences at least: from the lowest quantile that is one to the longest gap.
    fn silences_at_least(&self, events: i64) -> Option<i64> {
        let gaps = events - 1;
        let from = |percent: i64| gaps - (percent * gaps + 99) / 100 + 1;
        let told = [(self.p95_gap?, from(95)), (self.p99_gap?, from(99)), (self.max_gap?, 1)];
        let silent = told.into_iter().find(|(gap, _)| *gap >= SILENCE);
        Some(silent.map_or(0, |(_, gaps)| gaps))
    }

    /// Engines that emit several tokens a step show gaps of two kinds as well, but few events a step: then the mean gap
    /// is a larger part of the long ones. Where the time of the last event is not known it cannot be told.
    fn bursts_are_large(&self, ttft: Option<Nanos>, events: i64) -> bool {
        let long = [self.p95_gap, self.p99_gap, self.max_gap].into_iter().flatten().find(|gap| *gap >= SILENCE);
        let span = self.last_event.zip(ttft).map(|(last, first)| last - first);
        let (Some(long), Some(span)) = (long, span) else { return true };
        let mean = span.0 as f64 / (events - 1) as f64;
        mean * BURST as f64 <= long.0 as f64
    }
}
