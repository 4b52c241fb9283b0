//! One distribution in numbers: quantiles with what is known of their uncertainty.

use std::fmt;

use super::bounds;
use super::interval;
use super::quantile::Quantile;
use super::sample::{Method, Sample};

/// Why a number is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Absence {
    /// No request tells the metric.
    NoValues,
    /// The interval's lower end needs more values.
    LowerNeeds(u64),
    /// The interval's upper end needs more values.
    UpperNeeds(u64),
    /// Both of the interval's ends need more values: so many for the lower, so many for the upper.
    BothNeed(u64, u64),
    /// The requests that are missing could all lie below every known value.
    MissingBelow,
    /// They could all lie above.
    MissingAbove,
    /// They could all lie on either side.
    MissingEither,
}

impl fmt::Display for Absence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoValues => f.write_str("no request tells it"),
            Self::LowerNeeds(n) => write!(f, "the lower end needs n >= {n}"),
            Self::UpperNeeds(n) => write!(f, "the upper end needs n >= {n}"),
            Self::BothNeed(lower, upper) => write!(f, "the lower end needs n >= {lower}, the upper n >= {upper}"),
            Self::MissingBelow => f.write_str("the missing requests could all lie below every known value"),
            Self::MissingAbove => f.write_str("the missing requests could all lie above every known value"),
            Self::MissingEither => f.write_str("the missing requests could all lie below or above every known value"),
        }
    }
}

/// Two ends, and why one is not there.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ends {
    /// The lower end.
    pub lower: Option<f64>,
    /// The upper end.
    pub upper: Option<f64>,
    /// Why one or both are not there.
    pub absence: Option<Absence>,
}

/// A quantile with its interval and bounds.
#[derive(Debug, Clone, PartialEq)]
pub struct QuantileSummary {
    pub quantile: Quantile,
    /// Its value; `None` where there are no values.
    pub value: Option<f64>,
    /// The 95 % interval, which assumes independent requests.
    pub interval: Ends,
    /// The worst cases from the missing requests, for this window alone.
    pub bounds: Ends,
    /// A lower bound that counts requests which were cut off at their duration; only for `duration` and `ttft`.
    pub censored: Option<f64>,
    /// How many ranks the value may be off.
    pub rank_error: u64,
}

/// One distribution, in the unit in which its metric is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// The number of values.
    pub n: u64,
    /// The quantiles asked for.
    pub quantiles: Vec<QuantileSummary>,
    pub mean: Option<f64>,
    /// The largest.
    pub max: Option<f64>,
    pub sum: Option<f64>,
    /// The share of client records whose value is known; `None` without client records.
    pub coverage: Option<f64>,
    /// How the quantiles were found.
    pub method: Method,
}

impl Summary {
    /// Of a `sample` where `records` client records could have had a value. `censored` is the same sample with the
    /// requests that were cut off.
    pub fn of(sample: &Sample, records: u64, censored: Option<&Sample>, quantiles: &[Quantile]) -> Self {
        let n = sample.n();
        let missing = records.saturating_sub(n);
        let known = n > 0;
        Self {
            n,
            quantiles: quantiles.iter().map(|q| summarise(*q, sample, missing, censored)).collect(),
            mean: known.then(|| sample.sum() / n as f64),
            max: sample.max(),
            sum: known.then(|| sample.sum()),
            coverage: (records > 0).then(|| n as f64 / records as f64),
            method: sample.method(),
        }
    }
}

fn summarise(quantile: Quantile, sample: &Sample, missing: u64, censored: Option<&Sample>) -> QuantileSummary {
    let rank = quantile.rank(sample.n());
    QuantileSummary {
        quantile,
        value: sample.value_at(rank),
        interval: confidence(sample, quantile),
        bounds: worst_case(sample, missing, quantile),
        censored: censored.and_then(|censored| censored.value_at(quantile.rank(censored.n()))),
        rank_error: sample.rank_error(rank),
    }
}

/// The 95 % interval of a sample's quantile, widened by the sample's rank error.
pub fn confidence(sample: &Sample, quantile: Quantile) -> Ends {
    if sample.n() == 0 {
        return Ends { lower: None, upper: None, absence: Some(Absence::NoValues) };
    }
    let ranks = interval::ranks(sample.n(), quantile);
    let (lower_needs, upper_needs) = interval::least_n(quantile);
    let absence = match (ranks.lower, ranks.upper) {
        (Some(_), Some(_)) => None,
        (None, Some(_)) => Some(Absence::LowerNeeds(lower_needs)),
        (Some(_), None) => Some(Absence::UpperNeeds(upper_needs)),
        (None, None) => Some(Absence::BothNeed(lower_needs, upper_needs)),
    };
    Ends {
        lower: ranks.lower.and_then(|rank| sample.at_most(rank)),
        upper: ranks.upper.and_then(|rank| sample.at_least(rank)),
        absence,
    }
}

