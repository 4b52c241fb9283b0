//! Whether the requests that could be explained differ from those that could not.
//!
//! Tail sampling often keeps only slow traces. Then every phase is measured on slow requests, and no count shows it; the
//! client's own durations do, since clients measure matched and unmatched requests alike.

use super::quantile::Quantile;
use super::sample::Sample;
use super::summary::{Ends, confidence};

/// Client durations of one side of the comparison, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Durations {
    /// The number of requests.
    pub n: u64,
    /// The median duration, in nanoseconds.
    pub median: Option<f64>,
    /// The 95 % interval of the median.
    pub interval: Ends,
}

impl Durations {
    fn of(sample: &Sample) -> Self {
        Self {
            n: sample.n(),
            median: sample.value_at(Quantile::P50.rank(sample.n())),
            interval: confidence(sample, Quantile::P50),
        }
    }
}

/// What the comparison says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The intervals of the two medians overlap.
    NotSeen,
    /// The matched requests are slower than the others.
    MatchedSlower,
    /// Matched requests are faster.
    MatchedFaster,
    /// Too few requests on a side for an interval.
    TooFew,
}

impl Verdict {
    /// Whether a bias is suspected; `None` where nothing can be said.
    pub const fn suspected(self) -> Option<bool> {
        match self {
            Self::NotSeen => Some(false),
            Self::MatchedSlower | Self::MatchedFaster => Some(true),
            Self::TooFew => None,
        }
    }

    /// As a sentence for people.
    pub const fn evidence(self) -> &'static str {
        match self {
            Self::NotSeen => "the 95 % intervals of the two medians of client duration overlap",
            Self::MatchedSlower => {
                "matched requests are slower than unmatched ones: the 95 % intervals of the two medians of client \
                 duration do not overlap, as if sampling kept slow traces"
            }
            Self::MatchedFaster => {
                "matched requests are faster than unmatched ones: the 95 % intervals of the two medians of client \
                 duration do not overlap, as if slow requests lost their spans"
            }
            Self::TooFew => "each side needs 6 client durations for an interval of its median",
        }
    }
}

/// Client durations of matched and of unmatched requests.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bias {
    /// Of matched requests.
    pub matched: Durations,
    /// Of requests whose spans never came.
    pub unmatched: Durations,
    /// What they say.
    pub verdict: Verdict,
}

impl Bias {
    /// Compares the two.
    pub fn of(matched: &Sample, unmatched: &Sample) -> Self {
        let (matched, unmatched) = (Durations::of(matched), Durations::of(unmatched));
        Self { matched, unmatched, verdict: verdict(&matched.interval, &unmatched.interval) }
    }
}

fn verdict(matched: &Ends, unmatched: &Ends) -> Verdict {
    match (matched.lower, matched.upper, unmatched.lower, unmatched.upper) {
        (Some(lower), _, _, Some(other_upper)) if lower > other_upper => Verdict::MatchedSlower,
        (_, Some(upper), Some(other_lower), _) if upper < other_lower => Verdict::MatchedFaster,
        (Some(_), Some(_), Some(_), Some(_)) => Verdict::NotSeen,
        _ => Verdict::TooFew,
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::Values;
    use super::*;

    fn judged(matched: impl Iterator<Item = u32>, unmatched: impl Iterator<Item = u32>) -> Verdict {
        let sample = |values: Vec<f64>| Sample::of(vec![Values::Exact(values)]);
        Bias::of(&sample(matched.map(f64::from).collect()), &sample(unmatched.map(f64::from).collect())).verdict
    }

    #[test]
    fn sampling_that_keeps_slow_traces_is_seen() {
        assert_eq!(judged(900..1000, 0..900), Verdict::MatchedSlower);
        assert_eq!(judged(0..100, 500..600), Verdict::MatchedFaster);
    }

    #[test]
    fn a_random_loss_is_not_called_a_bias() {
        assert_eq!(judged((0..1000).step_by(2), (1..1000).step_by(2)), Verdict::NotSeen);
    }

    #[test]
    fn a_handful_says_nothing() {
        assert_eq!(judged(0..5, 100..105), Verdict::TooFew);
        assert_eq!(Verdict::TooFew.suspected(), None);
        assert_eq!(judged(0..1000, 0..0), Verdict::TooFew);
    }
}
