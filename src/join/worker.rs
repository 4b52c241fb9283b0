//! The settling worker: claims traces that have settled and writes their joined rows.
//!
//! Claims go through the database, so any number of instances share the work. A claim is one transaction: a process that
//! dies in the middle leaves nothing behind but the work itself.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use metrics::{counter, gauge, histogram};
use tokio_util::sync::CancellationToken;
use tracing::{error, warn};

use super::{Progress, TraceInputs, explain};
use crate::model::{Flag, Nanos, Span, State, TraceId, UnixNanos};
use crate::normalise::dialect::Reading;
use crate::store::{Claim, RequestRow, Store, TraceArrivals};

/// How a span is read.
pub type ReadSpan = dyn Fn(&Span) -> Reading + Send + Sync;

/// When and how traces are joined.
#[derive(Clone)]
pub struct JoinRules {
    /// Quiet time after a trace's last arrival.
    pub settle: Duration,
    /// Time after a trace's first arrival at which a lone side no longer waits.
    pub deadline: Duration,
    /// How many spans of a trace are looked at.
    pub span_limit: usize,
    /// How a span is read.
    pub read: Arc<ReadSpan>,
}

impl JoinRules {
    /// How far a trace has come at an instant of our clock.
    pub fn progress(&self, trace: &TraceArrivals, now: UnixNanos) -> Progress {
        Progress {
            settled: trace.last_arrival + nanos(self.settle) <= now,
            deadline_passed: self.deadline_of(trace) <= now,
        }
    }

    fn deadline_of(&self, trace: &TraceArrivals) -> UnixNanos {
        trace.first_arrival + nanos(self.deadline)
    }
}

fn nanos(duration: Duration) -> Nanos {
    Nanos(i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX))
}

/// Queue rows taken by one claim: each stands for one commit, of up to some thousand traces.
const ROWS_PER_CLAIM: u32 = 256;

/// Pause after a round that found nothing due.
const IDLE: Duration = Duration::from_millis(200);

/// Pause after the database failed.
const AWAY: Duration = Duration::from_secs(1);

