//! Fetches what a question needs: rows where they are few or new, rollups where they are many.

use std::collections::BTreeSet;

use crate::store::{RequestRow, RollupRow, Snapshot, Store, StoreError};
use model::{Interval, Iterations, Observation, Order, ResultClass, Selection, Slice, UnixNanos};
use stats::answer::{Contents, EXACT_BELOW, Question, Window};
use stats::cell::{Cell, CellKey, cells};
use stats::rollup::{self, DecodeError};
use stats::scope::Dictionary;

/// Why a window could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A stored rollup is corrupt.
    #[error(transparent)]
    Rollup(#[from] DecodeError),
    /// More groups than are answered at once: each has its own coverage over the whole window.
    #[error(
        "this window has {0} groups, more than the {MAX_GROUPS} that are answered at once; filter, or group by less"
    )]
    TooManyGroups(usize),
}

/// Groups of one answer.
pub const MAX_GROUPS: usize = 200;

/// Reads windows from the store.
#[derive(Clone)]
pub struct Reader {
    store: Store,
}

impl Reader {
    /// Reads from `store`.
    pub fn new(store: Store) -> Self {
        Self { store }
    }

    /// What the question needs to be answered. Below 10,000 requests it is all of them, of exactly the window asked for.
    /// From there on, or where rows are gone and only rollups are left, the window is widened to whole minutes; groups
    /// of that size are then digests of each slice, whether these were stored or are made now.
    ///
    /// # Errors
    /// All of [`ReadError`].
    pub async fn contents(&self, question: &Question) -> Result<Window, ReadError> {
        let unsettled_records = self.store.unsettled_records().await?;
        let mut snapshot = self.store.snapshot().await?;
        let asked = question.selection.window;
        let served = Slice::whole_minutes(asked);
        let mut survey = Survey::of(&mut snapshot, question, served).await?;
        let groups = question.group_count(&survey.contents);
        if groups > MAX_GROUPS {
            return Err(ReadError::TooManyGroups(groups));
        }
        let now = UnixNanos::now();
        let has_all_rows = survey.rollups.iter().all(|row| self.store.keeps_rows_of(row.slice, now));
        if has_all_rows && survey.contents.requests() < EXACT_BELOW {
            let dictionary = snapshot.labels(asked, false).await?;
            let observations = snapshot.observations(asked, &needed(question, &dictionary)).await?;
            let contents = Contents { cells: cells(&observations).into_iter().collect(), dictionary };
            return Ok(Window { served: asked, contents, unsettled_records });
        }
        let exact = if has_all_rows { question.exact_cells(&survey.contents) } else { BTreeSet::new() };
        survey.add_values(&mut snapshot, &exact).await?;
        Ok(Window { served, contents: survey.contents, unsettled_records })
    }

    /// In how many of a window's equal parts there is a settled client record of one of these labels and classes.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn busy_parts(
        &self,
        window: Interval,
        parts: u32,
        labels: &[i64],
        results: &BTreeSet<ResultClass>,
    ) -> Result<u32, StoreError> {
        self.store.busy_parts(window, parts, labels, results).await
    }

    /// The iterations of the runs that finished in a window, of all or only of those named.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn iterations(&self, window: Interval, runs: Option<&[String]>) -> Result<Iterations, StoreError> {
        self.store.iterations(window, runs).await
    }

    /// The first requests of a selection, without their spans.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn list(&self, selection: &Selection, order: Order, limit: u32) -> Result<Vec<RequestRow>, StoreError> {
        self.store.list(selection, order, limit).await
    }
}

fn needed(question: &Question, dictionary: &Dictionary) -> Vec<i64> {
    question.needed_labels(dictionary).into_iter().collect()
}

/// The counts of a window of whole minutes, to which values are added once it is known which are needed.
struct Survey {
    window: Interval,
    needed: Vec<i64>,
    /// Of slices whose rollup is up to date, without digests.
    rollups: Vec<RollupRow>,
    /// The requests of all other slices.
    changed: Vec<Observation>,
    contents: Contents,
}

impl Survey {
    async fn of(snapshot: &mut Snapshot, question: &Question, window: Interval) -> Result<Self, ReadError> {
        let dictionary = snapshot.labels(window, true).await?;
        let needed = needed(question, &dictionary);
        let rollups = snapshot.rollups(window, &needed, false).await?;
        let slices = snapshot.dirty_slices(window).await?;
        let changed = snapshot.observations_of_slices(&slices, &needed).await?;
        let mut counted = Vec::new();
        for row in &rollups {
            let counts = rollup::decode_counts(&row.counts)?;
            counted.push((key_of(row), Cell { counts, ..Cell::default() }));
        }
        for (_, key, cell) in rollup::digested(&changed) {
            counted.push((key, Cell { counts: cell.counts, ..Cell::default() }));
        }
        Ok(Self { window, needed, rollups, changed, contents: Contents { cells: counted, dictionary } })
    }

    /// Adds the values: all of them for the cells that are to be `exact`, digests for the others.
    async fn add_values(&mut self, snapshot: &mut Snapshot, exact: &BTreeSet<CellKey>) -> Result<(), ReadError> {
        let mut digests = Vec::new();
        for row in snapshot.rollups(self.window, &self.needed, true).await? {
            let key = key_of(&row);
            if !exact.contains(&key) {
                digests.push((row.slice, key, rollup::decode(&row.counts, &row.digests)?));
            }
        }
        digests.extend(rollup::digested(&self.changed).filter(|(_, key, _)| !exact.contains(key)));
        digests.sort_by_key(|(slice, key, _)| (*slice, *key));

        let wanted = exact.iter().filter_map(|key| key.result.map(|result| (key.labels, result))).collect();
        let observations = snapshot.observations_of(self.window, &wanted).await?;
        let whole = cells(&observations).into_iter().filter(|(key, _)| exact.contains(key));
        // Cells that hold no values, such as excluded ones, are in neither of the two unless they are here as digests.
        self.contents.cells = digests.into_iter().map(|(_, key, cell)| (key, cell)).chain(whole).collect();
        Ok(())
    }
}

fn key_of(row: &RollupRow) -> CellKey {
    CellKey { labels: row.labels, state: row.state, result: row.result }
}
