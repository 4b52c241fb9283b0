use std::fmt::Write as _;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::*;

/// Streams of each kind.
const STREAMS: u64 = 500;

/// How a stream came to the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Smooth,
    SeveralAStep,
    Pauses,
    Stalls,
    BufferedBySize,
    BufferedByTime,
    HeldAsAWhole,
}

const KINDS: [(Kind, &str); 7] = [
    (Kind::Smooth, "smooth"),
    (Kind::SeveralAStep, "several tokens a step (speculative decoding)"),
    (Kind::Pauses, "the model pauses"),
    (Kind::Stalls, "the network stalls"),
    (Kind::BufferedBySize, "buffered by size (4, 8 or 16 KiB)"),
    (Kind::BufferedByTime, "buffered by time (0.1 to 2 s)"),
    (Kind::HeldAsAWhole, "held as a whole"),
];

impl Kind {
    fn is_buffered(self) -> bool {
        matches!(self, Self::BufferedBySize | Self::BufferedByTime | Self::HeldAsAWhole)
    }
}

/// Milliseconds at which events were written, and how they were held back: the arrivals.
fn stream(kind: Kind, seed: u64) -> Vec<Nanos> {
    let mut random = StdRng::seed_from_u64(seed);
    let events = random.random_range(40..600);
    let pace: f64 = random.random_range(5.0..60.0);
    let mut written = vec![random.random_range(100.0..3000.0)];
    while written.len() < events {
        let step = pace * (0.6 + random.random_range(0.0..0.4) + random.random_range(0.0..0.4));
        let at = written[written.len() - 1] + step;
        let together = if kind == Kind::SeveralAStep { random.random_range(1..=4) } else { 1 };
        written.extend((0..together).map(|n| at + 0.05 * f64::from(n)));
    }
    match kind {
        Kind::Smooth | Kind::SeveralAStep => {}
        Kind::Pauses => pause(&mut written, &mut random),
        Kind::Stalls => stall(&mut written, &mut random),
        Kind::BufferedBySize => by_size(&mut written, &mut random),
        Kind::BufferedByTime => by_time(&mut written, &mut random),
        Kind::HeldAsAWhole => release(&mut written, f64::INFINITY),
    }
    let path: f64 = random.random_range(0.5..40.0);
    let mut last = 0.0;
    let arrive = |at: &f64| {
        last = f64::max(last + 0.005, at + path + random.random_range(0.0..0.8));
        Nanos((last * 1e6) as i64)
    };
    written.iter().map(arrive).collect()
}

fn pause(written: &mut [f64], random: &mut StdRng) {
    for _ in 0..random.random_range(1..=6) {
        let from = random.random_range(1..written.len());
        let length: f64 = random.random_range(300.0..5000.0);
        written[from..].iter_mut().for_each(|at| *at += length);
    }
}

fn stall(written: &mut [f64], random: &mut StdRng) {
    for _ in 0..random.random_range(1..=4) {
        let from = written[random.random_range(0..written.len())];
        let until = from + random.random_range(200.0..1000.0);
        written.iter_mut().filter(|at| (from..until).contains(*at)).for_each(|at| *at = until);
    }
}

fn by_size(written: &mut [f64], random: &mut StdRng) {
    let size = [4096, 8192, 16384][random.random_range(0..3)];
    let event = random.random_range(150..350);
    let held = size / event;
    for group in written.chunks_mut(held) {
        let last = group[group.len() - 1];
        release(group, last);
    }
}

fn by_time(written: &mut [f64], random: &mut StdRng) {
    let period: f64 = random.random_range(100.0..2000.0);
    for at in written.iter_mut() {
        *at = (*at / period).ceil() * period;
    }
}

/// All of them at one time, at the last of them at the latest.
fn release(group: &mut [f64], at: f64) {
    let at = at.min(group[group.len() - 1]);
    group.fill(at);
}

/// How many streams of each kind a judge marks, as the page shows it.
fn table(judge: impl Fn(&[Nanos]) -> bool) -> String {
    let mut table = String::from("| stream | marked | of |\n| --- | --- | --- |\n");
    let (mut hits, mut marked, mut buffered) = (0, 0, 0);
    for (kind, name) in KINDS {
        let found = (0..STREAMS).filter(|seed| judge(&stream(kind, *seed))).count();
        writeln!(table, "| {name} | {found} | {STREAMS} |").expect("a text takes all");
        marked += found;
        if kind.is_buffered() {
            hits += found;
            buffered += STREAMS as usize;
        }
    }
    let percent = |part: usize, whole: usize| 100.0 * part as f64 / whole as f64;
    let (precision, recall) = (percent(hits, marked), percent(hits, buffered));
    writeln!(table, "\nPrecision {precision:.1} %, recall {recall:.1} %.").expect("a text takes all");
    table
}

const PAGE: &str = include_str!("../../../../docs/streaming.md");

#[test]
fn the_published_table_is_what_the_rule_reaches() {
    let table = table(|times| buffering(times).is_some());
    assert!(PAGE.contains(&table), "docs/streaming.md must hold this:\n{table}");
}

/// What a client that knows no `buffered_events` tells of a stream.
fn summary(times: &[Nanos]) -> StreamSummary {
    StreamSummary { buffered_events: None, ..StreamSummary::of_arrivals(times) }
}

