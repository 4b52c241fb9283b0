use proptest::prelude::*;

use super::*;
use model::{Interval, UnixNanos};

/// A request of these parts, the queue third.
fn split(parts: [f64; PARTS]) -> Split {
    Split { whole: parts.iter().sum(), parts: parts.map(Some), past: 0 }
}

fn queued(queue: f64) -> Split {
    split([30.0, 20.0, queue, 500.0, 0.0, 0.0, 10.0])
}

#[test]
fn means_add_up_and_an_unknown_part_is_none_of_its_own() {
    let mut unknown = split([30.0, 0.0, 100.0, 500.0, 0.0, 0.0, 50.0]);
    unknown.parts[1] = None;
    let means = Means::of(Pair::Total, &[queued(200.0), unknown]).expect("two requests");
    assert_eq!((means.n, means.whole), (2, 720.0));
    assert_eq!(means.parts.map(|part| part.mean), [30.0, 10.0, 150.0, 500.0, 0.0, 0.0, 30.0]);
    assert_eq!(means.parts.map(|part| part.known), [2, 1, 2, 2, 2, 2, 2]);
    assert_eq!(means.largest().metric, Metric::Generation);
    assert_eq!(Means::of(Pair::Total, []), None);
}

#[test]
fn the_part_that_moved_most_comes_first_with_what_chance_explains() {
    let before: Vec<Split> = (0..100).map(|i| queued(100.0 + f64::from(i % 10))).collect();
    let now: Vec<Split> = (0..100).map(|i| queued(300.0 + f64::from(i % 10))).collect();
    let means = |splits: &[Split]| Means::of(Pair::Total, splits).expect("requests");
    let moved = moved(&means(&before), &means(&now));
    assert_eq!((moved[0].metric, moved[0].by()), (Metric::GpuQueue, 200.0));
    assert!(moved[0].is_clear() && !moved[1].is_clear());
    // The values 0 to 9 have a sample variance of 25/3 · 100/99: by hand for two means of 100.
    let by_hand = 1.96 * (2.0 * 8.25 * 100.0 / 99.0 / 100.0_f64).sqrt();
    assert!((moved[0].give_or_take - by_hand).abs() < 1e-9, "{}", moved[0].give_or_take);
}

#[test]
fn slow_requests_lie_past_the_quantile_and_equal_ones_are_not_slow() {
    let splits: Vec<Split> = (1..=100).map(|i| queued(f64::from(i))).collect();
    let slow = Slow::of(Pair::Total, &splits).expect("slow ones");
    assert_eq!((slow.past, slow.slow.n, slow.rest.n), (655.0, 5, 95));
    assert_eq!(slow.slow.parts[2].mean, 98.0);
    assert_eq!(Slow::of(Pair::Total, &[queued(1.0); 40]), None);
    assert_eq!(Slow::of(Pair::Total, &[]), None);
}

#[test]
fn either_pair_has_its_own_parts() {
    assert_eq!(Pair::of(Indicator::Metric(Metric::TtftGpuQueue)), Pair::Ttft);
    assert_eq!(Pair::of(Indicator::Metric(Metric::Ttft)), Pair::Ttft);
    assert_eq!(Pair::of(Indicator::JoinCoverage), Pair::Total);
    let window = Interval { start: UnixNanos(0), end: UnixNanos(1) };
    let half = Splits { window, splits: vec![queued(1.0)], records: 2, unread: None };
    assert_eq!(half.coverage(), Some(0.5));
}

proptest! {
    #[test]
    fn differences_of_parts_add_up_to_the_difference_of_the_whole(
        before in prop::collection::vec(prop::array::uniform7(0_u32..1_000_000), 1..50),
        now in prop::collection::vec(prop::array::uniform7(0_u32..1_000_000), 1..50),
    ) {
        let means = |rows: &[[u32; PARTS]]| {
            let splits: Vec<Split> = rows.iter().map(|parts| split(parts.map(f64::from))).collect();
            Means::of(Pair::Total, &splits).expect("requests")
        };
        let (before, now) = (means(&before), means(&now));
        let total: f64 = moved(&before, &now).iter().map(Moved::by).sum();
        prop_assert!((total - (now.whole - before.whole)).abs() < 1e-3);
    }
}
