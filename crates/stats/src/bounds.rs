//! How far the missing requests could move a quantile of this window (design, section 7).

use super::quantile::Quantile;

/// The ranks, among the values that are known, of the worst cases; `None` where the missing could lie beyond them all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorstCase {
    /// If all of the missing were smaller than every known value.
    pub lower: Option<u64>,
    /// If all of the missing were larger.
    pub upper: Option<u64>,
}

/// The worst cases of the `quantile` with `known` values and `missing` ones: with k = ⌈q(n + m)⌉ the lower is the known
/// value of rank k − m, the upper that of rank k.
pub fn worst_case(known: u64, missing: u64, quantile: Quantile) -> WorstCase {
    let rank = quantile.rank(known + missing);
    let lower = rank.checked_sub(missing).filter(|lower| *lower >= 1);
    WorstCase { lower, upper: (1..=known).contains(&rank).then_some(rank) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn few_missing_move_a_high_quantile_past_the_largest_value() {
        assert_eq!(worst_case(400, 28, Quantile::P95), WorstCase { lower: Some(379), upper: None });
        assert_eq!(worst_case(400, 28, Quantile::P50), WorstCase { lower: Some(186), upper: Some(214) });
        assert_eq!(worst_case(0, 0, Quantile::P50), WorstCase { lower: None, upper: None });
        assert_eq!(worst_case(10, 100, Quantile::P50), WorstCase { lower: None, upper: None });
    }

    proptest! {
        #[test]
        fn any_completion_lies_within(
            mut known in prop::collection::vec(-50_i32..50, 1..40),
            missing in prop::collection::vec(-200_i32..200, 0..20),
        ) {
            known.sort_unstable();
            let mut all = [known.clone(), missing.clone()].concat();
            all.sort_unstable();
            for quantile in Quantile::DEFAULT {
                let truth = all[quantile.rank(all.len() as u64) as usize - 1];
                let worst = worst_case(known.len() as u64, missing.len() as u64, quantile);
                if let Some(rank) = worst.lower {
                    prop_assert!(known[rank as usize - 1] <= truth);
                }
                if let Some(rank) = worst.upper {
                    prop_assert!(known[rank as usize - 1] >= truth);
                }
            }
        }
    }
}
