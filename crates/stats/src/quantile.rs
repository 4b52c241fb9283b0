//! Which quantile, and which rank it is.

use std::fmt;
use std::str::FromStr;

/// Parts of one in which a quantile is kept: nine decimal places.
const ONE: u64 = 1_000_000_000;
const PLACES: usize = 9;

/// Why a text is no quantile.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a quantile: write a decimal number between 0 and 1 with at most nine places, such as 0.95")]
pub struct BadQuantile(String);

/// A quantile strictly between 0 and 1, kept as a decimal number, so that ranks are exact integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Quantile(u64);

impl Quantile {
    /// The median.
    pub const P50: Self = Self(500_000_000);
    /// The 0.95-quantile.
    pub const P95: Self = Self(950_000_000);
    /// The 0.99-quantile.
    pub const P99: Self = Self(990_000_000);
    /// What is answered where nothing else is asked for.
    pub const DEFAULT: [Self; 3] = [Self::P50, Self::P95, Self::P99];

    /// The largest that is kept: for fewer than a thousand million values its rank is the last.
    pub const LARGEST: Self = Self(ONE - 1);

    /// 1 − this, exact in billionths.
    pub const fn complement(self) -> Self {
        Self(ONE - self.0)
    }

    /// As a fraction of one.
    pub fn as_f64(self) -> f64 {
        self.0 as f64 / ONE as f64
    }

    /// The rank ⌈q·n⌉ among `n` values, the smallest being 1 (design, section 7); 0 where there are none.
    pub fn rank(self, n: u64) -> u64 {
        let product = u128::from(self.0) * u128::from(n);
        product.div_ceil(u128::from(ONE)) as u64
    }

    /// The share that lies past it, 1 − q.
    pub fn rest(self) -> f64 {
        (ONE - self.0) as f64 / ONE as f64
    }

    /// How many times the share 1 − q it is that `past` of `n` values lie past the quantile; `None` without values.
    ///
    /// From integers, so that a share that is exactly so many times as large is told as that, and not as a little less.
    pub fn times_the_rest(self, past: u64, n: u64) -> Option<f64> {
        let rest = u128::from(n) * u128::from(ONE - self.0);
        (n > 0).then(|| (u128::from(past) * u128::from(ONE)) as f64 / rest as f64)
    }

    /// The start of the names of its fields: `p95`, `p99_9`.
    pub fn field(self) -> String {
        let percent = self.0 / (ONE / 100);
        let rest = self.0 % (ONE / 100);
        if rest == 0 {
            return format!("p{percent}");
        }
        let places = format!("{rest:07}");
        format!("p{percent}_{}", places.trim_end_matches('0'))
    }
}

impl FromStr for Quantile {
    type Err = BadQuantile;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refuse = || BadQuantile(text.chars().take(40).collect());
        let (whole, places) = text.trim().split_once('.').ok_or_else(refuse)?;
        let decimal = !places.is_empty() && places.len() <= PLACES && places.bytes().all(|byte| byte.is_ascii_digit());
        if !decimal || !matches!(whole, "" | "0") {
            return Err(refuse());
        }
        let parts: u64 = format!("{places:0<PLACES$}").parse().map_err(|_| refuse())?;
        if parts == 0 { Err(refuse()) } else { Ok(Self(parts)) }
    }
}

impl fmt::Display for Quantile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.as_f64())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn decimals_are_read_exactly() {
        assert_eq!("0.5".parse(), Ok(Quantile::P50));
        assert_eq!(".95".parse(), Ok(Quantile::P95));
        assert_eq!("0.990".parse(), Ok(Quantile::P99));
        for bad in ["", "0", "1", "1.0", "0.0", "0.", "-0.5", "0.95x", "95", "0.1234567891", "NaN"] {
            assert!(bad.parse::<Quantile>().is_err(), "{bad}");
        }
    }

    #[test]
    fn what_is_left_is_exact() {
        assert_eq!("0.01".parse::<Quantile>().map(Quantile::complement), Ok(Quantile::P99));
        assert_eq!(Quantile::LARGEST.complement(), Quantile(1));
        assert_eq!(Quantile::LARGEST.rank(999_999_999), 999_999_999);
    }

    #[test]
    fn fields_are_named_after_the_percentile() {
        let named = |text: &str| text.parse::<Quantile>().expect("a quantile").field();
        assert_eq!(named("0.5"), "p50");
        assert_eq!(named("0.05"), "p5");
        assert_eq!(named("0.999"), "p99_9");
        assert_eq!(named("0.9999"), "p99_99");
        assert_eq!(named("0.9905"), "p99_05");
    }

    #[test]
    fn a_product_that_is_whole_is_its_own_rank() {
        assert_eq!(Quantile::P95.rank(400), 380);
        assert_eq!(Quantile::P95.rank(428), 407);
        assert_eq!(Quantile::P99.rank(100), 99);
        assert_eq!(Quantile::P50.rank(1), 1);
        assert_eq!(Quantile::P50.rank(0), 0);
    }

    #[test]
    fn multiples_of_the_rest_are_not_lost_to_rounding() {
        let p99 = Quantile::P99;
        // As floating-point numbers 0.144 / (1 − 0.99) is 14.399999999999986.
        assert_eq!(p99.times_the_rest(144, 1000), Some(14.4));
        assert_eq!(p99.times_the_rest(0, 5), Some(0.0));
        assert_eq!(Quantile::P50.times_the_rest(7, 7), Some(2.0));
        assert_eq!(p99.times_the_rest(0, 0), None);
    }

    proptest! {
        #[test]
        fn the_rank_is_the_first_that_holds_the_share(parts in 1..ONE, n in 1_u64..10_000_000) {
            let rank = Quantile(parts).rank(n);
            prop_assert!((1..=n).contains(&rank));
            let share = u128::from(parts) * u128::from(n);
            prop_assert!(u128::from(rank) * u128::from(ONE) >= share);
            prop_assert!(u128::from(rank - 1) * u128::from(ONE) < share);
        }
    }
}