/// Joins settled traces until it is told to stop.
pub async fn run(store: Store, rules: JoinRules, stop: CancellationToken) {
    loop {
        let pause = match round(&store, &rules, &stop).await {
            Ok(true) => Duration::ZERO,
            Ok(false) => IDLE,
            Err(error) => {
                warn!(error = format!("{error:#}"), "joining waits for the database");
                AWAY
            }
        };
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// Works through every bucket that has due work; `false` where nothing was done.
async fn round(store: &Store, rules: &JoinRules, stop: &CancellationToken) -> anyhow::Result<bool> {
    let now = UnixNanos::now();
    let mut worked = false;
    for bucket in store.due_buckets(now).await? {
        if stop.is_cancelled() {
            break;
        }
        if let Some(claim) = store.claim(bucket, now, ROWS_PER_CLAIM).await? {
            let started = Instant::now();
            work_through(claim, rules, now).await.with_context(|| format!("bucket {bucket}"))?;
            histogram!("tracejoin_join_claim_seconds").record(started.elapsed());
            worked = true;
        }
    }
    let lag = store.join_lag(UnixNanos::now()).await?;
    gauge!("tracejoin_join_lag_seconds").set(lag.as_secs_f64());
    Ok(worked)
}

async fn work_through(mut claim: Claim, rules: &JoinRules, now: UnixNanos) -> anyhow::Result<()> {
    let mut joined = Vec::new();
    while claim.has_more() {
        let mut settled = Vec::new();
        for (key, trace) in claim.arrivals().await? {
            let Ok(trace_id) = TraceId::from_bytes(key) else { continue };
            if rules.progress(&trace, now).settled {
                settled.push((trace_id, trace));
            } else {
                claim.requeue(key, trace.last_arrival + nanos(rules.settle));
            }
        }
        joined.append(&mut join_all(settled, rules.clone(), now).await?);
    }
    write(claim, joined).await
}

async fn join_all(
    settled: Vec<(TraceId, TraceArrivals)>,
    rules: JoinRules,
    now: UnixNanos,
) -> anyhow::Result<Vec<JoinedTrace>> {
    let joining = tokio::task::spawn_blocking(move || {
        settled.into_iter().map(|(id, trace)| join(id, trace, &rules, now)).collect()
    });
    joining.await.context("joining was cut short")
}

/// What a trace was joined to.
struct JoinedTrace {
    trace_id: TraceId,
    rows: Vec<RequestRow>,
    /// When a lone side stops waiting, where it still does.
    waits_until: Option<UnixNanos>,
}

fn join(trace_id: TraceId, trace: TraceArrivals, rules: &JoinRules, now: UnixNanos) -> JoinedTrace {
    let progress = rules.progress(&trace, now);
    let deadline = rules.deadline_of(&trace);
    let arrived_at = trace.first_arrival;
    let inputs = TraceInputs::from_arrivals(trace_id, trace, rules.span_limit);
    // One trace that trips a fault of ours must not keep its whole bucket from being joined.
    let explained = catch_unwind(AssertUnwindSafe(|| explain(inputs, progress, rules.read.as_ref())));
    let Ok(explained) = explained else {
        error!(%trace_id, "a trace could not be joined: please report it with its spans");
        counter!("tracejoin_join_failures_total").increment(1);
        return JoinedTrace { trace_id, rows: Vec::new(), waits_until: None };
    };
    if explained.stray.is_some() {
        counter!("tracejoin_traces_ignored_total", "reason" => Flag::NoEntrySpan.name()).increment(1);
    }
    let rows: Vec<RequestRow> =
        explained.requests.into_iter().map(|joined| RequestRow::new(joined.request, arrived_at, 0)).collect();
    let waits = rows.iter().any(|row| row.request.state == State::Pending);
    JoinedTrace { trace_id, rows, waits_until: waits.then_some(deadline) }
}

async fn write(mut claim: Claim, joined: Vec<JoinedTrace>) -> anyhow::Result<()> {
    let traces: Vec<TraceId> = joined.iter().map(|trace| trace.trace_id).collect();
    let mut existing: HashMap<TraceId, Vec<RequestRow>> = HashMap::new();
    for row in claim.existing_rows(&traces).await? {
        existing.entry(row.request.trace_id).or_default().push(row);
    }
    let mut changed = Vec::new();
    let mut rows = Vec::new();
    for mut trace in joined {
        if let Some(deadline) = trace.waits_until {
            claim.requeue(*trace.trace_id.as_bytes(), deadline);
        }
        let before = existing.remove(&trace.trace_id).unwrap_or_default();
        if supersede(&before, &mut trace.rows) {
            changed.push(trace.trace_id);
            rows.append(&mut trace.rows);
        }
    }
    let counts = Counts::of(&rows);
    claim.replace(&changed, rows).await?;
    claim.commit().await?;
    counts.publish();
    Ok(())
}

/// Makes new rows of a trace follow its old ones; `false` where they say the same.
fn supersede(before: &[RequestRow], rows: &mut [RequestRow]) -> bool {
    let contents = |rows: &[RequestRow]| {
        let mut contents: Vec<i64> = rows.iter().map(|row| row.content).collect();
        contents.sort_unstable();
        contents
    };
    if contents(before) == contents(rows) {
        return false;
    }
    for row in rows {
        let client_span = row.request.client_span;
        follow(before.iter().filter(|old| old.request.client_span == client_span), row);
    }
    true
}

/// Counts a row's revisions. One that waits for its other side has not been joined: its revision is 0, and what
/// completes it is not late.
fn follow<'a>(before: impl Iterator<Item = &'a RequestRow> + Clone, row: &mut RequestRow) {
    let last = before.clone().map(|old| old.revision).max().unwrap_or(0);
    let unchanged = before.clone().any(|old| old.content == row.content);
    let late = before.clone().any(|old| old.request.flags.has(Flag::Late)) || (last > 0 && !unchanged);
    let waits = row.request.state == State::Pending && last == 0;
    row.revision = if unchanged || waits { last } else { last + 1 };
    row.request.flags.set_if(late, Flag::Late);
}

/// First joins by state, and corrections apart, so that sums over instances are right.
#[derive(Default)]
struct Counts {
    first: HashMap<State, u64>,
    corrections: u64,
}

impl Counts {
    fn of(rows: &[RequestRow]) -> Self {
        let mut counts = Self::default();
        for row in rows {
            match row.request.state {
                State::Pending => {}
                _ if row.request.flags.has(Flag::Late) => counts.corrections += 1,
                state => *counts.first.entry(state).or_default() += 1,
            }
        }
        counts
    }

    fn publish(self) {
        for (state, count) in self.first {
            counter!("tracejoin_requests_joined_total", "state" => state.name()).increment(count);
        }
        counter!("tracejoin_requests_corrected_total").increment(self.corrections);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::join::tests::build::{Build, id, inputs, record, span};

    fn row(duration: i64, client: u64, state: State, revision: i32) -> RequestRow {
        let spans = vec![span(1, client, 0, 5).server()];
        let mut own = record(duration);
        own.span_id = Some(id(client));
        let progress = Progress { settled: state != State::Pending, deadline_passed: true };
        let explained = explain(inputs(spans, vec![own]), progress, &crate::join::tests::build::read);
        let request = explained.requests.into_iter().next().expect("a request").request;
        assert_eq!(request.state, state);
        RequestRow::new(request, UnixNanos(5), revision)
    }

    fn after(before: &[RequestRow], row: RequestRow) -> (bool, i32, bool) {
        let mut rows = [row];
        let changed = supersede(before, &mut rows);
        (changed, rows[0].revision, rows[0].request.flags.has(Flag::Late))
    }

    #[test]
    fn a_first_join_is_revision_one_and_not_late() {
        assert_eq!(after(&[], row(10, 9, State::Matched, 0)), (true, 1, false));
        let waiting = row(10, 9, State::Pending, 0);
        assert_eq!(after(&[], waiting.clone()), (true, 0, false));
        assert_eq!(after(&[waiting], row(10, 9, State::Matched, 0)), (true, 1, false));
    }

    #[test]
    fn new_content_is_a_late_revision_and_equal_content_is_none() {
        let joined = row(10, 9, State::Matched, 1);
        assert_eq!(after(std::slice::from_ref(&joined), row(10, 9, State::Matched, 0)), (false, 0, false));
        assert_eq!(after(&[joined], row(11, 9, State::Matched, 0)), (true, 2, true));
    }

    #[test]
    fn another_request_of_the_trace_does_not_make_a_row_late() {
        let joined = row(10, 9, State::Matched, 1);
        let mut rows = [joined.clone(), row(20, 8, State::Matched, 0)];
        assert!(supersede(&[joined], &mut rows));
        assert_eq!(rows.each_ref().map(|row| row.revision), [1, 1]);
        assert!(rows.iter().all(|row| !row.request.flags.has(Flag::Late)));
    }
}
