//! What tracejoin computed against what the server measured of itself.

use std::collections::BTreeMap;

use serde_json::Value;

/// Absolute differences in milliseconds, by what was compared.
#[derive(Default)]
pub struct Differences(BTreeMap<&'static str, Vec<f64>>);

impl Differences {
    /// Compares one figure in milliseconds with its measurement in nanoseconds.
    pub fn add(&mut self, what: &'static str, computed: &Value, measured_ns: u64) {
        let computed = computed.as_f64().unwrap_or_else(|| panic!("{what} is {computed}"));
        self.0.entry(what).or_default().push((computed - milliseconds(measured_ns)).abs());
    }

    /// Prints all of them, and holds quantiles of each against what they may be at most, in milliseconds.
    pub fn check(self, of: &str, limits: &[(f64, f64)]) {
        for (what, mut values) in self.0 {
            let (p50, p95, max) = (quantile(&mut values, 0.5), quantile(&mut values, 0.95), quantile(&mut values, 1.0));
            println!(
                "{what} {of}: |computed − measured| p50 {p50:.3} p95 {p95:.3} max {max:.3} ms, n {}",
                values.len()
            );
            for (q, limit) in limits {
                let reached = quantile(&mut values, *q);
                assert!(reached <= *limit, "{what} {of}: the {q}-quantile differs by {reached} ms");
            }
        }
    }
}

/// The ⌈q·n⌉-th smallest.
pub fn quantile(values: &mut [f64], q: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let rank = (q * values.len() as f64).ceil() as usize;
    values[rank.max(1) - 1]
}

/// Nanoseconds as milliseconds.
pub fn milliseconds(ns: u64) -> f64 {
    ns as f64 / 1e6
}
