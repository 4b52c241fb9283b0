//! Counting: minutes whose requests changed, and those of a new version that are still to be counted.

use std::collections::BTreeMap;

use super::{MinuteCounts, countable, key, longest};
use crate::objectives::catalogue::Versioned;
use crate::store::{LabelledRequests, SloMinuteClaim, SloMinuteRow, SloProgress, SloVersion, StoreError};
use model::{Interval, Labels, Nanos, Observation, Slice, UnixNanos};
use slo::outcome::outcome;
use slo::tally::Tally;

/// Slices counted in one transaction.
const SLICES: u32 = 32;

/// A minute that is not over is counted all the same once its change has waited this long: its time may be wrong.
const WAITED: Nanos = Nanos(10 * Slice::MINUTE.0);

/// Minutes that a new version is counted back in one transaction, and requests after which it stops before that.
const MINUTES_BACK: usize = 60;
const REQUESTS_BACK: usize = 50_000;

/// Transactions of one round, and those among them that count new versions back: the next round goes on from there.
const STEPS: usize = 64;
const STEPS_BACK: usize = 6;

/// What a round did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counted {
    /// Slices whose requests had changed and are counted again.
    pub again: usize,
    /// Minutes that new versions are counted further back.
    pub back: usize,
    /// Whether nothing is left to do; not so where another instance is at it, or knows of newer objectives.
    pub finished: bool,
}

impl MinuteCounts {
    /// Counts what has changed, and new versions some way further back. `versions` are all current ones.
    ///
    /// # Errors
    /// [`StoreError::Database`]; what was counted before stays.
    pub async fn count(&self, versions: &[Versioned], now: UnixNanos) -> Result<Counted, StoreError> {
        let mut counted = Counted::default();
        let mut steps_back = 0;
        for _ in 0..STEPS {
            let Some(claim) = self.store.claim_slo_minutes().await? else { break };
            let work = Work { claim, versions, now, end: self.end(now), rows_from: self.rows_from(now) };
            let Some(step) = work.step().await? else { break };
            counted.again += step.again;
            counted.back += step.back;
            counted.finished = step.finished;
            steps_back += usize::from(step.back > 0);
            if step.finished || steps_back == STEPS_BACK {
                break;
            }
        }
        metrics::counter!("tracejoin_slo_slices_counted_total").increment((counted.again + counted.back) as u64);
        Ok(counted)
    }

    /// The requests of minutes from here on are surely still there.
    fn rows_from(&self, now: UnixNanos) -> UnixNanos {
        Slice::minute_of(now - Nanos::from(self.store.options().retention) + Slice::MINUTE)
    }
}

/// One transaction's work.
struct Work<'a> {
    claim: SloMinuteClaim,
    versions: &'a [Versioned],
    now: UnixNanos,
    end: UnixNanos,
    rows_from: UnixNanos,
}

impl<'a> Work<'a> {
    /// `None` where another instance has to do it.
    async fn step(mut self) -> Result<Option<Counted>, StoreError> {
        let Some(counting) = self.counting().await? else {
            self.claim.commit().await?;
            return Ok(None);
        };
        if counting.is_empty() {
            self.claim.drop_marks().await?;
            self.claim.commit().await?;
            return Ok(Some(Counted { finished: true, ..Counted::default() }));
        }
        self.claim.drop_old_marks(self.now).await?;
        let again = self.count_again(&counting).await?;
        // What changed comes first: until it is counted, every reading has to.
        let (back, reached) = if again < SLICES as usize { self.count_back(&counting).await? } else { (0, false) };
        self.claim.commit().await?;
        Ok(Some(Counted { again, back, finished: reached }))
    }

