use proptest::prelude::*;

use super::*;

fn quantile(text: &str) -> Quantile {
    text.parse().expect("a quantile")
}

/// P(Bin(n, q) = k) as a plain product.
fn probability(n: u64, q: f64, k: u64) -> f64 {
    let chosen: f64 = (1..=k).map(|i| ((n - k + i) as f64 / i as f64).ln()).sum();
    (chosen + k as f64 * q.ln() + (n - k) as f64 * (-q).ln_1p()).exp()
}

fn summed(n: u64, q: f64, from: u64, to: u64) -> f64 {
    (from..=to).map(|k| probability(n, q, k)).sum()
}

#[test]
fn the_ends_appear_at_the_sizes_that_the_design_names() {
    for (text, least) in [("0.5", 6), ("0.95", 72), ("0.99", 368)] {
        assert_eq!(least_n(quantile(text)).1, least);
        assert_eq!(ranks(least - 1, quantile(text)).upper, None);
        assert_eq!(ranks(least, quantile(text)).upper, Some(least));
    }
    assert_eq!(least_n(quantile("0.95")).0, 2);
    assert_eq!(ranks(1, quantile("0.95")).lower, None);
    assert_eq!(ranks(1, quantile("0.99")).lower, Some(1));
    assert_eq!(ranks(0, quantile("0.5")), Ranks { lower: None, upper: None });
}

#[test]
fn known_ranks_of_four_hundred() {
    // By direct summation with exact fractions.
    assert_eq!(ranks(400, quantile("0.5")), Ranks { lower: Some(180), upper: Some(221) });
    assert_eq!(ranks(400, quantile("0.95")), Ranks { lower: Some(371), upper: Some(389) });
    assert_eq!(ranks(400, quantile("0.99")), Ranks { lower: Some(392), upper: Some(400) });
}

proptest! {
    #[test]
    fn ends_are_the_tightest_that_direct_sums_allow(n in 1_u64..600, parts in 1_u64..1000) {
        let quantile: Quantile = format!("0.{parts:03}").parse().expect("a quantile");
        let q = quantile.as_f64();
        let Ranks { lower, upper } = ranks(n, quantile);
        let slack = 1e-9;
        match lower {
            Some(l) => {
                prop_assert!(summed(n, q, 0, l - 1) <= TAIL + slack);
                prop_assert!(l == n || summed(n, q, 0, l) > TAIL - slack);
            }
            None => prop_assert!(summed(n, q, 0, 0) > TAIL - slack),
        }
        match upper {
            Some(u) => {
                prop_assert!(summed(n, q, u, n) <= TAIL + slack);
                prop_assert!(u == 1 || summed(n, q, u - 1, n) > TAIL - slack);
            }
            None => prop_assert!(summed(n, q, n, n) > TAIL - slack),
        }
        if let (Some(l), Some(u)) = (lower, upper) {
            // The quantile lies between the two values when l ≤ Bin < u.
            prop_assert!(summed(n, q, l, u - 1) >= 0.95 - slack);
        }
    }
}

#[test]
fn large_samples_agree_with_direct_sums() {
    for n in [100_000_u64, 1_000_000] {
        let q = 0.99;
        let Ranks { lower, upper } = ranks(n, quantile("0.99"));
        let (l, u) = (lower.expect("a lower end"), upper.expect("an upper end"));
        // The terms around the mean by Stirling's series, right to 1e-10 at this size.
        let log_factorial = |k: u64| {
            let x = k as f64;
            x * x.ln() - x + 0.5 * (2.0 * std::f64::consts::PI * x).ln() + 1.0 / (12.0 * x) - 1.0 / (360.0 * x.powi(3))
        };
        let term = |k: u64| {
            let log = log_factorial(n) - log_factorial(k) - log_factorial(n - k);
            (log + k as f64 * f64::ln(q) + (n - k) as f64 * f64::ln_1p(-q)).exp()
        };
        let far = n / 100;
        let below = |k: u64| (k.saturating_sub(far)..=k).map(term).sum::<f64>();
        let above = |k: u64| (k..n).map(term).sum::<f64>();
        assert!(below(l - 1) <= TAIL && below(l) > TAIL);
        assert!(above(u) <= TAIL && above(u - 1) > TAIL);
    }
}

#[test]
fn ten_million_values_follow_the_normal_limit() {
    let n = 10_000_000;
    let Ranks { lower, upper } = ranks(n, quantile("0.5"));
    let half_width = 1.959_963_985 * (n as f64 * 0.25).sqrt();
    let expected = (n as f64 / 2.0 - half_width, n as f64 / 2.0 + half_width);
    assert!((lower.expect("a lower end") as f64 - expected.0).abs() <= 1.5);
    assert!((upper.expect("an upper end") as f64 - expected.1).abs() <= 1.5);
}

/// The interval and its coverage by their definition, from a table of logarithms of factorials.
struct Reference {
    /// P(Bin(n, q) ≤ k) by k.
    below: Vec<f64>,
}

