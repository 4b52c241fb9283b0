//! Requests sorted by whether they kept an objective.

/// What a request is to an objective (design, section 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Within the threshold.
    Good,
    /// Past the threshold, also where it was cut off after that.
    Bad,
    /// Cut off before the threshold: it could have become either, so it counts in neither.
    LeftOut,
    /// A client record that could have had a value, and has none: its spans never came, or nothing told it.
    Missing,
    /// Not among the requests that the objective is about.
    Outside,
}

/// Exact counts of requests by their outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Within the threshold.
    pub good: u64,
    /// Past the threshold.
    pub bad: u64,
    /// Cut off before the threshold.
    pub left_out: u64,
    /// Client records without a value.
    pub missing: u64,
}

impl Tally {
    /// Requests that decide: good and bad ones.
    pub const fn n(&self) -> u64 {
        self.good + self.bad
    }

    /// Counts one request.
    pub fn add(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Good => self.good += 1,
            Outcome::Bad => self.bad += 1,
            Outcome::LeftOut => self.left_out += 1,
            Outcome::Missing => self.missing += 1,
            Outcome::Outside => {}
        }
    }

    /// Adds the counts of other requests.
    pub fn merge(&mut self, other: &Self) {
        self.good += other.good;
        self.bad += other.bad;
        self.left_out += other.left_out;
        self.missing += other.missing;
    }

    /// The part of the requests that decide which is bad; `None` without any.
    pub fn bad_share(&self) -> Option<f64> {
        (self.n() > 0).then(|| self.bad as f64 / self.n() as f64)
    }

    /// The part of those that could decide which do; `None` without any.
    pub fn coverage(&self) -> Option<f64> {
        let all = self.n() + self.missing;
        (all > 0).then(|| self.n() as f64 / all as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_cut_off_early_decides_nothing_and_hides_nothing() {
        let mut tally = Tally::default();
        assert_eq!((tally.bad_share(), tally.coverage()), (None, None));
        for outcome in [Outcome::Good, Outcome::Bad, Outcome::LeftOut, Outcome::Missing, Outcome::Outside] {
            tally.add(outcome);
        }
        tally.merge(&Tally { good: 2, ..Tally::default() });
        assert_eq!((tally.n(), tally.left_out), (4, 1));
        assert_eq!(tally.bad_share(), Some(0.25));
        assert_eq!(tally.coverage(), Some(0.8));
    }
}
