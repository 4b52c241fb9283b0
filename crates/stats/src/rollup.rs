//! The stored form of cells: counts and digests of one slice, each versioned and checked on the way back.
//!
//! A rollup is a pure function of its slice's requests. It can be thrown away and built again at any time, with the same
//! bytes.

mod codec;

use std::collections::BTreeMap;

pub use codec::{DecodeError, decode, decode_counts, encode};

use super::cell::{Cell, CellKey};
use model::{Observation, Slice};

/// Sorts requests into digested cells, slice by slice.
pub fn digested<'a>(
    observations: impl IntoIterator<Item = &'a Observation>,
) -> impl Iterator<Item = (Slice, CellKey, Cell)> {
    let mut cells: BTreeMap<(Slice, CellKey), Cell> = BTreeMap::new();
    for observation in observations {
        cells.entry((observation.slice, CellKey::of(observation))).or_default().add(observation);
    }
    cells.into_iter().map(|((slice, key), cell)| (slice, key, cell.digested()))
}

#[cfg(test)]
mod tests;
