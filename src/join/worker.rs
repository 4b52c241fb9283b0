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
const ROWS_PER_CLAIM: u32 = 64;

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
    let mut settled = Vec::new();
    for (key, trace) in claim.arrivals().await? {
        let Ok(trace_id) = TraceId::from_bytes(key) else { continue };
        if rules.progress(&trace, now).settled {
            settled.push((trace_id, trace));
        } else {
            claim.requeue(key, trace.last_arrival + nanos(rules.settle));
        }
    }
    let joined = {
        let rules = rules.clone();
        tokio::task::spawn_blocking(move || {
            settled.into_iter().map(|(id, trace)| join(id, trace, &rules, now)).collect()
        })
        .await
        .context("joining was cut short")?
    };
    write(claim, joined).await
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
        explained.requests.into_iter().map(|joined| RequestRow::new(joined.request, arrived_at, 1)).collect();
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
    let Some(revision) = before.iter().map(|row| row.revision).max() else { return true };
    // A row that was pending had not been joined: what completes it is not late.
    let was_joined = before.iter().any(|row| row.request.state != State::Pending);
    let was_late = before.iter().any(|row| row.request.flags.has(Flag::Late));
    for row in rows {
        row.revision = revision + i32::from(was_joined);
        row.request.flags.set_if(was_joined || was_late, Flag::Late);
    }
    true
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
