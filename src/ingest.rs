//! From a listener to the commit: normalises what came and hands it to the store.

mod events;

use std::collections::{HashMap, HashSet};
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use metrics::counter;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;

use self::events::Gathered;
use crate::archive::{Archive, KeptLog};
use crate::receive::intake::{
    EventIntake, RawRecord, ReceivedRecord, RecordIntake, RecordOutcome, Refusal, RejectedRecord, SpanIntake,
    SpanOutcome,
};
use crate::store::{Arrival, Store, StoreError, SubmitError};
use model::{Alias, ClientRecord, Key, Side, StreamEvent, TraceId, UnixNanos};
use normalise::{self, Dialects, ExtraKeys, FieldError, Limits, ParsedRecord};

/// Spans from which a request is normalised on a thread of its own, so that it does not hold up the others.
const HEAVY_SPANS: usize = 2_000;
/// The same for the records or event lines of an upload.
const HEAVY_RECORDS: usize = 2_000;

/// Takes in what listeners receive.
#[derive(Clone)]
pub struct Ingest {
    store: Store,
    limits: Limits,
    dialects: Arc<Dialects>,
    archive: Option<Archive>,
    extra: Arc<ExtraKeys>,
}

impl Ingest {
    /// Into a store, within limits, with what the dialects read.
    pub fn new(store: Store, limits: Limits, dialects: Arc<Dialects>) -> Self {
        Self { store, limits, dialects, archive: None, extra: Arc::default() }
    }

    /// The same with an archive of what is committed of event lines, `extra` of them included.
    #[must_use]
    pub fn archived(self, archive: Archive, extra: ExtraKeys) -> Self {
        Self { archive: Some(archive), extra: Arc::new(extra), ..self }
    }

    async fn spans(&self, request: ExportTraceServiceRequest) -> Result<SpanOutcome, Refusal> {
        let scopes = request.resource_spans.iter().flat_map(|resource| &resource.scope_spans);
        let heavy = scopes.map(|scope| scope.spans.len()).sum::<usize>() > HEAVY_SPANS;
        let (limits, dialects) = (self.limits, Arc::clone(&self.dialects));
        let (arrivals, outcome) = read(heavy, move || arrivals(request, &limits, &dialects)).await?;
        if !arrivals.is_empty() {
            self.store.submit(arrivals).await?;
        }
        Ok(outcome)
    }

    async fn records(&self, received: Vec<ReceivedRecord>) -> Result<RecordOutcome, Refusal> {
        let (records, mut outcome) = read(received.len() > HEAVY_RECORDS, move || read_all(received)).await?;
        let arrivals: Vec<Arrival> = records.iter().flat_map(record_arrivals).collect();
        let fresh = self.fresh(arrivals).await?;
        outcome.accepted = fresh.iter().map(|arrival| u64::from(arrival.records)).sum();
        outcome.duplicates = records.len() as u64 - outcome.accepted;
        if !fresh.is_empty() {
            self.store.submit(fresh).await?;
        }
        count("tracejoin_records_total", &outcome);
        Ok(outcome)
    }

    async fn events(&self, raw: Vec<RawRecord>) -> Result<RecordOutcome, Refusal> {
        let extra = Arc::clone(&self.extra);
        let heavy = raw.len() > HEAVY_RECORDS;
        let (gathered, mut outcome) = read(heavy, move || events::gather(raw, &extra)).await?;
        let lines = |gathered: &[Gathered]| gathered.iter().map(Gathered::lines).sum::<u64>();
        let came = lines(&gathered);
        let fresh = self.fresh_lines(gathered).await?;
        outcome.accepted = lines(&fresh);
        outcome.duplicates += came - outcome.accepted;
        if !fresh.is_empty() {
            let (arrivals, logs): (Vec<Arrival>, Vec<KeptLog>) =
                fresh.into_iter().map(|row| (row.arrival, row.log)).unzip();
            self.store.submit(arrivals).await?;
            if let Some(archive) = &self.archive {
                archive.keep(UnixNanos::now(), logs);
            }
        }
        count("tracejoin_events_total", &outcome);
        Ok(outcome)
    }

