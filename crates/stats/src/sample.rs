//! The values of one distribution, kept whole or as a digest.

use super::digest::Digest;

/// How a quantile was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Computed from every value.
    Exact,
    /// From a digest, with a rank error.
    Digest,
}

impl Method {
    /// The name in the API.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Digest => "digest",
        }
    }
}

/// Values of a part of a distribution.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// All of them, in any order.
    Exact(Vec<f64>),
    Digest(Digest),
}

impl Default for Values {
    fn default() -> Self {
        Self::Exact(Vec::new())
    }
}

impl Values {
    /// Adds one finite value. A digest takes none: it is built from all of its values at once.
    pub(super) fn push(&mut self, value: f64) {
        if let Self::Exact(values) = self {
            values.push(value);
        }
    }

    /// The same values as a digest.
    #[must_use]
    pub fn digested(self) -> Self {
        Self::Digest(self.into_digest())
    }

    fn into_digest(self) -> Digest {
        match self {
            Self::Exact(values) => Digest::from_sorted(&sorted(values)),
            Self::Digest(digest) => digest,
        }
    }
}

fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_unstable_by(f64::total_cmp);
    values
}

/// A distribution that can be asked for ranks.
#[derive(Debug, Clone, PartialEq)]
pub enum Sample {
    /// All values, ascending.
    Exact(Vec<f64>),
    Digest(Digest),
}

impl Sample {
    /// From all parts at once, in their order: whole where every part is.
    pub fn of(parts: Vec<Values>) -> Self {
        let whole = parts.iter().all(|part| matches!(part, Values::Exact(_)));
        if !whole {
            return Self::Digest(Digest::merged(parts.into_iter().map(Values::into_digest).collect()));
        }
        let mut all = Vec::new();
        for part in parts {
            if let Values::Exact(values) = part {
                all.extend(values);
            }
        }
        Self::Exact(sorted(all))
    }

    /// How its quantiles are found.
    pub const fn method(&self) -> Method {
        match self {
            Self::Exact(_) => Method::Exact,
            Self::Digest(_) => Method::Digest,
        }
    }

    /// The number of values.
    pub fn n(&self) -> u64 {
        match self {
            Self::Exact(values) => values.len() as u64,
            Self::Digest(digest) => digest.n(),
        }
    }

    pub fn sum(&self) -> f64 {
        match self {
            Self::Exact(values) => values.iter().sum(),
            Self::Digest(digest) => digest.sum(),
        }
    }

    /// The largest value; `None` without any.
    pub fn max(&self) -> Option<f64> {
        match self {
            Self::Exact(values) => values.last().copied(),
            Self::Digest(digest) => digest.max(),
        }
    }

    /// The value of a `rank`, the smallest being 1; `None` outside 1 to n.
    pub fn value_at(&self, rank: u64) -> Option<f64> {
        match self {
            Self::Exact(values) => values.get(usize::try_from(rank.checked_sub(1)?).ok()?).copied(),
            Self::Digest(digest) => digest.value_at(rank),
        }
    }

    /// How many ranks the value of a `rank` may be off.
    pub fn rank_error(&self, rank: u64) -> u64 {
        match self {
            Self::Exact(_) => 0,
            Self::Digest(digest) => digest.rank_error(rank),
        }
    }

    /// How many values are at most `limit`; by a digest, how many of its ranks have such a value.
    pub fn count_at_most(&self, limit: f64) -> u64 {
        self.count_while(|value| value <= limit)
    }

    /// How many values are below `limit`; by a digest, how many of its ranks have such a value.
    pub fn count_below(&self, limit: f64) -> u64 {
        self.count_while(|value| value < limit)
    }

    /// How many of the first ranks have values of which `holds` holds: off by at most the rank error there.
    fn count_while(&self, holds: impl Fn(f64) -> bool) -> u64 {
        let (mut known, mut beyond) = (0, self.n() + 1);
        while beyond - known > 1 {
            let rank = known + (beyond - known) / 2;
            if self.value_at(rank).is_some_and(&holds) {
                known = rank;
            } else {
                beyond = rank;
            }
        }
        known
    }

    /// The value that surely does not lie above that of a `rank`.
    pub fn at_most(&self, rank: u64) -> Option<f64> {
        self.value_at(rank.saturating_sub(self.rank_error(rank)).max(1))
    }

    /// The value that surely does not lie below that of a `rank`.
    pub fn at_least(&self, rank: u64) -> Option<f64> {
        self.value_at((rank + self.rank_error(rank)).min(self.n()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_within_a_limit_are_counted_with_those_that_equal_it() {
        let exact = Sample::of(vec![Values::Exact(vec![3.0, 1.0, 2.0, 2.0])]);
        let counts = |limit| (exact.count_below(limit), exact.count_at_most(limit));
        assert_eq!([0.0, 1.0, 2.0, 2.5, 9.0].map(counts), [(0, 0), (0, 1), (1, 3), (3, 3), (4, 4)]);
        assert_eq!(Sample::of(Vec::new()).count_at_most(1.0), 0);
    }

    #[test]
    fn a_digest_counts_within_its_rank_error() {
        let values: Vec<f64> = (0..30_000_u32).map(|i| f64::from(i.wrapping_mul(2_654_435_761) % 10_007)).collect();
        let exact = Sample::of(vec![Values::Exact(values.clone())]);
        let digest = Sample::of(values.chunks(700).map(|part| Values::Exact(part.to_vec()).digested()).collect());
        for limit in [-1.0, 0.0, 17.0, 5000.0, 9500.5, 9999.0, 10_006.0, 20_000.0] {
            let (found, truth) = (digest.count_at_most(limit), exact.count_at_most(limit));
            assert!(found.abs_diff(truth) <= digest.rank_error(truth.max(1)), "{limit}: {found}, not {truth}");
        }
        assert_eq!((digest.count_at_most(-1.0), digest.count_at_most(10_006.0)), (0, 30_000));
    }
}
