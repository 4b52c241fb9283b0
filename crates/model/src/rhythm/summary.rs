//! The same judgement where only a summary of the gaps is known.

use super::{BURST, FASTEST_EVENT, MIN_BURSTS, MIN_EVENTS, SHARE, SILENCE, TOGETHER};
use crate::record::StreamSummary;
use crate::time::Nanos;

impl StreamSummary {
    /// Whether something on the way held events back: by the evidence of whoever saw all arrivals, else where most
    /// events came together after a silence, or where gaps are of two kinds, hardly any and long. `ttft` is the wait for
    /// the first event, `duration` ends the last where its own time is not known. `None` where nothing tells, or the
    /// answer is too short to; that does not depend on the two.
    pub fn suspected_buffering(&self, ttft: Option<Nanos>, duration: Option<Nanos>) -> Option<bool> {
        let events = self.business_events.filter(|events| *events >= MIN_EVENTS as i64)?;
        if let Some(held) = self.buffered_events {
            return Some(held as f64 / events as f64 >= SHARE);
        }
        let batched = self.mostly_batched();
        let Some(longest) = self.max_gap else { return batched };
        if batched == Some(true) && longest >= SILENCE {
            return Some(true);
        }
        let span = self.last_event.or(duration).zip(ttft).map(|(last, first)| last - first);
        let waited = ttft.is_none_or(|ttft| ttft >= SILENCE);
        let Some(median) = self.p50_gap else { return batched };
        if longest < TOGETHER {
            let fast = span.map_or(median < FASTEST_EVENT, |span| span.0 / FASTEST_EVENT.0 < events);
            return Some(waited && fast);
        }
        let two_kinds = median < TOGETHER && self.silences(events, span) + i64::from(waited) >= MIN_BURSTS as i64;
        Some(two_kinds && self.bursts_are_large(events, span))
    }

    /// Whether most events came together with another; `None` where nobody counted.
    pub fn mostly_batched(&self) -> Option<bool> {
        self.batched_share().map(|share| share >= SHARE)
    }

    /// The lowest of the upper quantiles that is a silence, and how many gaps are as long at least.
    fn silence(&self, events: i64) -> Option<(Nanos, i64)> {
        let gaps = events - 1;
        let from = |percent: i64| gaps - (percent * gaps + 99) / 100 + 1;
        let told = [(self.p95_gap, from(95)), (self.p99_gap, from(99)), (self.max_gap, 1)];
        told.into_iter().filter_map(|(gap, least)| Some((gap?, least))).find(|(gap, _)| *gap >= SILENCE)
    }

    /// About how many gaps are silences: as the quantiles say, or as many as the time takes where most gaps are hardly
    /// any.
    fn silences(&self, events: i64, span: Option<Nanos>) -> i64 {
        let Some((long, least)) = self.silence(events) else { return 0 };
        let longest = self.max_gap.unwrap_or(long);
        span.map_or(least, |span| least.max(span.0 / longest.0))
    }

    /// Engines that emit several tokens a step show gaps of two kinds as well, but few events a step: then the mean gap
    /// is a larger part of the long ones. Where the span is not known it cannot be told.
    fn bursts_are_large(&self, events: i64, span: Option<Nanos>) -> bool {
        let (Some((long, _)), Some(span)) = (self.silence(events), span) else { return true };
        let mean = span.0 as f64 / (events - 1) as f64;
        mean * BURST as f64 <= long.0 as f64
    }
}
