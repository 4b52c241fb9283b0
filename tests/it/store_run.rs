//! Runs of load generators in the database.

use model::{Interval, Iterations, Nanos, RunEnd, UnixNanos};
use serde_json::json;

use crate::store_support::store;

const T: UnixNanos = UnixNanos(1_800_000_000_000_000_000);

fn end(seconds: i64, planned: Option<u64>, dropped: Option<u64>) -> RunEnd {
    RunEnd {
        finished_at: T + Nanos(seconds * 1_000_000_000),
        planned_iterations: planned,
        dropped_iterations: dropped,
        planned_rate: Some(20.0),
        real_rate: None,
    }
}

#[tokio::test]
async fn a_run_is_told_in_any_order_and_again() {
    let (_database, store) = store().await;
    assert_eq!(store.run("nightly").await.expect("read"), None);
    let finished = store.finish_run("nightly", &end(0, Some(100), Some(3))).await.expect("finished");
    assert_eq!((finished.configuration, finished.end), (None, Some(end(0, Some(100), Some(3)))));

    let told = json!({"executor": "constant-arrival-rate", "rate": 20, "nested": {"max_tokens": 64}});
    let configured = store.configure_run("nightly", &told, T).await.expect("configured");
    assert_eq!((configured.configuration.as_ref(), configured.configured_at), (Some(&told), Some(T)));
    assert_eq!(configured.end, Some(end(0, Some(100), Some(3))), "a configuration leaves the end alone");

    let again = store.finish_run("nightly", &end(5, Some(120), None)).await.expect("told again");
    assert_eq!((again.configuration, again.end), (Some(told), Some(end(5, Some(120), None))));
    assert_eq!(store.run("nightly").await.expect("read").and_then(|run| run.end), Some(end(5, Some(120), None)));
}

#[tokio::test]
async fn iterations_are_those_of_runs_that_finished_in_the_window_and_told_both() {
    let (_database, store) = store().await;
    let runs = [
        ("before", end(-1, Some(10), Some(1))),
        ("first", end(0, Some(100), Some(5))),
        ("second", end(9, Some(200), Some(0))),
        ("silent", end(5, Some(50), None)),
        ("after", end(10, Some(10), Some(1))),
    ];
    for (id, end) in runs {
        store.finish_run(id, &end).await.expect("finished");
    }
    store.configure_run("running", &json!({}), T).await.expect("configured");
    let window = Interval { start: T, end: T + Nanos(10_000_000_000) };
    let all = store.iterations(window, None).await.expect("read");
    assert_eq!(all, Iterations { runs: 2, untold: 1, started: 295, dropped: 5 });
    let named = store.iterations(window, Some(&["first".to_owned(), "after".to_owned()])).await.expect("read");
    assert_eq!(named, Iterations { runs: 1, untold: 0, started: 95, dropped: 5 });
    let none = store.iterations(window, Some(&["running".to_owned()])).await.expect("read");
    assert_eq!(none, Iterations::default());
}
