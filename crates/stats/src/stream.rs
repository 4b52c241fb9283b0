//! What is counted of streamed answers beside their distributions: whether they were whole, whether something held them
//! back, and how many tokens all of them together brought.

use std::collections::BTreeMap;

use super::cell::{Cell, CellKey};
use super::scope::Dictionary;
use model::{Completeness, Dimension, State};

/// Requests by whether all of the answer arrived.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Wholeness {
    /// Requests by how completely they tell it.
    pub classes: BTreeMap<Completeness, u64>,
    /// Streamed ones that do not.
    pub not_told: u64,
}

impl Wholeness {
    /// Of these cells.
    pub fn of<'a>(cells: impl Iterator<Item = (&'a CellKey, &'a Cell)>, dictionary: &Dictionary) -> Self {
        let mut wholeness = Self::default();
        for (key, cell) in cells.filter(|(key, _)| matches!(key.state, State::Matched | State::ClientOnly)) {
            for (class, n) in &cell.counts.completeness {
                *wholeness.classes.entry(*class).or_default() += n;
            }
            let told = cell.counts.completeness.values().sum();
            wholeness.not_told += streamed_beyond(told, key, cell, dictionary);
        }
        wholeness
    }

    /// The number of requests that tell it.
    pub fn n(&self) -> u64 {
        self.classes.values().sum()
    }
}

/// Requests by whether something on the way held their events back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rhythm {
    /// Those that could be judged.
    pub judged: u64,
    /// How many of them are suspected.
    pub suspected: u64,
    /// Streamed ones that could not be judged.
    pub not_judged: u64,
}

impl Rhythm {
    /// Of these cells.
    pub fn of<'a>(cells: impl Iterator<Item = (&'a CellKey, &'a Cell)>, dictionary: &Dictionary) -> Self {
        let mut rhythm = Self::default();
        for (key, cell) in cells {
            rhythm.judged += cell.counts.judged;
            rhythm.suspected += cell.counts.suspected_buffering;
            rhythm.not_judged += streamed_beyond(cell.counts.judged, key, cell, dictionary);
        }
        rhythm
    }

    /// The share of the judged that is suspected; `None` where none was judged.
    pub fn share(&self) -> Option<f64> {
        (self.judged > 0).then(|| self.suspected as f64 / self.judged as f64)
    }
}

/// How many requests of a cell were streamed beyond those that are known. A cell's requests share their labels.
fn streamed_beyond(known: u64, key: &CellKey, cell: &Cell, dictionary: &Dictionary) -> u64 {
    let labels = dictionary.get(&key.labels);
    let streamed = labels.and_then(|labels| labels.all.get(Dimension::Streaming)) == Some("true");
    if streamed { cell.counts.requests.saturating_sub(known) } else { 0 }
}

/// The output of all settled requests together, however they ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Output {
    pub tokens: u64,
    /// Requests whose tokens were counted.
    pub counted: u64,
    /// Requests whose tokens were not counted.
    pub not_counted: u64,
}

impl Output {
    /// Of these cells.
    pub fn of<'a>(cells: impl Iterator<Item = (&'a CellKey, &'a Cell)>) -> Self {
        let mut output = Self::default();
        for (_, cell) in cells.filter(|(key, _)| key.state != State::Pending) {
            output.tokens = output.tokens.saturating_add(cell.counts.output_tokens);
            output.counted += cell.counts.with_output_tokens;
            output.not_counted += cell.counts.requests - cell.counts.with_output_tokens.min(cell.counts.requests);
        }
        output
    }
}
