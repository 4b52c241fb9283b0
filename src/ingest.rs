//! From a listener to the commit: normalises what came and hands it to the store.

use std::collections::HashSet;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use metrics::counter;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;

use crate::model::{ClientRecord, TraceId, UnixNanos};
use crate::normalise::{self, Dialects, Limits};
use crate::receive::intake::{
    RawRecord, RecordIntake, RecordOutcome, Refusal, RejectedRecord, SpanIntake, SpanOutcome,
};
use crate::store::{Arrival, Store, SubmitError};

/// Spans from which a request is normalised on a thread of its own, so that it does not hold up the others.
const HEAVY_SPANS: usize = 2_000;
/// The same for the records of an upload.
const HEAVY_RECORDS: usize = 2_000;

/// Takes in what listeners receive.
#[derive(Clone)]
pub struct Ingest {
    store: Store,
    limits: Limits,
    dialects: Arc<Dialects>,
}

impl Ingest {
    /// Into a store, within limits, with what the dialects read.
    pub fn new(store: Store, limits: Limits, dialects: Arc<Dialects>) -> Self {
        Self { store, limits, dialects }
    }

    async fn spans(&self, request: ExportTraceServiceRequest) -> Result<SpanOutcome, Refusal> {
        let scopes = request.resource_spans.iter().flat_map(|resource| &resource.scope_spans);
        let heavy = scopes.map(|scope| scope.spans.len()).sum::<usize>() > HEAVY_SPANS;
        let (limits, dialects) = (self.limits, Arc::clone(&self.dialects));
        let work = move || arrivals(request, &limits, &dialects);
        let (arrivals, outcome) = if heavy {
            tokio::task::spawn_blocking(work).await.map_err(|_| Refusal::Invalid {
                message: "this request could not be read: please report it".to_owned(),
            })?
        } else {
            work()
        };
        if !arrivals.is_empty() {
            self.store.submit(arrivals).await?;
        }
        Ok(outcome)
    }

    async fn records(&self, raw: Vec<RawRecord>) -> Result<RecordOutcome, Refusal> {
        let (records, mut outcome) = if raw.len() > HEAVY_RECORDS {
            tokio::task::spawn_blocking(move || read_all(raw)).await.map_err(|_| Refusal::Invalid {
                message: "this upload could not be read: please report it".to_owned(),
            })?
        } else {
            read_all(raw)
        };
        let fresh = self.fresh(&records).await?;
        outcome.accepted = fresh.len() as u64;
        outcome.duplicates = (records.len() - fresh.len()) as u64;
        if !fresh.is_empty() {
            self.store.submit(fresh).await?;
        }
        counter!("tracejoin_records_total", "outcome" => "accepted").increment(outcome.accepted);
        counter!("tracejoin_records_total", "outcome" => "duplicate").increment(outcome.duplicates);
        counter!("tracejoin_records_total", "outcome" => "rejected").increment(outcome.rejected.len() as u64);
        Ok(outcome)
    }

    /// The records that are not there already.
    async fn fresh(&self, records: &[ClientRecord]) -> Result<Vec<Arrival>, Refusal> {
        let mut seen = HashSet::new();
        let mut candidates = Vec::with_capacity(records.len());
        for record in records {
            let arrival = Arrival::record(record);
            if seen.insert((arrival.key, arrival.identity)) {
                candidates.push((record, arrival));
            }
        }
        let asked: Vec<_> =
            candidates.iter().map(|(record, arrival)| (record.trace_id, arrival.identity, record.started_at)).collect();
        let known = self.known(&asked).await?;
        let fresh = candidates.into_iter().zip(known).filter(|(_, known)| !known);
        Ok(fresh.map(|((_, arrival), _)| arrival).collect())
    }

    async fn known(&self, asked: &[(TraceId, i64, Option<UnixNanos>)]) -> Result<Vec<bool>, Refusal> {
        if self.store.is_away() {
            return Err(unavailable("no commit reaches it"));
        }
        match tokio::time::timeout(LOOK_UP_TIMEOUT, self.store.known_records(asked)).await {
            Ok(known) => known.map_err(unavailable),
            Err(_) => Err(unavailable("it did not answer in time")),
        }
    }
}

/// The records of an upload, and what became of the others.
fn read_all(raw: Vec<RawRecord>) -> (Vec<ClientRecord>, RecordOutcome) {
    let mut outcome = RecordOutcome::default();
    let mut records = Vec::with_capacity(raw.len());
    for (index, raw) in raw.into_iter().enumerate() {
        match read(raw, &mut outcome.ignored_fields) {
            Ok(record) => records.push(record),
            Err((field, reason)) => outcome.rejected.push(RejectedRecord { index, field, reason }),
        }
    }
    (records, outcome)
}

fn read(raw: RawRecord, ignored_fields: &mut u64) -> Result<ClientRecord, (String, String)> {
    let raw = raw.map_err(|reason| (String::new(), reason))?;
    let parsed = normalise::record(&raw).map_err(|error| (error.field, error.reason))?;
    *ignored_fields += parsed.ignored_fields;
    Ok(parsed.record)
}

fn arrivals(request: ExportTraceServiceRequest, limits: &Limits, dialects: &Dialects) -> (Vec<Arrival>, SpanOutcome) {
    let normalised = normalise::fragments(request, limits, dialects);
    let outcome = SpanOutcome { rejected: normalised.rejected_spans(), message: normalised.message };
    for (reason, count) in normalised.rejected {
        counter!("tracejoin_spans_rejected_total", "reason" => reason).increment(count);
    }
    counter!("tracejoin_spans_folded_total").increment(normalised.folded);
    counter!("tracejoin_attributes_dropped_total").increment(normalised.dropped_attributes);
    let fragments = normalised.fragments.iter();
    (fragments.map(|(trace_id, fragment)| Arrival::spans(*trace_id, fragment)).collect(), outcome)
}

/// What a sender waits before it asks a database again that is away.
const RETRY_AFTER: Duration = Duration::from_secs(2);

/// How long records are looked for among those stored: as long as a commit may take.
const LOOK_UP_TIMEOUT: Duration = Duration::from_secs(4);

fn unavailable(cause: impl Display) -> Refusal {
    tracing::warn!(%cause, "records wait for the database");
    Refusal::Unavailable {
        message: "the database is away for now: send the same records again later".to_owned(),
        retry_after: RETRY_AFTER,
    }
}

impl From<SubmitError> for Refusal {
    fn from(error: SubmitError) -> Self {
        match error {
            SubmitError::Overloaded { message, retry_after } => Self::Overloaded { message, retry_after },
            SubmitError::Unavailable { message, retry_after } => Self::Unavailable { message, retry_after },
            SubmitError::Invalid { message } => Self::Invalid { message },
        }
    }
}

impl SpanIntake for Ingest {
    fn accept(&self, request: ExportTraceServiceRequest) -> BoxFuture<'_, Result<SpanOutcome, Refusal>> {
        Box::pin(self.spans(request))
    }
}

impl RecordIntake for Ingest {
    fn accept(&self, records: Vec<RawRecord>) -> BoxFuture<'_, Result<RecordOutcome, Refusal>> {
        Box::pin(self.records(records))
    }
}