    /// Rows without the lines that are stored already, however they were split when they came.
    async fn fresh_lines(&self, gathered: Vec<Gathered>) -> Result<Vec<Gathered>, Refusal> {
        let known = self.known(&gathered.iter().map(|row| &row.arrival).collect::<Vec<_>>()).await?;
        let rows: Vec<Gathered> =
            gathered.into_iter().zip(known).filter(|(_, known)| !known).map(|(row, _)| row).collect();
        let since = rows.iter().map(|row| row.arrival.since).min().flatten();
        let places: Vec<Key> = rows.iter().flat_map(Gathered::places).collect();
        let stored = in_time(self.store.lines(&places, since)).await?;
        if stored.is_empty() {
            return Ok(rows);
        }
        let mut held: HashMap<(Key, Option<String>), HashSet<StreamEvent>> = HashMap::new();
        for log in stored {
            held.entry((*log.trace_id.as_bytes(), log.request_id)).or_default().extend(log.lines);
        }
        let mut fresh = Vec::with_capacity(rows.len());
        for row in rows {
            let request_id = row.log.request_id.clone();
            let places: Vec<_> = row.places().map(|place| (place, request_id.clone())).collect();
            let held: HashSet<StreamEvent> =
                places.iter().filter_map(|place| held.get(place)).flatten().copied().collect();
            fresh.extend(row.without(&held));
        }
        Ok(fresh)
    }

    /// Those that are not there already, each once.
    async fn fresh(&self, arrivals: Vec<Arrival>) -> Result<Vec<Arrival>, Refusal> {
        let mut seen = HashSet::new();
        let mut candidates = arrivals;
        candidates.retain(|arrival| seen.insert((arrival.key, arrival.kind as i16, arrival.identity)));
        let known = self.known(&candidates.iter().collect::<Vec<_>>()).await?;
        Ok(candidates.into_iter().zip(known).filter(|(_, known)| !known).map(|(arrival, _)| arrival).collect())
    }

    async fn known(&self, asked: &[&Arrival]) -> Result<Vec<bool>, Refusal> {
        if self.store.is_unavailable() {
            return Err(unavailable("no commit reaches it"));
        }
        in_time(self.store.known(asked)).await
    }
}

/// What the store answers, as long as it does so before the sender gives up.
async fn in_time<Found>(asked: impl Future<Output = Result<Found, StoreError>>) -> Result<Found, Refusal> {
    match tokio::time::timeout(LOOK_UP_TIMEOUT, asked).await {
        Ok(found) => found.map_err(unavailable),
        Err(_) => Err(unavailable("it did not answer in time")),
    }
}

/// Reads what came; what is heavy on a thread of its own.
async fn read<Read: Send + 'static>(
    heavy: bool,
    read: impl FnOnce() -> Read + Send + 'static,
) -> Result<Read, Refusal> {
    if !heavy {
        return Ok(read());
    }
    let reading = tokio::task::spawn_blocking(read).await;
    reading.map_err(|_| Refusal::Invalid { message: "what was sent could not be read: please report it".to_owned() })
}

fn count(name: &'static str, outcome: &RecordOutcome) {
    counter!(name, "outcome" => "accepted").increment(outcome.accepted);
    counter!(name, "outcome" => "duplicate").increment(outcome.duplicates);
    counter!(name, "outcome" => "rejected").increment(outcome.rejected.len() as u64);
}

/// A record, and where it is found by its request id, if that is another place.
fn record_arrivals(record: &ClientRecord) -> impl Iterator<Item = Arrival> {
    let alias = record.request_id.as_deref().and_then(|request_id| {
        let alias = Alias { side: Side::Client, trace_id: record.trace_id };
        let elsewhere = record.trace_id != TraceId::of_request_id(request_id);
        elsewhere.then(|| Arrival::alias(request_id, alias, record.started_at))
    });
    std::iter::once(Arrival::record(record)).chain(alias)
}

/// The records of an upload, and what became of the others.
fn read_all(received: Vec<ReceivedRecord>) -> (Vec<ClientRecord>, RecordOutcome) {
    let mut outcome = RecordOutcome::default();
    let mut records = Vec::with_capacity(received.len());
    for (index, record) in received.into_iter().enumerate() {
        match read_one(record, &mut outcome.ignored_fields) {
            Ok(record) => records.push(record),
            Err(FieldError { field, reason }) => outcome.rejected.push(RejectedRecord { index, field, reason }),
        }
    }
    (records, outcome)
}

fn read_one(received: ReceivedRecord, ignored_fields: &mut u64) -> Result<ClientRecord, FieldError> {
    let sent = received.map_err(|reason| FieldError { field: String::new(), reason })?;
    let parsed = ParsedRecord::try_from(sent.body()?)?;
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
    tracing::warn!(%cause, "an upload waits for the database");
    Refusal::Unavailable {
        message: "the database is unavailable: send the same again later".to_owned(),
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

impl EventIntake for Ingest {
    fn accept(&self, lines: Vec<RawRecord>) -> BoxFuture<'_, Result<RecordOutcome, Refusal>> {
        Box::pin(self.events(lines))
    }
}

impl RecordIntake for Ingest {
    fn accept(&self, records: Vec<ReceivedRecord>) -> BoxFuture<'_, Result<RecordOutcome, Refusal>> {
        Box::pin(self.records(records))
    }
}
