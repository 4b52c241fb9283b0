//! Counts by minute over a real store: burn rates at injected times, late data, several instances, retention.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{Interval, Nanos, Request, Slice, State, UnixNanos};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use slo::burn::Part;
use slo::outcome::outcome;
use slo::{BurnState, Objective, Tally, document};
use sqlx::Connection;
use sqlx::postgres::PgConnection;
use tracejoin::objectives::catalogue::Versioned;
use tracejoin::objectives::minutes::MinuteCounts;
use tracejoin::store::{Store, StoredObjective};

use crate::common::test_database;
use crate::window_support::{MINUTE, NOON, WEEK, at, lone, matched, open, write};

const DAY_OF_MINUTES: i64 = 24 * 60;

/// 99 % of the requests of model `m` wait 250 ms at most. The interval of the verdict plays no part here.
fn objective(name: &str, more: &str) -> Objective {
    let text = format!(
        "apiVersion: tracejoin/v1
kind: SLO
metadata: {{name: {name}}}
spec:
  phase: gpu_queue
  ratio: 0.99
  threshold_ms: 250
  where: {{model: m}}
{more}"
    );
    document::read(&text).expect("an objective").remove(0)
}

/// Stores a version, as the catalogue does.
async fn put(store: &Store, objective: &Objective, version: i32) -> Versioned {
    let mut change = store.change_objectives().await.expect("a change");
    let stored = StoredObjective {
        id: objective.id.to_string(),
        version,
        budget: None,
        document: Some(document::to_json(objective)),
        changed_at: NOON,
        changed_by: "local".to_owned(),
    };
    change.add(&stored).await.expect("a version");
    change.commit().await.expect("a commit");
    Versioned { objective: Arc::new(objective.clone()), version, since: NOON, changed_by: stored.changed_by }
}

/// A whole minute from noon.
fn minute(number: i64) -> UnixNanos {
    NOON + Nanos(number * MINUTE)
}

/// A time at which windows end with that minute: its requests have just settled.
fn now_at(number: i64) -> UnixNanos {
    minute(number) + Nanos(2_000_000_000)
}

/// One request in each of some minutes, waiting so many milliseconds.
fn steady(minutes: std::ops::Range<i64>, wait: i64) -> Vec<Request> {
    minutes.map(|number| matched((number + 10_000) as u32, minute(number) + Nanos(MINUTE / 2), wait)).collect()
}

async fn count_all(minutes: &MinuteCounts, versions: &[Versioned], now: UnixNanos) {
    for _ in 0..100 {
        if minutes.count(versions, now).await.expect("a round").finished {
            return;
        }
    }
    panic!("counting does not come to an end");
}

async fn burn_at(minutes: &MinuteCounts, versioned: &Versioned, number: i64) -> Vec<BurnState> {
    let versions = [versioned.clone()];
    count_all(minutes, &versions, now_at(number)).await;
    let mut reading = minutes.for_burn(&versions, now_at(number)).await.expect("a reading");
    reading.burn(versioned).await.expect("burn rates")
}

async fn firing_at(minutes: &MinuteCounts, versioned: &Versioned, number: i64) -> [bool; 3] {
    let states = burn_at(minutes, versioned, number).await;
    [states[0].fires, states[1].fires, states[2].fires]
}

async fn part_at(minutes: &MinuteCounts, versioned: &Versioned, window: Interval, now: UnixNanos) -> Part {
    let mut reading = minutes.for_burn(std::slice::from_ref(versioned), now).await.expect("a reading");
    reading.parts(versioned, &[window]).await.expect("a part").remove(0)
}

/// What counting every request of a window gives.
async fn from_rows(store: &Store, versioned: &Versioned, window: Interval) -> Tally {
    let mut snapshot = store.snapshot().await.expect("a snapshot");
    let labels = snapshot.labels(window, false).await.expect("labels");
    let ids: Vec<i64> = labels.keys().copied().collect();
    let mut tally = Tally::default();
    for observation in snapshot.observations(window, &ids).await.expect("requests") {
        tally.add(outcome(&versioned.objective, &observation, &labels[&observation.labels]));
    }
    tally
}

async fn marks(connection: &mut PgConnection) -> i64 {
    sqlx::query_scalar("select count(*) from slo_dirty").fetch_one(connection).await.expect("a number")
}