    /// The versions that are counted; `None` where one of them is unknown here, so that this instance must not remove
    /// marks: it has yet to hear of it.
    async fn counting(&mut self) -> Result<Option<Vec<(SloProgress, &'a Versioned)>>, StoreError> {
        self.claim.forget_replaced().await?;
        for versioned in countable(self.versions) {
            let target = (self.end - longest(&versioned.objective)).max(self.rows_from);
            let none_yet = UnixNanos(i64::MAX);
            let progress = SloProgress { of: key(versioned), counted_from: none_yet, target_from: target };
            self.claim.begin(&progress).await?;
        }
        let known: BTreeMap<SloVersion, &'a Versioned> = countable(self.versions).map(|one| (key(one), one)).collect();
        let progress = self.claim.versions().await?;
        let found = progress.into_iter().map(|progress| {
            let versioned = *known.get(&progress.of)?;
            Some((progress, versioned))
        });
        Ok(found.collect())
    }

    /// Counts slices that have marks; returns how many there were.
    async fn count_again(&mut self, counting: &[(SloProgress, &'a Versioned)]) -> Result<usize, StoreError> {
        let slices = self.claim.take_marks(self.end, self.now - WAITED, SLICES).await?;
        for slice in &slices {
            let of: Vec<&(SloProgress, &'a Versioned)> =
                counting.iter().filter(|(progress, _)| progress.counted_from <= slice.minute).collect();
            let requests = self.claim.requests_of(*slice).await?;
            let rows = tallies(of.iter().map(|(_, versioned)| *versioned), &requests);
            let keys: Vec<SloVersion> = of.iter().map(|(progress, _)| progress.of.clone()).collect();
            self.claim.replace_slice(*slice, &keys, &rows).await?;
        }
        Ok(slices.len())
    }

    /// Counts the versions that are least far back some minutes further; returns how many, and whether none is left.
    async fn count_back(&mut self, counting: &[(SloProgress, &'a Versioned)]) -> Result<(usize, bool), StoreError> {
        let behind = || counting.iter().filter(|(progress, _)| progress.counted_from > progress.target_from);
        let Some(from) = behind().map(|(progress, _)| progress.counted_from).max() else {
            return Ok((0, true));
        };
        let together: Vec<&(SloProgress, &'a Versioned)> =
            behind().filter(|(progress, _)| progress.counted_from == from).collect();
        let keys: Vec<SloVersion> = together.iter().map(|(progress, _)| progress.of.clone()).collect();
        let target = together.iter().map(|(progress, _)| progress.target_from).max().unwrap_or(from);
        let mut window = Interval { start: from, end: from };
        let (mut minutes, mut requests) = (0, 0);
        let mut rows = Vec::new();
        while window.start > target && minutes < MINUTES_BACK && requests < REQUESTS_BACK {
            let minute = Interval { start: (window.start.min(self.end) - Slice::MINUTE), end: window.start };
            let found = self.claim.requests_within(minute).await?;
            rows.extend(tallies(together.iter().map(|(_, versioned)| *versioned), &found));
            requests += found.0.len();
            minutes += 1;
            window.start = minute.start;
        }
        self.claim.extend(window, &keys, &rows).await?;
        Ok((minutes, false))
    }
}

/// The counts of each version in each slice; what is zero is left out.
fn tallies<'a>(of: impl Iterator<Item = &'a Versioned>, requests: &LabelledRequests) -> Vec<SloMinuteRow> {
    let (observations, labels) = requests;
    of.flat_map(|versioned| {
        let rows = by_slice(versioned, observations, labels).into_iter();
        rows.map(|(slice, tally)| SloMinuteRow { of: key(versioned), slice, counts: tally.into() })
    })
    .collect()
}

/// The requests of each slice by their outcome; slices without any that counts are left out.
pub(super) fn by_slice(
    versioned: &Versioned,
    observations: &[Observation],
    labels: &BTreeMap<i64, Labels>,
) -> BTreeMap<Slice, Tally> {
    let unknown = Labels::default();
    let mut tallies: BTreeMap<Slice, Tally> = BTreeMap::new();
    for observation in observations {
        let labels = labels.get(&observation.labels).unwrap_or(&unknown);
        let tally = tallies.entry(observation.slice).or_default();
        tally.add(outcome(&versioned.objective, observation, labels));
    }
    tallies.retain(|_, tally| *tally != Tally::default());
    tallies
}
