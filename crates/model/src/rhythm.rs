//! The rhythm of a streamed answer: the gaps between its events, and whether something on the way held them back.
//!
//! A model that pauses is silent, then goes on at its own pace. A buffer on the way is silent, then lets go of all that
//! it held: the events of many steps arrive within an instant. A network that stalls does so too, but rarely; a buffer
//! does it again and again, until most of the answer has come in bursts.

use super::record::StreamSummary;
use super::time::Nanos;

mod summary;

/// Events nearer to one another than this came out of one buffer, or out of one read.
const TOGETHER: Nanos = Nanos(2_000_000);

/// A silence shorter than this is no wait that a person sees.
const SILENCE: Nanos = Nanos(80_000_000);

/// Fewer events in a burst are what engines emit in one step (speculative decoding, several tokens a step).
const BURST: usize = 4;

/// Fewer events than this tell no rhythm.
const MIN_EVENTS: usize = 8;

/// The part of the events that must have been held back. Stalls of a network stay below it.
const SHARE: f64 = 0.7;

/// An answer that came in one burst was held as a whole where no model could have written it in so short a time: one
/// event in less than this.
const FASTEST_EVENT: Nanos = Nanos(500_000);

/// Bursts that a stream of several needs, so that one stall does not count.
const MIN_BURSTS: usize = 3;

/// Gaps between the events of one answer (design, section 5). Quantiles are the ⌈q·n⌉-th smallest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gaps {
    /// The median.
    pub p50: Nanos,
    /// The 0.95-quantile.
    pub p95: Nanos,
    /// The 0.99-quantile.
    pub p99: Nanos,
    /// The longest.
    pub max: Nanos,
    /// How many are longer than one second.
    pub over_1s: i64,
}

impl Gaps {
    /// Of events at these times, which come in order; `None` where there are fewer than two.
    pub fn between(times: &[Nanos]) -> Option<Self> {
        Self::of(times.windows(2).map(|pair| pair[1] - pair[0]).collect())
    }

    /// Of gaps in any order; `None` where there is none.
    pub fn of(mut gaps: Vec<Nanos>) -> Option<Self> {
        gaps.sort_unstable();
        let max = *gaps.last()?;
        let rank = |percent: usize| gaps[(percent * gaps.len()).div_ceil(100).max(1) - 1];
        let over_1s = gaps.iter().filter(|gap| gap.0 > 1_000_000_000).count();
        Some(Self { p50: rank(50), p95: rank(95), p99: rank(99), max, over_1s: over_1s as i64 })
    }
}

/// What speaks for a buffer on the way.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Buffering {
    /// Events that came in bursts after a silence.
    pub events: usize,
    /// The same by all events.
    pub share: f64,
    /// The median silence before a burst.
    pub silence: Nanos,
    /// The median number of events in a burst.
    pub burst: usize,
}

/// A run of events that came together, after a silence.
#[derive(Debug, Clone, Copy)]
struct Burst {
    silence: Nanos,
    events: usize,
}

/// Whether events were held back on the way. `times` are the arrivals of the business events since the request was
/// sent, in order; the wait for the first counts as a silence. `None` where nothing speaks for it, or the answer is too
/// short to tell.
pub fn buffering(times: &[Nanos]) -> Option<Buffering> {
    if times.len() < MIN_EVENTS {
        return None;
    }
    let bursts: Vec<Burst> =
        runs(times).into_iter().filter(|run| run.events >= BURST && run.silence >= SILENCE).collect();
    let held: usize = bursts.iter().map(|burst| burst.events).sum();
    let share = held as f64 / times.len() as f64;
    let span = *times.last()? - *times.first()?;
    let at_once = span.0 / FASTEST_EVENT.0 < times.len() as i64;
    if share < SHARE || (bursts.len() < MIN_BURSTS && !at_once) {
        return None;
    }
    let silence = median(bursts.iter().map(|burst| burst.silence).collect())?;
    let burst = median(bursts.iter().map(|burst| burst.events).collect())?;
    Some(Buffering { events: held, share, silence, burst })
}

impl StreamSummary {
    /// What the arrivals of the business events tell. `times` are since the request was sent, in order.
    pub fn of_arrivals(times: &[Nanos]) -> Self {
        let gaps = Gaps::between(times);
        let buffering = buffering(times);
        let held = || buffering.map_or(0, |buffering| buffering.events as i64);
        Self {
            business_events: Some(times.len() as i64),
            p50_gap: gaps.map(|gaps| gaps.p50),
            p95_gap: gaps.map(|gaps| gaps.p95),
            p99_gap: gaps.map(|gaps| gaps.p99),
            max_gap: gaps.map(|gaps| gaps.max),
            gaps_over_1s: (!times.is_empty()).then(|| gaps.map_or(0, |gaps| gaps.over_1s)),
            last_event: times.last().copied(),
            buffered_events: (times.len() >= MIN_EVENTS).then(held),
            buffer_silence: buffering.map(|buffering| buffering.silence),
            buffer_burst: buffering.map(|buffering| buffering.burst as i64),
            ..Self::default()
        }
    }
}

/// The events by runs, each with the silence before it.
fn runs(times: &[Nanos]) -> Vec<Burst> {
    let mut runs: Vec<Burst> = Vec::new();
    let mut before = Nanos::ZERO;
    for time in times.iter().copied() {
        let gap = time - before;
        match runs.last_mut() {
            Some(run) if gap < TOGETHER => run.events += 1,
            _ => runs.push(Burst { silence: gap, events: 1 }),
        }
        before = time;
    }
    runs
}

fn median<T: Ord + Copy>(mut values: Vec<T>) -> Option<T> {
    values.sort_unstable();
    values.get(values.len().checked_sub(1)? / 2).copied()
}

#[cfg(test)]
mod tests;
