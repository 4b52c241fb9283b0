//! Distributions too large to keep whole: a t-digest of every part, merged at once.
//!
//! Merging in pairs would compress what has been compressed before and lose the tail, so there is no such operation
//! here; [`Digest::merged`] takes all parts in their order, and the same parts give the same digest.

mod codec;

use tdigest::TDigest;

pub use codec::DecodeError;

/// Centroids that a digest keeps at most.
const SIZE: usize = 200;

/// A t-digest whose buffer is always empty.
#[derive(Debug, Clone, PartialEq)]
pub struct Digest(TDigest);

impl Digest {
    /// From finite values in ascending order.
    pub fn from_sorted(values: &[f64]) -> Self {
        Self(TDigest::new_with_size(SIZE).merge_sorted(values.to_vec()))
    }

    /// From all parts at once. The order of the parts matters only between equal means, and must be fixed by the caller
    /// so that the same query gives the same answer.
    pub fn merged(parts: Vec<Self>) -> Self {
        let mut parts = parts;
        match parts.len() {
            0 => Self(TDigest::new_with_size(SIZE)),
            1 => parts.remove(0),
            _ => Self(TDigest::merge_digests(parts.into_iter().map(|part| part.0).collect())),
        }
    }

    /// The number of values.
    pub fn n(&self) -> u64 {
        // Whole numbers below 2^53 stay exact in a float.
        self.0.count() as u64
    }

    pub fn sum(&self) -> f64 {
        self.0.sum()
    }

    /// The largest value; `None` without any.
    pub fn max(&self) -> Option<f64> {
        self.0.max()
    }

    /// About the value of a `rank`, the smallest being 1; exact at both ends. `None` outside 1 to n.
    pub fn value_at(&self, rank: u64) -> Option<f64> {
        let n = self.n();
        if !(1..=n).contains(&rank) {
            return None;
        }
        if rank == 1 {
            return self.0.min();
        }
        if rank == n {
            return self.0.max();
        }
        // The value of a rank stands in the middle of its unit of weight.
        self.0.estimate_quantile((rank as f64 - 0.5) / n as f64)
    }

    /// How many ranks an answer for `rank` may be off: the weight of three centroids there, by the scale function
    /// (each at most 2√2·√min(p, 1−p) / size of all values), and one more.
    ///
    /// The answer lies between the means of two neighbours, so from ordered values it cannot be farther off than their
    /// two weights; parts that overlap blur each value by a centroid of its part, which makes the third. Equal values
    /// come near that, smooth ones stay within an eighth of it.
    pub fn rank_error(&self, rank: u64) -> u64 {
        let n = self.n() as f64;
        let share = (rank as f64 / n).clamp(0.0, 1.0);
        let width = (8.0 * share.min(1.0 - share)).sqrt() / SIZE as f64 + 2.0 / (SIZE * SIZE) as f64;
        (3.0 * n * width).ceil() as u64 + 1
    }
}

#[cfg(test)]
mod tests;