/// One request a minute. Every request of the hour from noon on is bad. With the target 0.99 a window of w minutes with k
/// bad ones burns at 100 k/w: the factors 14.4, 6 and 1 are reached by 9 of 60, 22 of 360 and 44 of 4320, and the short
/// windows fall under them with fewer than 1 of 5, 2 of 30 and 4 of 360.
#[tokio::test]
async fn long_windows_fire_and_stop_at_their_minutes() {
    let database = test_database().await;
    let store = open(&database.url, WEEK).await;
    let before = -3 * DAY_OF_MINUTES;
    write(&store, steady(before..0, 20).into_iter().chain(steady(0..60, 900)).collect()).await;
    let versioned = put(&store, &objective("queue", "  burn: {min_traffic: 50, min_bad: 5}\n"), 1).await;
    let minutes = MinuteCounts::new(store.clone());

    for (number, expected) in [
        (0, [false; 3]),
        (8, [false; 3]),
        (9, [true, false, false]),
        (21, [true, false, false]),
        (22, [true, true, false]),
        (43, [true, true, false]),
        (44, [true; 3]),
        (60, [true; 3]),
    ] {
        assert_eq!(firing_at(&minutes, &versioned, number).await, expected, "after {number} bad minutes");
    }
    // What follows is counted minute by minute from marks, as it comes.
    write(&store, steady(60..420, 20)).await;
    for (number, expected) in [
        (64, [true; 3]),
        (65, [false, true, true]),
        (88, [false, true, true]),
        (89, [false, false, true]),
        (416, [false, false, true]),
        (417, [false; 3]),
    ] {
        assert_eq!(firing_at(&minutes, &versioned, number).await, expected, "{} minutes after it ended", number - 60);
    }
    let slowest = burn_at(&minutes, &versioned, 417).await[2];
    assert_eq!((slowest.n, slowest.bad, slowest.filled_long), (4320, 60, 1.0));
    assert_eq!(slowest.long_rate, Some(60.0 / 43.2));

    let mut reading = minutes.for_budget(std::slice::from_ref(&versioned), now_at(417)).await.expect("a reading");
    let budget = reading.budget(&versioned).await.expect("a budget");
    assert_eq!((budget.part.tally.n(), budget.part.tally.bad), (4320 + 417, 60));
    assert_eq!(budget.part.there.start, minute(before), "it says from when on it knows");
}

#[tokio::test]
async fn a_window_that_is_not_full_says_so_and_fills() {
    let database = test_database().await;
    let store = open(&database.url, WEEK).await;
    let spec = "  burn: {windows: [{factor: 2, long: 60m, short: 10m}], min_traffic: 5, min_bad: 2}\n";
    let versioned = put(&store, &objective("queue", spec), 1).await;
    let minutes = MinuteCounts::new(store.clone());
    let nothing =
        minutes.for_burn(std::slice::from_ref(&versioned), now_at(0)).await.expect("a reading").burn(&versioned).await;
    let nothing = nothing.expect("burn rates")[0];
    assert_eq!((nothing.filled_long, nothing.long_rate, nothing.fires), (0.0, None, false), "nobody counts yet");
    assert_eq!(burn_at(&minutes, &versioned, 0).await[0].filled_long, 0.0, "there is no request");

    write(&store, steady(0..30, 900)).await;
    let (nine, ten, thirty) = (
        burn_at(&minutes, &versioned, 9).await[0],
        burn_at(&minutes, &versioned, 10).await[0],
        burn_at(&minutes, &versioned, 30).await[0],
    );
    assert_eq!((nine.filled_long, nine.filled_short, nine.n, nine.fires), (0.15, 0.9, 9, false));
    assert_eq!((ten.filled_short, ten.long_rate, ten.fires), (1.0, Some(100.0), true));
    assert_eq!((thirty.filled_long, thirty.n), (0.5, 30));
}

