use proptest::prelude::*;

use super::*;
use crate::Quantile;

/// A small generator of its own, so that the figures below never change with a library.
struct Noise(u64);

impl Noise {
    /// Uniform in (0, 1).
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        let (radius, angle) = (self.next(), self.next());
        (-2.0 * radius.ln()).sqrt() * (2.0 * std::f64::consts::PI * angle).cos()
    }
}

const SHAPES: [&str; 6] = ["lognormal", "pareto", "bimodal", "constant", "uniform", "steps"];

fn values(shape: &str, n: usize) -> Vec<f64> {
    let mut noise = Noise(42);
    let draw = |noise: &mut Noise| match shape {
        "lognormal" => 1e8 * noise.normal().exp(),
        "pareto" => 1e6 * noise.next().powf(-1.0 / 1.2),
        "bimodal" if noise.next() < 0.95 => 2e6 + noise.next(),
        "bimodal" => 8e8 + noise.next(),
        "constant" => 5e6,
        "uniform" => 1e9 * noise.next(),
        _ => (noise.next() * 20.0).floor() * 1e6,
    };
    (0..n).map(|_| draw(&mut noise)).collect()
}

fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_unstable_by(f64::total_cmp);
    values
}

/// How many ranks the `value` lies away from `rank` among the sorted values.
fn distance(sorted: &[f64], value: f64, rank: u64) -> u64 {
    let below = sorted.partition_point(|other| *other < value) as u64;
    let up_to = sorted.partition_point(|other| *other <= value) as u64;
    if rank > up_to { rank - up_to } else { (below + 1).saturating_sub(rank) }
}

/// The worst distance as a share of the stated error, over ranks all along the distribution.
fn worst(digest: &Digest, sorted: &[f64]) -> f64 {
    let n = sorted.len() as u64;
    let mut worst = 0.0_f64;
    for step in 1..2000_u64 {
        let rank = (step * n).div_ceil(2000);
        let value = digest.value_at(rank).expect("a rank inside");
        worst = worst.max(distance(sorted, value, rank) as f64 / digest.rank_error(rank) as f64);
    }
    worst
}

#[test]
fn answers_stay_within_the_stated_rank_error() {
    for shape in SHAPES {
        for n in [500, 10_000, 100_000] {
            let all = values(shape, n);
            let exact = sorted(all.clone());
            let whole = Digest::from_sorted(&exact);
            assert!(worst(&whole, &exact) <= 1.0, "{shape} {n} whole: {}", worst(&whole, &exact));
            for parts in [7, 150] {
                let parts = all.chunks(n.div_ceil(parts)).map(|part| Digest::from_sorted(&sorted(part.to_vec())));
                let merged = Digest::merged(parts.collect());
                assert!(worst(&merged, &exact) <= 1.0, "{shape} {n} merged: {}", worst(&merged, &exact));
            }
        }
    }
}

#[test]
fn parts_that_differ_stay_within_it_too() {
    // Minutes of an incident: each part has a level of its own, so that the parts do not overlap evenly.
    let all: Vec<Vec<f64>> = (0..240_u32)
        .map(|minute| {
            let level = 1.0 + f64::from(minute % 60) * f64::from(minute % 7);
            values("lognormal", 100 + minute as usize * 7).into_iter().map(|value| value * level).collect()
        })
        .collect();
    let merged = Digest::merged(all.iter().map(|part| Digest::from_sorted(&sorted(part.clone()))).collect());
    let exact = sorted(all.concat());
    assert!(worst(&merged, &exact) <= 1.0, "{}", worst(&merged, &exact));
}

#[test]
fn count_ends_and_sum_are_exact() {
    let exact = sorted(values("uniform", 12_345).into_iter().map(f64::round).collect());
    let merged = Digest::merged(exact.chunks(100).map(Digest::from_sorted).collect());
    assert_eq!(merged.n(), 12_345);
    assert_eq!(merged.value_at(1), exact.first().copied());
    assert_eq!(merged.value_at(12_345), exact.last().copied());
    assert_eq!(merged.sum(), exact.iter().sum::<f64>());
    assert_eq!(merged.value_at(0), None);
    assert_eq!(merged.value_at(12_346), None);
}

#[test]
fn nothing_has_no_quantile() {
    let nothing = Digest::merged(vec![Digest::from_sorted(&[]), Digest::from_sorted(&[])]);
    assert_eq!((nothing.n(), nothing.max(), nothing.value_at(Quantile::P50.rank(0))), (0, None, None));
}

fn encoded(digest: &Digest) -> Vec<u8> {
    let mut bytes = Vec::new();
    digest.encode(&mut bytes);
    bytes
}

#[test]
fn corrupt_forms_are_refused_by_name() {
    let good = encoded(&Digest::from_sorted(&[1.0, 2.0, 5.0]));
    let with = |at: usize, bytes: &[u8]| {
        let mut changed = good.clone();
        changed[at..at + bytes.len()].copy_from_slice(bytes);
        Digest::decode(&mut changed.as_slice())
    };
    assert_eq!(with(0, &[9]), Err(DecodeError::Version(9)));
    assert_eq!(with(1, &[7, 0]), Err(DecodeError::Inconsistent("another size")));
    assert_eq!(with(3, &9.0_f64.to_le_bytes()), Err(DecodeError::Inconsistent("sum")));
    assert_eq!(with(11, &f64::NAN.to_le_bytes()), Err(DecodeError::Inconsistent("sum or ends")));
    assert_eq!(with(27, &300_u16.to_le_bytes()), Err(DecodeError::Inconsistent("more centroids than its size")));
    assert_eq!(with(29, &4.0_f64.to_le_bytes()), Err(DecodeError::Inconsistent("order")));
    assert_eq!(with(29, &0.5_f64.to_le_bytes()), Err(DecodeError::Inconsistent("means")));
    assert_eq!(with(37, &[0]), Err(DecodeError::Inconsistent("weights")));
    assert_eq!(Digest::decode(&mut &good[..good.len() - 1]), Err(DecodeError::Truncated));
}

proptest! {
    #[test]
    fn the_stored_form_is_exact(values in prop::collection::vec(-1e12_f64..1e15, 0..2000)) {
        let digest = Digest::from_sorted(&sorted(values));
        let bytes = encoded(&digest);
        let mut rest = bytes.as_slice();
        prop_assert_eq!(Digest::decode(&mut rest), Ok(digest));
        prop_assert!(rest.is_empty());
    }

    #[test]
    fn no_bytes_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..300), valid_head in any::<bool>()) {
        if valid_head && bytes.len() > 3 {
            bytes[..3].copy_from_slice(&[1, 200, 0]);
        }
        if let Ok(digest) = Digest::decode(&mut bytes.as_slice()) {
            prop_assert!(digest.n() == 0 || digest.value_at(1).is_some());
        }
    }

    #[test]
    fn one_changed_byte_never_panics(at in 0_usize..800, byte in any::<u8>()) {
        let mut bytes = encoded(&Digest::from_sorted(&sorted(values("lognormal", 60))));
        let at = at % bytes.len();
        bytes[at] = byte;
        if let Ok(digest) = Digest::decode(&mut bytes.as_slice()) {
            for rank in 1..=digest.n().min(100) {
                prop_assert!(digest.value_at(rank).is_some_and(f64::is_finite));
            }
        }
    }
}
