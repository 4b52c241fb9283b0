//! Reading: stored counts, completed from the requests of what has changed since.

use std::collections::BTreeMap;

use super::counting::by_slice;
use super::{MinuteCounts, burn_windows, countable, key, longest};
use crate::objectives::catalogue::Versioned;
use crate::store::{SloVersion, Snapshot, StoreError};
use model::{Interval, Nanos, Slice, UnixNanos};
use slo::burn::{BudgetState, BurnState, NoMinutes, Part, counted_target};
use slo::objective::Burn;
use slo::tally::Tally;

/// Why there is no burn rate or budget.
#[derive(Debug, thiserror::Error)]
pub enum MinuteError {
    /// There is nothing to count.
    #[error(transparent)]
    NoMinutes(#[from] NoMinutes),
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The counts of some objectives in one state of the database.
pub struct MinuteReading {
    snapshot: Snapshot,
    now: UnixNanos,
    /// What can be read.
    span: Interval,
    versions: BTreeMap<SloVersion, Uncached>,
}

/// What is not stored of one version.
struct Uncached {
    /// All minutes from here on are counted.
    counted_from: UnixNanos,
    /// Of the minutes that have changed since they were counted.
    changed: BTreeMap<Slice, Tally>,
}

impl MinuteCounts {
    /// Reads what the burn rates of `versions` need at `now`. All of it is of one moment.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn for_burn(&self, versions: &[Versioned], now: UnixNanos) -> Result<MinuteReading, StoreError> {
        let back = versions.iter().map(|versioned| longest(&versioned.objective)).max().unwrap_or_default();
        self.read(versions, back, now).await
    }

    /// Reads what the budgets of `versions` need at `now`, and their burn rates. All of it is of one moment.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn for_budget(&self, versions: &[Versioned], now: UnixNanos) -> Result<MinuteReading, StoreError> {
        self.read(versions, Burn::PERIOD, now).await
    }

    /// Reads what windows need that begin `back` or less before their end.
    async fn read(&self, versions: &[Versioned], back: Nanos, now: UnixNanos) -> Result<MinuteReading, StoreError> {
        let mut snapshot = self.store.snapshot().await?;
        let span = Interval { start: self.end(now) - back, end: self.end(now) };
        let counted = snapshot.slo_versions().await?;
        let counted: BTreeMap<SloVersion, UnixNanos> =
            counted.into_iter().map(|progress| (progress.of, progress.counted_from)).collect();
        let mut uncached: BTreeMap<SloVersion, Uncached> = BTreeMap::new();
        for versioned in countable(versions) {
            if let Some(counted_from) = counted.get(&key(versioned)) {
                let changed = BTreeMap::new();
                uncached.insert(key(versioned), Uncached { counted_from: *counted_from, changed });
            }
        }
        for slice in snapshot.uncounted_slices(span, now).await? {
            let (observations, labels) = snapshot.requests_of(slice).await?;
            for versioned in countable(versions) {
                if let Some(known) = uncached.get_mut(&key(versioned)) {
                    known.changed.extend(by_slice(versioned, &observations, &labels));
                }
            }
        }
        Ok(MinuteReading { snapshot, now, span, versions: uncached })
    }
}

impl MinuteReading {
    /// The requests in each of some windows of whole minutes that end at [`MinuteCounts::end`], as far back as they are
    /// counted and this reading goes. Nothing is there of a version that nobody has begun to count.
    ///
    /// # Errors
    /// [`MinuteError`].
    pub async fn parts(&mut self, versioned: &Versioned, windows: &[Interval]) -> Result<Vec<Part>, MinuteError> {
        counted_target(&versioned.objective)?;
        let of = key(versioned);
        let first = self.first_minute(&of).await?;
        let (Some(known), Some(first)) = (self.versions.get(&of), first) else {
            return Ok(windows.iter().map(Part::nothing).collect());
        };
        let from = first.max(self.span.start);
        let there = |window: &Interval| Interval { start: window.start.max(from).min(window.end), end: window.end };
        let parts: Vec<Interval> = windows.iter().map(there).collect();
        let counts = self.snapshot.slo_counts(&of, &parts, self.now).await?;
        let mut read = Vec::new();
        for ((window, there), counts) in windows.iter().zip(parts).zip(counts) {
            let mut tally = Tally::from(counts);
            let is_there = |slice: &Slice| there.start <= slice.minute && slice.minute < there.end;
            known.changed.iter().filter(|(slice, _)| is_there(slice)).for_each(|(_, changed)| tally.merge(changed));
            read.push(Part { window: *window, there, tally });
        }
        Ok(read)
    }

    /// The first minute of this reading in which anything counts.
    async fn first_minute(&mut self, of: &SloVersion) -> Result<Option<UnixNanos>, StoreError> {
        let Some(known) = self.versions.get(of) else { return Ok(None) };
        let stored = self.snapshot.first_slo_minute(of, known.counted_from, self.now).await?;
        let changed = known.changed.keys().map(|slice| slice.minute).filter(|minute| *minute >= known.counted_from);
        Ok(changed.chain(stored).min())
    }

    /// What each pair of windows of an objective says; empty where none is wanted.
    ///
    /// # Errors
    /// [`MinuteError`].
    pub async fn burn(&mut self, versioned: &Versioned) -> Result<Vec<BurnState>, MinuteError> {
        let target = counted_target(&versioned.objective)?;
        let burn = &versioned.objective.burn;
        let parts = self.parts(versioned, &burn_windows(burn, self.span.end)).await?;
        let pairs = burn.windows.iter().zip(parts.chunks_exact(2));
        Ok(pairs.map(|(pair, parts)| BurnState::of(pair, burn, target, &parts[0], &parts[1])).collect())
    }

    /// What is left of the budget of the last period.
    ///
    /// # Errors
    /// [`MinuteError`].
    pub async fn budget(&mut self, versioned: &Versioned) -> Result<BudgetState, MinuteError> {
        let target = counted_target(&versioned.objective)?;
        let period = Interval { start: self.span.end - Burn::PERIOD, end: self.span.end };
        let mut parts = self.parts(versioned, &[period]).await?;
        Ok(BudgetState::of(target, parts.remove(0)))
    }
}