#[tokio::test]
async fn a_new_version_is_counted_back_in_steps_and_the_old_one_is_dropped() {
    let database = test_database().await;
    let store = open(&database.url, WEEK).await;
    write(&store, steady(-600..0, 900)).await;
    let long = "  burn: {windows: [{factor: 2, long: 10h, short: 10m}], min_traffic: 5, min_bad: 2}\n";
    let first = put(&store, &objective("queue", long), 1).await;
    let minutes = MinuteCounts::new(store.clone());
    let round = minutes.count(std::slice::from_ref(&first), now_at(0)).await.expect("a round");
    assert!(round.back < 600 && !round.finished, "{round:?}");
    let window = Interval { start: minute(-600), end: minute(0) };
    let part = part_at(&minutes, &first, window, now_at(0)).await;
    assert_eq!(part.tally.n(), round.back as u64, "what is there is exact");
    assert_eq!(part.there, Interval { start: minute(-(round.back as i64)), end: minute(0) });
    count_all(&minutes, std::slice::from_ref(&first), now_at(0)).await;
    assert_eq!(part_at(&minutes, &first, window, now_at(0)).await.tally.bad, 600);

    // Another limit makes another version: it is counted for itself, and nothing is left of the one before.
    let mut other = objective("queue", long);
    other.threshold = 1e9;
    let second = put(&store, &other, 2).await;
    count_all(&minutes, std::slice::from_ref(&second), now_at(0)).await;
    let part = part_at(&minutes, &second, window, now_at(0)).await;
    assert_eq!((part.tally.good, part.tally.bad), (600, 0));
    assert_eq!(part_at(&minutes, &first, window, now_at(0)).await.filled(), 0.0);
    let mut beside = PgConnection::connect(&database.url).await.expect("a connection");
    let versions: Vec<i32> =
        sqlx::query_scalar("select distinct version from slo_minute").fetch_all(&mut beside).await.expect("versions");
    assert_eq!(versions, [2]);
}

#[tokio::test]
async fn late_data_changes_a_counted_minute_at_once() {
    let database = test_database().await;
    let store = open(&database.url, WEEK).await;
    let versioned = put(&store, &objective("queue", ""), 1).await;
    let minutes = MinuteCounts::new(store.clone());
    let versions = [versioned.clone()];
    write(&store, (1..=40).map(|number| matched(number, at(i64::from(number) * 1000), 20)).collect()).await;
    count_all(&minutes, &versions, now_at(5)).await;
    let window = Interval { start: minute(0), end: minute(5) };
    let tally = part_at(&minutes, &versioned, window, now_at(5)).await.tally;
    assert_eq!((tally.good, tally.bad, tally.missing), (40, 0, 0));

    // One turns out slow, one moves to another minute, one loses its spans, one comes late.
    let late =
        vec![matched(1, at(1000), 900), matched(2, at(100_000), 20), lone(3, at(3000)), matched(41, at(41_000), 20)];
    write(&store, late).await;
    let expected = Tally { good: 39, bad: 1, missing: 1, left_out: 0 };
    assert_eq!(part_at(&minutes, &versioned, window, now_at(5)).await.tally, expected, "before it is counted again");
    let first = Interval { start: minute(0), end: minute(1) };
    assert_eq!(part_at(&minutes, &versioned, first, now_at(5)).await.tally.n(), 39);
    assert_eq!(minutes.count(&versions, now_at(5)).await.expect("a round").again, 2);
    assert_eq!(part_at(&minutes, &versioned, window, now_at(5)).await.tally, expected, "after it");
    assert_eq!(minutes.count(&versions, now_at(5)).await.expect("a round").again, 0, "nothing changed since");
}

/// Requests that come in any order, change, repeat and move between minutes, while two instances count at any time.
#[tokio::test]
async fn counts_are_those_of_the_rows_at_every_moment() {
    let database = test_database().await;
    let stores = [open(&database.url, WEEK).await, open(&database.url, WEEK).await];
    let counters = stores.clone().map(MinuteCounts::new);
    let spec = "  burn: {windows: [{factor: 2, long: 2h, short: 10m}], min_traffic: 5, min_bad: 2}\n";
    let versions = [put(&stores[0], &objective("queue", spec), 1).await];
    let mut random = StdRng::seed_from_u64(7);
    for round in 0..60 {
        let batch: BTreeMap<u32, Request> = (0..random.random_range(1..20))
            .map(|_| {
                let number = random.random_range(1..120);
                let begins = minute(random.random_range(0..40)) + Nanos(random.random_range(0..MINUTE));
                let mut request = matched(number, begins, random.random_range(0..500));
                if random.random_ratio(1, 5) {
                    request = lone(number, begins);
                }
                if random.random_ratio(1, 8) {
                    request.state = State::Pending;
                }
                (number, request)
            })
            .collect();
        let now = now_at(random.random_range(35..45));
        let (writer, counter) = (random.random_range(0..2), random.random_range(0..2));
        let writing = write(&stores[writer], batch.into_values().collect());
        // Counting runs while the batch is written: it sees all of the batch or nothing.
        if random.random_ratio(1, 2) {
            let counting = async { tokio::join!(counters[0].count(&versions, now), counters[1].count(&versions, now)) };
            let ((), (one, other)) = tokio::join!(writing, counting);
            one.and(other).expect("rounds");
        } else {
            writing.await;
            if random.random_ratio(1, 2) {
                counters[counter].count(&versions, now).await.expect("a round");
            }
        }
        if round == 0 {
            count_all(&counters[0], &versions, now).await;
        }
        let end = counters[0].end(now);
        let window = Interval { start: end - Nanos(MINUTE * random.random_range(1..50)), end };
        let part = part_at(&counters[counter], &versions[0], window, now).await;
        assert_eq!(part.tally, from_rows(&stores[0], &versions[0], window).await, "round {round}, {window:?}");
    }
}

