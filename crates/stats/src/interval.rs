//! The distribution-free interval of a quantile, from order statistics (design, section 7).
//!
//! With independent values the number of them below the true q-quantile is binomial, so two ranks enclose it with a
//! known probability whatever the distribution is (David and Nagaraja, Order Statistics, section 7.1).

use std::ops::Range;

use super::quantile::Quantile;

/// The probability that each end may miss.
const TAIL: f64 = 0.025;

/// Terms below this share of the largest one cannot move a rank.
const NEGLIGIBLE: f64 = 1e-20;

/// The ranks of the two ends, the smallest value being 1; `None` where a sample of this size has no such rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ranks {
    /// The largest rank l with P(Bin(n, q) ≤ l − 1) ≤ 0.025.
    pub lower: Option<u64>,
    /// The smallest rank u with P(Bin(n, q) ≥ u) ≤ 0.025.
    pub upper: Option<u64>,
}

/// The ranks of the equal-tailed 95 % interval of the `quantile` among `n` values.
///
/// The binomial terms are walked outwards from the largest by their ratio and divided by their sum. Nothing is taken
/// from a logarithm of a factorial, so the result stays right to about 1e-12 for any `n`, in O(√n) steps; a continued
/// fraction of the incomplete beta function needs as many and loses digits on the way.
pub fn ranks(n: u64, quantile: Quantile) -> Ranks {
    if n == 0 {
        return Ranks { lower: None, upper: None };
    }
    let terms = Terms::around_mode(n, quantile.as_f64());
    let allowed = TAIL * terms.sum(0..n + 1);
    Ranks { lower: terms.lower(allowed), upper: terms.upper(allowed, n) }
}

/// The probability that the interval of [`ranks`] encloses the quantile, for values without ties: that of l ≤ Bin(n, q) < u,
/// where an end that does not exist lets nothing escape on its side. Ties only raise it.
pub fn coverage(n: u64, quantile: Quantile) -> f64 {
    let terms = Terms::around_mode(n, quantile.as_f64());
    let ranks = ranks(n, quantile);
    let enclosed = terms.sum(ranks.lower.unwrap_or(0)..ranks.upper.unwrap_or(n + 1));
    enclosed / terms.sum(0..n + 1)
}

/// The exact 95 % interval of a share of which `successes` out of `n` were seen (Clopper and Pearson, Biometrika 26,
/// 1934). A share lies past its upper end just where `successes` is below the lower rank of [`ranks`] for that share.
pub fn share(successes: u64, n: u64) -> Option<(f64, f64)> {
    if n == 0 || successes > n {
        return None;
    }
    let seen = successes as f64 / n as f64;
    let at_least = |share: f64| tail(n, share, successes..n + 1) <= TAIL;
    let at_most = |share: f64| tail(n, share, 0..successes + 1) > TAIL;
    let lower = if successes == 0 { 0.0 } else { bisect(0.0, seen, at_least) };
    let upper = if successes == n { 1.0 } else { bisect(seen, 1.0, at_most) };
    Some((lower, upper))
}

fn tail(n: u64, share: f64, successes: Range<u64>) -> f64 {
    let terms = Terms::around_mode(n, share);
    terms.sum(successes) / terms.sum(0..n + 1)
}

/// Where `holds`, which does for small shares, ceases to.
fn bisect(mut from: f64, mut to: f64, holds: impl Fn(f64) -> bool) -> f64 {
    /// Halvings: the width is then below 1e-14.
    const STEPS: u32 = 47;
    for _ in 0..STEPS {
        let middle = f64::midpoint(from, to);
        if holds(middle) {
            from = middle;
        } else {
            to = middle;
        }
    }
    f64::midpoint(from, to)
}

/// The least `n` from which both ends exist: (lower, upper).
pub fn least_n(quantile: Quantile) -> (u64, u64) {
    let q = quantile.as_f64();
    let least = |base_ln: f64| (TAIL.ln() / base_ln).ceil() as u64;
    (least((-q).ln_1p()), least(q.ln()))
}

/// The terms of a binomial distribution that matter, each as a share of the largest.
struct Terms {
    /// The number of successes of the first one.
    first: u64,
    weights: Vec<f64>,
}

impl Terms {
    fn around_mode(n: u64, q: f64) -> Self {
        let mode = (((n + 1) as f64 * q) as u64).min(n);
        let odds = q / (1.0 - q);
        let mut below = Vec::new();
        let mut weight = 1.0;
        for successes in (1..=mode).rev() {
            weight *= successes as f64 / (odds * (n - successes + 1) as f64);
            if weight < NEGLIGIBLE {
                break;
            }
            below.push(weight);
        }
        let first = mode - below.len() as u64;
        below.reverse();
        let mut weights = below;
        weights.push(1.0);
        weight = 1.0;
        for successes in mode + 1..=n {
            weight *= odds * (n - successes + 1) as f64 / successes as f64;
            if weight < NEGLIGIBLE {
                break;
            }
            weights.push(weight);
        }
        Self { first, weights }
    }

    /// The weights of these numbers of successes together.
    fn sum(&self, successes: Range<u64>) -> f64 {
        let place = |successes: u64| {
            let place = usize::try_from(successes.saturating_sub(self.first)).unwrap_or(usize::MAX);
            place.min(self.weights.len())
        };
        let (from, to) = (place(successes.start), place(successes.end));
        self.weights.get(from..to).unwrap_or_default().iter().sum()
    }

    fn lower(&self, allowed: f64) -> Option<u64> {
        let mut rank = self.first;
        let mut tail = 0.0;
        for weight in &self.weights {
            tail += weight;
            if tail > allowed {
                break;
            }
            rank += 1;
        }
        (rank >= 1).then_some(rank)
    }

    fn upper(&self, allowed: f64, n: u64) -> Option<u64> {
        let mut rank = self.first + self.weights.len() as u64;
        let mut tail = 0.0;
        for weight in self.weights.iter().rev() {
            tail += weight;
            if tail > allowed {
                break;
            }
            rank -= 1;
        }
        (rank <= n).then_some(rank)
    }
}

#[cfg(test)]
mod tests;