#[test]
fn the_published_table_of_summaries_is_what_their_rule_reaches() {
    let table = table(|times| summary(times).suspected_buffering(Some(times[0]), None) == Some(true));
    assert!(PAGE.contains(&table), "docs/streaming.md must hold this:\n{table}");
}

#[test]
fn a_summary_is_judged_by_its_evidence_then_by_what_came_together() {
    let steady = StreamSummary::of_arrivals(&at(&(0..40).map(|n| 300.0 + 20.0 * f64::from(n)).collect::<Vec<_>>()));
    let ttft = Some(Nanos(300_000_000));
    assert_eq!(steady.buffered_events, Some(0));
    assert_eq!(steady.suspected_buffering(ttft, None), Some(false));
    let told = StreamSummary { buffered_events: Some(40), ..steady };
    assert_eq!(told.suspected_buffering(ttft, None), Some(true), "who saw the arrivals knows better");
    let short = StreamSummary { business_events: Some(7), ..steady };
    assert_eq!(short.suspected_buffering(ttft, None), None);
    let nothing = StreamSummary { business_events: Some(40), ..StreamSummary::default() };
    assert_eq!(nothing.suspected_buffering(ttft, None), None);
}

#[test]
fn events_that_came_together_are_no_buffer_without_a_silence() {
    let millis = |millis: i64| Some(Nanos(millis * 1_000_000));
    let together = StreamSummary {
        business_events: Some(200),
        batched_events: Some(190),
        p50_gap: Some(Nanos(40_000)),
        p95_gap: millis(600),
        p99_gap: millis(640),
        max_gap: millis(700),
        ..StreamSummary::default()
    };
    assert_eq!(together.suspected_buffering(millis(500), None), Some(true));
    let steps = StreamSummary { p95_gap: millis(30), p99_gap: millis(35), max_gap: millis(50), ..together };
    assert_eq!(steps.suspected_buffering(millis(500), None), Some(false), "an engine that emits several tokens a step");
    let unknown = StreamSummary { batched_events: Some(0), ..together };
    assert_eq!(unknown.suspected_buffering(millis(500), None), Some(true), "gaps of two kinds");
    let counted = StreamSummary { p50_gap: None, p95_gap: None, p99_gap: None, max_gap: None, ..together };
    assert_eq!(counted.suspected_buffering(None, None), Some(true), "nothing else is told");
    let alone = StreamSummary { batched_events: Some(10), ..counted };
    assert_eq!(alone.suspected_buffering(None, None), Some(false));
}

#[test]
fn a_few_bursts_are_counted_by_the_time_that_they_took() {
    // 100 events in four bursts, 500 ms apart: no quantile but the last shows the silences.
    let times: Vec<f64> = (0..100).map(|n| 600.0 + f64::from(n / 25) * 500.0 + f64::from(n % 25) * 0.1).collect();
    let few = StreamSummary { last_event: None, ..summary(&at(&times)) };
    let ttft = Some(Nanos(600_000_000));
    assert_eq!(few.suspected_buffering(ttft, Some(Nanos(2_110_000_000))), Some(true));
    assert_eq!(few.suspected_buffering(ttft, None), Some(false), "one silence and the wait for the first");
}

fn at(millis: &[f64]) -> Vec<Nanos> {
    millis.iter().map(|millis| Nanos((millis * 1e6) as i64)).collect()
}

#[test]
fn quantiles_are_ranks_without_interpolation() {
    let gaps = Gaps::between(&at(&[1100.3, 1155.2, 1290.7])).expect("two gaps");
    let expected = Gaps {
        p50: Nanos(54_900_000),
        p95: Nanos(135_500_000),
        p99: Nanos(135_500_000),
        max: Nanos(135_500_000),
        over_1s: 0,
    };
    assert_eq!(gaps, expected);
    assert_eq!(Gaps::between(&at(&[5.0])), None);
    assert_eq!(Gaps::of(vec![Nanos(1_000_000_001), Nanos(1_000_000_000)]).map(|gaps| gaps.over_1s), Some(1));
}

#[test]
fn the_evidence_is_share_silence_and_burst() {
    let bursts: Vec<f64> =
        (1..=5).flat_map(|n| (0..10).map(move |k| f64::from(n) * 400.0 + f64::from(k) * 0.1)).collect();
    let evidence = buffering(&at(&bursts)).expect("bursts of ten after 400 ms");
    assert!((evidence.share - 1.0).abs() < 1e-9);
    assert_eq!(evidence.burst, 10);
    assert_eq!(evidence.silence, Nanos(399_100_000));
}

#[test]
fn too_few_events_tell_nothing() {
    assert_eq!(buffering(&at(&[500.0, 500.1, 500.2, 500.3])), None);
    assert_eq!(buffering(&[]), None);
}

#[test]
fn one_stall_is_no_buffer() {
    let mut times: Vec<f64> = (0..40).map(|n| 100.0 + 20.0 * f64::from(n)).collect();
    times.iter_mut().filter(|at| (300.0..800.0).contains(*at)).for_each(|at| *at = 800.0);
    assert_eq!(buffering(&at(&times)), None);
}