#[tokio::test]
async fn an_instance_that_has_yet_to_hear_of_an_objective_leaves_its_marks() {
    let database = test_database().await;
    let store = open(&database.url, WEEK).await;
    let minutes = MinuteCounts::new(store.clone());
    let known = put(&store, &objective("queue", ""), 1).await;
    let new = put(&store, &objective("another", ""), 1).await;
    let both = [new.clone(), known.clone()];
    count_all(&minutes, &both, now_at(0)).await;
    write(&store, steady(0..5, 900)).await;
    for behind in [vec![], vec![known.clone()]] {
        let round = minutes.count(&behind, now_at(5)).await.expect("a round");
        assert_eq!((round.again, round.finished), (0, false), "{} known", behind.len());
    }
    count_all(&minutes, &both, now_at(5)).await;
    let window = Interval { start: minute(0), end: minute(5) };
    for versioned in &both {
        assert_eq!(part_at(&minutes, versioned, window, now_at(5)).await.tally.bad, 5, "{}", versioned.objective.id);
    }
}

#[tokio::test]
async fn marks_do_not_pile_up_without_objectives_and_old_minutes_leave() {
    let database = test_database().await;
    let store = open(&database.url, WEEK).await;
    let minutes = MinuteCounts::new(store.clone());
    let mut beside = PgConnection::connect(&database.url).await.expect("a connection");
    write(&store, vec![matched(1, at(1), 900)]).await;
    assert_eq!(marks(&mut beside).await, 1);
    minutes.count(&[], now_at(1)).await.expect("a round");
    assert_eq!(marks(&mut beside).await, 0);

    let versioned = put(&store, &objective("queue", ""), 1).await;
    count_all(&minutes, std::slice::from_ref(&versioned), now_at(1)).await;
    let window = Interval { start: minute(0), end: minute(1) };
    assert_eq!(part_at(&minutes, &versioned, window, now_at(1)).await.tally.bad, 1);
    let kept_until = |days: i64| UnixNanos::now().max(NOON) + Nanos(days * Slice::DAY.0);
    // Its minute is past by then, and the day of its arrival too.
    let removed = store.maintain(kept_until(37)).await.expect("maintenance").minutes_removed;
    assert_eq!(removed, 1);

    // What changes in a minute that is no longer kept is not counted, and does not wait either.
    write(&store, vec![matched(2, minute(-40 * DAY_OF_MINUTES), 900)]).await;
    minutes.count(std::slice::from_ref(&versioned), now_at(1)).await.expect("a round");
    assert_eq!(marks(&mut beside).await, 0);
}

#[tokio::test]
async fn a_share_of_time_has_no_minutes() {
    let database = test_database().await;
    let store = open(&database.url, WEEK).await;
    let text = "apiVersion: tracejoin/v1
kind: SLO
metadata: {name: unexplained}
spec: {phase: unattributed_share, threshold: 0.05}
";
    let pooled = document::read(text).expect("an objective").remove(0);
    let versioned = put(&store, &pooled, 1).await;
    let minutes = MinuteCounts::new(store);
    assert!(minutes.count(std::slice::from_ref(&versioned), now_at(0)).await.expect("a round").finished);
    let mut reading = minutes.for_budget(std::slice::from_ref(&versioned), now_at(0)).await.expect("a reading");
    let refusal = reading.budget(&versioned).await.expect_err("nothing to count").to_string();
    assert!(refusal.contains("`quantile`"), "{refusal}");
}
