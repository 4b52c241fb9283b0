//! The settling worker: claims traces that have settled and writes their joined rows.
//!
//! Claims go through the database, so any number of instances share the work. A claim is one transaction: a process that
//! dies in the middle leaves nothing behind but the work itself.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use metrics::{counter, gauge, histogram};
use tokio_util::sync::CancellationToken;
use tracing::{error, warn};

use join::{JoinRules, Pairing, RequestIdPairing, TraceRelations, join_trace};
use model::{Flag, Nanos, Side, TraceArrivals, TraceId, UnixNanos};

use self::observer::Written;
use self::revision::supersede;
use crate::gather::gather;
use crate::store::{Claim, RequestRow, Store};

mod observer;
mod revision;

pub use observer::JoinObserver;

/// Queue rows taken by one claim: each stands for one commit, of up to some thousand traces.
const ROWS_PER_CLAIM: u32 = 256;

/// Pause after a round that found nothing due.
const IDLE: Duration = Duration::from_millis(200);

/// Pause after the database failed.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Joins settled traces until it is told to stop, and tells the observer of each commit.
pub async fn run(store: Store, rules: JoinRules, observer: Arc<dyn JoinObserver>, stop: CancellationToken) {
    loop {
        let pause = match round(&store, &rules, &observer, &stop).await {
            Ok(true) => Duration::ZERO,
            Ok(false) => IDLE,
            Err(error) => {
                warn!(error = format!("{error:#}"), "joining waits for the database");
                RETRY_AFTER
            }
        };
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// Works through every bucket that has due work; `false` where nothing was done.
async fn round(
    store: &Store,
    rules: &JoinRules,
    observer: &Arc<dyn JoinObserver>,
    stop: &CancellationToken,
) -> anyhow::Result<bool> {
    let now = UnixNanos::now();
    let mut worked = false;
    for bucket in store.due_buckets(now).await? {
        if stop.is_cancelled() {
            break;
        }
        if let Some(claim) = store.claim(bucket, now, ROWS_PER_CLAIM).await? {
            let started = Instant::now();
            let written = work_through(claim, rules, now).await.with_context(|| format!("bucket {bucket}"))?;
            notify(Arc::clone(observer), written, now).await?;
            histogram!("tracejoin_join_claim_seconds").record(started.elapsed());
            worked = true;
        }
    }
    let lag = store.join_lag(UnixNanos::now()).await?;
    gauge!("tracejoin_join_lag_seconds").set(lag.as_secs_f64());
    Ok(worked)
}

async fn work_through(mut claim: Claim, rules: &JoinRules, now: UnixNanos) -> anyhow::Result<Written> {
    let mut joined = Vec::new();
    while claim.has_more() {
        let mut plain = Vec::new();
        let mut linked = Vec::new();
        for (key, trace) in claim.arrivals().await? {
            let Ok(trace_id) = TraceId::from_bytes(key) else { continue };
            if !rules.progress(&trace, now).settled {
                claim.requeue(key, trace.last_arrival + Nanos::from(rules.settle));
            } else if join::is_linked(&trace) {
                linked.push((trace_id, trace));
            } else {
                plain.push((trace_id, trace));
            }
        }
        let mut found = join_all(plain, None, rules.clone(), now).await?;
        relate(&mut claim, linked, &mut found, rules, now).await?;
        joined.append(&mut found);
    }
    write(claim, joined, now).await
}

/// Joins the traces whose clients tell a request id, and looks for what others that told none have to do with one.
async fn relate(
    claim: &mut Claim,
    linked: Vec<(TraceId, TraceArrivals)>,
    joined: &mut Vec<JoinedRows>,
    rules: &JoinRules,
    now: UnixNanos,
) -> anyhow::Result<()> {
    let told = linked.iter().flat_map(|(_, trace)| join::client_ids(trace));
    let ids: BTreeSet<String> = told.chain(joined.iter().flat_map(|trace| trace.server_ids.clone())).collect();
    if ids.is_empty() && linked.is_empty() {
        return Ok(());
    }
    let pairing = Arc::new(gather(claim, ids, rules.read.as_ref()).await?);
    let mut named = Named::new();
    for trace in joined.iter_mut() {
        serve_others(trace, &pairing, rules, &mut named);
    }
    for (request_id, servers) in named {
        servers.into_iter().for_each(|server| claim.alias(&request_id, server, now));
    }
    joined.append(&mut join_all(linked, Some(pairing), rules.clone(), now).await?);
    Ok(())
}

/// The servers to name under request ids.
type Named = BTreeMap<String, Vec<TraceId>>;

/// Lets the spans of a trace without a client's side be found by the request ids that they carry. Where they explain the
/// record of another trace, their time is told there and not a second time here.
fn serve_others(trace: &mut JoinedRows, pairing: &RequestIdPairing, rules: &JoinRules, named: &mut Named) {
    for request_id in &trace.server_ids {
        let known = pairing.knows_server(request_id, trace.trace_id);
        if trace.relations.has_client {
            // It was looked for before its own client came: whoever took it has to let go.
            let clients = if known { pairing.related(request_id, Side::Client) } else { Vec::new() };
            trace.relations.join_again_if_changed.extend(clients);
            continue;
        }
        if !known && !pairing.has_servers_enough(request_id) {
            let named = named.entry(request_id.clone()).or_default();
            if named.len() < join::SERVERS_ENOUGH {
                named.push(trace.trace_id);
            }
        }
        match pairing.pairing(request_id, rules.read.as_ref()) {
            Pairing::Pair { client, server } if server == trace.trace_id => {
                trace.rows.clear();
                trace.waits_until = None;
                trace.relations.join_again.push(client);
            }
            // Whoever took it before the id was ambiguous has to let go.
            Pairing::Ambiguous => {
                trace.relations.join_again_if_changed.extend(pairing.related(request_id, Side::Client))
            }
            _ => {}
        }
    }
}

async fn join_all(
    settled: Vec<(TraceId, TraceArrivals)>,
    pairing: Option<Arc<RequestIdPairing>>,
    rules: JoinRules,
    now: UnixNanos,
) -> anyhow::Result<Vec<JoinedRows>> {
    let joining = tokio::task::spawn_blocking(move || {
        settled.into_iter().map(|(id, trace)| join_one(id, trace, pairing.as_deref(), &rules, now)).collect()
    });
    joining.await.context("joining was cut short")
}

/// What a trace was joined to.
struct JoinedRows {
    trace_id: TraceId,
    rows: Vec<RequestRow>,
    /// When something that it still waits for is given up.
    waits_until: Option<UnixNanos>,
    /// Request ids of its spans by which others may ask for it.
    server_ids: Vec<String>,
    relations: TraceRelations,
}

fn join_one(
    trace_id: TraceId,
    trace: TraceArrivals,
    pairing: Option<&RequestIdPairing>,
    rules: &JoinRules,
    now: UnixNanos,
) -> JoinedRows {
    let arrived_at = trace.first_arrival;
    let relations = TraceRelations::of(trace_id, &trace, pairing, rules);
    let mut rows = JoinedRows { trace_id, rows: Vec::new(), waits_until: None, server_ids: Vec::new(), relations };
    // One trace that trips a fault of ours must not keep its whole bucket from being joined.
    let joined = catch_unwind(AssertUnwindSafe(|| join_trace(trace_id, trace, pairing, rules, now)));
    let Ok(joined) = joined else {
        error!(%trace_id, "a trace could not be joined: please report it with its spans");
        counter!("tracejoin_join_failures_total").increment(1);
        return rows;
    };
    let explained = joined.explained;
    if explained.stray.is_some() {
        counter!("tracejoin_traces_ignored_total", "reason" => Flag::NoEntrySpan.name()).increment(1);
    }
    rows.rows = explained.requests.into_iter().map(|joined| RequestRow::new(joined.request, arrived_at, 0)).collect();
    rows.waits_until = joined.waits_until;
    if rows.relations.may_serve_others {
        rows.server_ids = explained.server_ids;
    }
    rows
}

/// Counts what a commit wrote, off the threads that serve: a claim may hold many thousand requests.
async fn notify(observer: Arc<dyn JoinObserver>, written: Written, now: UnixNanos) -> anyhow::Result<()> {
    let notifying = tokio::task::spawn_blocking(move || {
        written.count();
        observer.joined(&written.first, now);
    });
    notifying.await.context("counting what was joined was cut short")
}

async fn write(mut claim: Claim, joined: Vec<JoinedRows>, now: UnixNanos) -> anyhow::Result<Written> {
    let traces: Vec<TraceId> = joined.iter().map(|trace| trace.trace_id).collect();
    let mut existing: HashMap<TraceId, Vec<RequestRow>> = HashMap::new();
    for row in claim.existing_rows(&traces).await? {
        existing.entry(row.request.trace_id).or_default().push(row);
    }
    let mut changed = Vec::new();
    let mut rows = Vec::new();
    let mut unchanged = HashSet::new();
    let mut again = BTreeSet::new();
    for mut trace in joined {
        if let Some(until) = trace.waits_until {
            claim.requeue(*trace.trace_id.as_bytes(), until);
        }
        again.extend(trace.relations.join_again);
        let before = existing.remove(&trace.trace_id).unwrap_or_default();
        if let Some(kept) = supersede(&before, &mut trace.rows) {
            unchanged.extend(kept.into_iter().map(|client_span| (trace.trace_id, client_span)));
            changed.push(trace.trace_id);
            rows.append(&mut trace.rows);
            again.extend(trace.relations.join_again_if_changed);
        }
    }
    for trace_id in again {
        claim.requeue(*trace_id.as_bytes(), now);
    }
    let rows = claim.replace(&changed, rows).await?;
    claim.commit().await?;
    Ok(Written::of(rows, &unchanged))
}