impl Reference {
    fn of(n: usize, q: f64, log_factorials: &[f64]) -> Self {
        let mut sum = 0.0;
        let below = (0..=n).map(|k| {
            let log = log_factorials[n] - log_factorials[k] - log_factorials[n - k];
            sum += (log + k as f64 * q.ln() + (n - k) as f64 * (-q).ln_1p()).exp();
            sum
        });
        Self { below: below.collect() }
    }

    fn ranks(&self) -> (Option<usize>, Option<usize>) {
        let lower = (1..self.below.len()).rev().find(|l| self.below[l - 1] <= TAIL);
        let upper = (1..self.below.len()).find(|u| 1.0 - self.below[u - 1] <= TAIL);
        (lower, upper)
    }

    /// P(l ≤ Bin(n, q) ≤ u − 1).
    fn coverage(&self, lower: usize, upper: usize) -> f64 {
        self.below[upper - 1] - self.below[lower - 1]
    }
}

#[test]
fn the_interval_encloses_the_quantile_as_often_as_the_exact_binomial_says() {
    let mut log_factorials = vec![0.0];
    // Summed from the small ones on, this stays right to 1e-9.
    log_factorials.extend((1..=100_000_u32).scan(0.0, |sum, k| {
        *sum += f64::from(k).ln();
        Some(*sum)
    }));
    let dense = (100..1000_usize).step_by(13);
    let mut compared = 0;
    for n in dense.chain([1000, 1234, 2500, 5000, 9999, 10_000, 31_623, 50_000, 99_999, 100_000]) {
        for text in ["0.5", "0.9", "0.95", "0.99"] {
            let reference = Reference::of(n, quantile(text).as_f64(), &log_factorials);
            let Ranks { lower, upper } = ranks(n as u64, quantile(text));
            let expected = reference.ranks();
            assert_eq!((lower.map(|rank| rank as usize), upper.map(|rank| rank as usize)), expected, "{n} {text}");
            let (Some(lower), Some(upper)) = expected else { continue };
            let (found, exact) = (coverage(n as u64, quantile(text)), reference.coverage(lower, upper));
            assert!(exact >= 0.95, "{n} {text}: {exact}");
            assert!(found >= 0.95, "{n} {text}: {found}");
            assert!((found - exact).abs() < 1e-6, "{n} {text}: {found} is not {exact}, to say nothing of 0.2 points");
            compared += 1;
        }
    }
    assert!(compared > 250, "both ends exist for all but the smallest samples of the 0.99-quantile: {compared}");
}

#[test]
fn the_coverage_of_a_median_is_a_whole_number_of_halves() {
    // C(n, k) / 2^n, in integers.
    for n in [6_u64, 20, 50, 100, 120] {
        let mut chosen = vec![1_u128];
        for k in 0..n {
            let next = chosen[k as usize] * u128::from(n - k) / u128::from(k + 1);
            chosen.push(next);
        }
        let Ranks { lower, upper } = ranks(n, Quantile::P50);
        let (lower, upper) = (lower.expect("a lower end") as usize, upper.expect("an upper end") as usize);
        let exact = chosen[lower..upper].iter().sum::<u128>() as f64 / (1_u128 << n) as f64;
        assert!((coverage(n, Quantile::P50) - exact).abs() < 1e-12, "{n}");
    }
}

#[test]
fn an_end_that_does_not_exist_lets_nothing_escape() {
    // Of one value, nothing is known above it: the interval fails where the value lies above the quantile.
    assert!((coverage(20, Quantile::P95) - (1.0 - summed(20, 0.95, 0, 16))).abs() < 1e-12);
    assert!((coverage(1, Quantile::P50) - 1.0).abs() < 1e-12);
}

#[test]
fn shares_have_the_ends_that_tables_give() {
    let close = |found: Option<(f64, f64)>, lower: f64, upper: f64| {
        let (low, high) = found.expect("an interval");
        assert!((low - lower).abs() < 5e-6 && (high - upper).abs() < 5e-6, "{low} to {high}");
    };
    // The ends at none and at all have a closed form: 1 - 0.025^(1/n).
    close(share(0, 20), 0.0, 1.0 - 0.025_f64.powf(0.05));
    close(share(20, 20), 0.025_f64.powf(0.05), 1.0);
    close(share(8, 10), 0.443_904, 0.974_789);
    close(share(1, 2), 0.012_579, 0.987_421);
    assert_eq!((share(0, 0), share(3, 2)), (None, None));
}

proptest! {
    #[test]
    fn a_share_is_past_its_interval_where_too_few_ranks_are_good(
        n in 1_u64..3000,
        parts in 1_u64..1000,
        good in any::<prop::sample::Index>(),
    ) {
        let target: Quantile = format!("0.{parts:03}").parse().expect("a quantile");
        let good = good.index(n as usize + 1) as u64;
        let (lower, upper) = share(good, n).expect("an interval");
        let ranks = ranks(n, target);
        let q = target.as_f64();
        // At the end itself the last digit would decide.
        if (upper - q).abs() > 1e-9 {
            prop_assert_eq!(ranks.lower.is_some_and(|rank| good < rank), upper < q);
        }
        if (lower - q).abs() > 1e-9 {
            prop_assert_eq!(ranks.upper.is_some_and(|rank| good >= rank), lower > q);
        }
    }
}
