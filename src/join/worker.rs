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

use super::kin::{self, Kin, Pairing};
use super::revision::supersede;
use super::rules::JoinRules;
use super::witness::{News, Witness};
use super::{TraceInputs, explain};
use crate::model::{Flag, Nanos, Side, State, TraceId, UnixNanos};
use crate::store::{Claim, RequestRow, Store, TraceArrivals};

/// Queue rows taken by one claim: each stands for one commit, of up to some thousand traces.
const ROWS_PER_CLAIM: u32 = 256;

/// Pause after a round that found nothing due.
const IDLE: Duration = Duration::from_millis(200);

/// Pause after the database failed.
const AWAY: Duration = Duration::from_secs(1);

/// Joins settled traces until it is told to stop, and tells the witness of each commit.
pub async fn run(store: Store, rules: JoinRules, witness: Arc<dyn Witness>, stop: CancellationToken) {
    loop {
        let pause = match round(&store, &rules, &witness, &stop).await {
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
async fn round(
    store: &Store,
    rules: &JoinRules,
    witness: &Arc<dyn Witness>,
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
            let news = work_through(claim, rules, now).await.with_context(|| format!("bucket {bucket}"))?;
            tell(Arc::clone(witness), news, now).await?;
            histogram!("tracejoin_join_claim_seconds").record(started.elapsed());
            worked = true;
        }
    }
    let lag = store.join_lag(UnixNanos::now()).await?;
    gauge!("tracejoin_join_lag_seconds").set(lag.as_secs_f64());
    Ok(worked)
}

async fn work_through(mut claim: Claim, rules: &JoinRules, now: UnixNanos) -> anyhow::Result<News> {
    let mut joined = Vec::new();
    while claim.has_more() {
        let mut plain = Vec::new();
        let mut linked = Vec::new();
        for (key, trace) in claim.arrivals().await? {
            let Ok(trace_id) = TraceId::from_bytes(key) else { continue };
            if !rules.progress(&trace, now).settled {
                claim.requeue(key, trace.last_arrival + Nanos::from(rules.settle));
            } else if kin::is_linked(&trace) {
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
    joined: &mut Vec<JoinedTrace>,
    rules: &JoinRules,
    now: UnixNanos,
) -> anyhow::Result<()> {
    let told = linked.iter().flat_map(|(_, trace)| kin::client_ids(trace));
    let ids: BTreeSet<String> = told.chain(joined.iter().flat_map(|trace| trace.server_ids.clone())).collect();
    if ids.is_empty() && linked.is_empty() {
        return Ok(());
    }
    let kin = Arc::new(Kin::gather(claim, &ids, rules.read.as_ref()).await?);
    let mut named = Named::new();
    for trace in joined.iter_mut() {
        serve_others(trace, &kin, rules, &mut named);
    }
    for (request_id, servers) in named {
        servers.into_iter().for_each(|server| claim.alias(&request_id, server, now));
    }
    joined.append(&mut join_all(linked, Some(kin), rules.clone(), now).await?);
    Ok(())
}

/// The servers to name under request ids.
type Named = BTreeMap<String, Vec<TraceId>>;

/// Lets the spans of a trace without a client's side be found by the request ids that they carry. Where they explain the
/// record of another trace, their time is told there and not a second time here.
fn serve_others(trace: &mut JoinedTrace, kin: &Kin, rules: &JoinRules, named: &mut Named) {
    for request_id in &trace.server_ids {
        let known = kin.knows_server(request_id, trace.trace_id);
        if trace.has_client {
            // It was looked for before its own client came: whoever took it has to let go.
            let clients = if known { kin.related(request_id, Side::Client) } else { Vec::new() };
            trace.bears_upon.extend(clients);
            continue;
        }
        if !known && !kin.has_servers_enough(request_id) {
            let named = named.entry(request_id.clone()).or_default();
            if named.len() < kin::SERVERS_ENOUGH {
                named.push(trace.trace_id);
            }
        }
        match kin.pairing(request_id, rules.read.as_ref()) {
            Pairing::Pair { client, server } if server == trace.trace_id => {
                trace.rows.clear();
                trace.waits_until = None;
                trace.brings_back.push(client);
            }
            // Whoever took it before the id was ambiguous has to let go.
            Pairing::Ambiguous => trace.bears_upon.extend(kin.related(request_id, Side::Client)),
            _ => {}
        }
    }
}

async fn join_all(
    settled: Vec<(TraceId, TraceArrivals)>,
    kin: Option<Arc<Kin>>,
    rules: JoinRules,
    now: UnixNanos,
) -> anyhow::Result<Vec<JoinedTrace>> {
    let joining = tokio::task::spawn_blocking(move || {
        settled.into_iter().map(|(id, trace)| join(id, trace, kin.as_deref(), &rules, now)).collect()
    });
    joining.await.context("joining was cut short")
}

/// What a trace was joined to.
struct JoinedTrace {
    trace_id: TraceId,
    rows: Vec<RequestRow>,
    /// When something that it still waits for is given up.
    waits_until: Option<UnixNanos>,
    /// Request ids of its spans by which others may ask for it.
    server_ids: Vec<String>,
    /// Whether a client told of it by its trace id.
    has_client: bool,
    /// Traces to join again now.
    brings_back: Vec<TraceId>,
    /// Traces to join again where this one has changed.
    bears_upon: Vec<TraceId>,
}

fn join(trace_id: TraceId, trace: TraceArrivals, kin: Option<&Kin>, rules: &JoinRules, now: UnixNanos) -> JoinedTrace {
    let progress = rules.progress(&trace, now);
    let deadline = rules.deadline_of(&trace);
    let arrived_at = trace.first_arrival;
    let has_client = kin::has_client(&trace);
    let asked_for = !has_client || kin::client_came_late(&trace, rules);
    let mut joined = JoinedTrace {
        trace_id,
        rows: Vec::new(),
        waits_until: None,
        server_ids: Vec::new(),
        has_client,
        brings_back: kin::touched_by(trace_id, &trace),
        bears_upon: Vec::new(),
    };
    if let Some(kin) = kin {
        let servers = kin::client_ids(&trace).into_iter().flat_map(|id| kin.related(&id, Side::Server));
        joined.bears_upon = servers.filter(|server| *server != trace_id).collect();
    }
    let mut inputs = TraceInputs::from_arrivals(trace_id, trace, rules.span_limit);
    if let Some(kin) = kin {
        kin.complete(&mut inputs, rules, now);
    }
    // One trace that trips a fault of ours must not keep its whole bucket from being joined.
    let explained = catch_unwind(AssertUnwindSafe(|| explain(inputs, progress, rules.read.as_ref())));
    let Ok(explained) = explained else {
        error!(%trace_id, "a trace could not be joined: please report it with its spans");
        counter!("tracejoin_join_failures_total").increment(1);
        return joined;
    };
    if explained.stray.is_some() {
        counter!("tracejoin_traces_ignored_total", "reason" => Flag::NoEntrySpan.name()).increment(1);
    }
    joined.rows = explained.requests.into_iter().map(|joined| RequestRow::new(joined.request, arrived_at, 0)).collect();
    if joined.rows.iter().any(|row| row.request.state == State::Pending) {
        let silent = |length| explained.open_since.map(|since| since + Nanos::from(length));
        let times = [Some(deadline), silent(rules.stream_hang), silent(rules.stream_quiet)];
        // What waits for none of them waits for a partner to settle, which brings it back itself.
        joined.waits_until = times.into_iter().flatten().filter(|at| *at > now).min();
    }
    if asked_for {
        joined.server_ids = explained.server_ids;
    }
    joined
}

/// Counts what a commit wrote, off the threads that serve: a claim may hold many thousand requests.
async fn tell(witness: Arc<dyn Witness>, news: News, now: UnixNanos) -> anyhow::Result<()> {
    let telling = tokio::task::spawn_blocking(move || {
        news.count();
        witness.joined(&news.first, now);
    });
    telling.await.context("counting what was joined was cut short")
}

async fn write(mut claim: Claim, joined: Vec<JoinedTrace>, now: UnixNanos) -> anyhow::Result<News> {
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
        again.extend(trace.brings_back);
        let before = existing.remove(&trace.trace_id).unwrap_or_default();
        if let Some(kept) = supersede(&before, &mut trace.rows) {
            unchanged.extend(kept.into_iter().map(|client_span| (trace.trace_id, client_span)));
            changed.push(trace.trace_id);
            rows.append(&mut trace.rows);
            again.extend(trace.bears_upon);
        }
    }
    for trace_id in again {
        claim.requeue(*trace_id.as_bytes(), now);
    }
    let rows = claim.replace(&changed, rows).await?;
    claim.commit().await?;
    Ok(News::of(rows, &unchanged))
}
