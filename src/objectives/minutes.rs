//! Exact counts by minute of the requests that kept an objective, so that a window of days is read in no time.
//!
//! What is stored is a cache. A minute whose requests have changed since it was counted is counted from them whenever it
//! is read, so a reading is what counting all requests of that moment would give, whatever came late or twice and however
//! many instances are at it. Objectives that [`counted_target`] refuses have no minutes.

mod counting;
mod reading;

pub use counting::Counted;
pub use reading::{MinuteError, MinuteReading};

use super::catalogue::Versioned;
use crate::store::{OutcomeCounts, SloVersion, Store};
use model::{Interval, Nanos, Slice, UnixNanos};
use slo::burn::counted_target;
use slo::live::live_end;
use slo::objective::{Burn, Objective};
use slo::tally::Tally;

/// Counts requests by minute and reads the counts. Cheap to clone; several instances share the work.
#[derive(Clone)]
pub struct MinuteCounts {
    store: Store,
}

impl MinuteCounts {
    /// In `store`.
    pub fn new(store: Store) -> Self {
        Self { store }
    }

    /// Where a window of whole minutes ends at `now`: at the last minute all of which has settled.
    pub fn end(&self, now: UnixNanos) -> UnixNanos {
        Slice::minute_of(live_end(self.store.options().settle.into(), now))
    }
}

/// The windows of an objective's burn rates that end at `end`: of each pair the long one, then the short one.
pub fn burn_windows(burn: &Burn, end: UnixNanos) -> Vec<Interval> {
    let back = |length: Nanos| Interval { start: end - length, end };
    burn.windows.iter().flat_map(|pair| [back(pair.long), back(pair.short)]).collect()
}

/// The longest window over which an objective's burn rate is told.
fn longest(objective: &Objective) -> Nanos {
    objective.burn.windows.iter().map(|pair| pair.long.max(pair.short)).max().unwrap_or_default()
}

fn key(versioned: &Versioned) -> SloVersion {
    SloVersion { slo: versioned.objective.id.to_string(), version: versioned.version }
}

/// Those that are counted by minute.
fn countable(versions: &[Versioned]) -> impl Iterator<Item = &Versioned> {
    versions.iter().filter(|versioned| counted_target(&versioned.objective).is_ok())
}

impl From<Tally> for OutcomeCounts {
    fn from(tally: Tally) -> Self {
        let Tally { good, bad, left_out, missing } = tally;
        let [good, bad, left_out, missing] =
            [good, bad, left_out, missing].map(|count| i64::try_from(count).unwrap_or(i64::MAX));
        Self { good, bad, left_out, missing }
    }
}

impl From<OutcomeCounts> for Tally {
    fn from(counts: OutcomeCounts) -> Self {
        let OutcomeCounts { good, bad, left_out, missing } = counts;
        let [good, bad, left_out, missing] =
            [good, bad, left_out, missing].map(|count| u64::try_from(count).unwrap_or_default());
        Self { good, bad, left_out, missing }
    }
}