fn worst_case(sample: &Sample, missing: u64, quantile: Quantile) -> Ends {
    if sample.n() == 0 {
        return Ends { lower: None, upper: None, absence: Some(Absence::NoValues) };
    }
    let ranks = bounds::worst_case(sample.n(), missing, quantile);
    let absence = match (ranks.lower, ranks.upper) {
        (Some(_), Some(_)) => None,
        (None, Some(_)) => Some(Absence::MissingBelow),
        (Some(_), None) => Some(Absence::MissingAbove),
        (None, None) => Some(Absence::MissingEither),
    };
    Ends {
        lower: ranks.lower.and_then(|rank| sample.at_most(rank)),
        upper: ranks.upper.and_then(|rank| sample.at_least(rank)),
        absence,
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::Values;
    use super::*;

    fn sample(values: impl IntoIterator<Item = u32>) -> Sample {
        Sample::of(vec![Values::Exact(values.into_iter().map(f64::from).collect())])
    }

    fn p95(sample: &Sample, records: u64) -> QuantileSummary {
        Summary::of(sample, records, None, &[Quantile::P95]).quantiles.remove(0)
    }

    #[test]
    fn four_hundred_of_428() {
        let summary = Summary::of(&sample((1..=400).rev()), 428, None, &Quantile::DEFAULT);
        assert_eq!(
            (summary.n, summary.mean, summary.max, summary.sum),
            (400, Some(200.5), Some(400.0), Some(80_200.0))
        );
        assert_eq!(summary.coverage, Some(400.0 / 428.0));
        let values: Vec<_> = summary.quantiles.iter().map(|q| q.value).collect();
        assert_eq!(values, [Some(200.0), Some(380.0), Some(396.0)]);
        let p95 = &summary.quantiles[1];
        assert_eq!(p95.interval, Ends { lower: Some(371.0), upper: Some(389.0), absence: None });
        assert_eq!(p95.bounds, Ends { lower: Some(379.0), upper: None, absence: Some(Absence::MissingAbove) });
    }

    #[test]
    fn nothing_known_is_null_with_a_reason() {
        let summary = Summary::of(&sample([]), 3, None, &[Quantile::P50]);
        assert_eq!((summary.n, summary.mean, summary.max, summary.sum), (0, None, None, None));
        assert_eq!(summary.coverage, Some(0.0));
        assert_eq!(summary.quantiles[0].value, None);
        assert_eq!(summary.quantiles[0].interval.absence, Some(Absence::NoValues));
        assert_eq!(Summary::of(&sample([]), 0, None, &[]).coverage, None);
    }

    #[test]
    fn a_small_sample_has_no_upper_end_and_says_what_it_needs() {
        let p95 = p95(&sample(1..=20), 20);
        assert_eq!((p95.interval.lower.is_some(), p95.interval.upper), (true, None));
        assert_eq!(
            p95.interval.absence.map(|absence| absence.to_string()).as_deref(),
            Some("the upper end needs n >= 72")
        );
        assert_eq!((p95.bounds.lower, p95.bounds.upper), (Some(19.0), Some(19.0)));
    }

    #[test]
    fn cut_off_requests_raise_the_lower_bound_only() {
        let whole = sample(1..=100);
        let censored = sample((1..=100).chain([500; 20]));
        let summary = Summary::of(&whole, 100, Some(&censored), &[Quantile::P95]);
        assert_eq!(summary.quantiles[0].value, Some(95.0));
        assert_eq!(summary.quantiles[0].censored, Some(500.0));
    }

    #[test]
    fn ends_from_a_digest_enclose_the_exact_ones() {
        let values: Vec<f64> = (0..50_000_u32).map(|i| f64::from(i.wrapping_mul(2_654_435_761) % 1_000_003)).collect();
        let exact = Sample::of(vec![Values::Exact(values.clone())]);
        let digest = Sample::of(values.chunks(500).map(|part| Values::Exact(part.to_vec()).digested()).collect());
        for quantile in Quantile::DEFAULT {
            let (narrow, wide) = (confidence(&exact, quantile), confidence(&digest, quantile));
            assert!(wide.lower < narrow.lower && narrow.upper < wide.upper, "{quantile}");
        }
    }
}
