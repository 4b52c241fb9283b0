//! A writer: takes what waits, commits it, answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sqlx::Connection;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::{Mutex, mpsc};
use tokio::time::{Instant, sleep, timeout};

use super::super::arrival::Arrival;
use super::super::error::{Cause, SubmitError};
use super::super::options::StoreOptions;
use super::super::partition;
use super::super::session::prepare_session;
use super::{Batch, group};
use model::UnixNanos;

/// A group ends at whichever comes first.
const MAX_GROUP_BYTES: usize = 16 << 20;
const MAX_GROUP_ROWS: usize = 20_000;
/// A commit that takes longer is given up together with its connection: nobody waits for it any more.
const COMMIT_TIMEOUT: Duration = Duration::from_secs(15);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
const FIRST_PROBE: Duration = Duration::from_millis(100);
const SLOWEST_PROBE: Duration = Duration::from_secs(1);

pub(super) struct WriterTask {
    address: PgConnectOptions,
    settle: Duration,
    receiver: Arc<Mutex<mpsc::UnboundedReceiver<Batch>>>,
    away: Arc<AtomicBool>,
    connection: Option<PgConnection>,
}

/// Why a group was not committed.
struct Failure {
    cause: Cause,
    message: String,
}

impl WriterTask {
    pub(super) fn new(
        address: PgConnectOptions,
        options: &StoreOptions,
        receiver: Arc<Mutex<mpsc::UnboundedReceiver<Batch>>>,
        away: Arc<AtomicBool>,
    ) -> Self {
        Self { address, settle: options.settle, receiver, away, connection: None }
    }

    /// Runs until no submitter is left.
    pub(super) async fn run(mut self) {
        while let Some(batches) = self.next_group().await {
            self.write(batches).await;
            if self.connection.is_none() {
                self.reconnect().await;
            }
        }
    }

    /// Waits for a batch, then takes all that wait behind it.
    async fn next_group(&self) -> Option<Vec<Batch>> {
        let mut receiver = self.receiver.lock().await;
        let first = receiver.recv().await?;
        let mut bytes = first.bytes;
        let mut rows = first.arrivals.len();
        let mut batches = vec![first];
        while bytes < MAX_GROUP_BYTES && rows < MAX_GROUP_ROWS {
            let Ok(batch) = receiver.try_recv() else {
                break;
            };
            bytes += batch.bytes;
            rows += batch.arrivals.len();
            batches.push(batch);
        }
        // Whoever gave up waiting has been told so.
        batches.retain(|batch| !batch.reply.is_closed());
        Some(batches)
    }

    /// Commits the batches, together where possible. A group with refused data is halved until the guilty batch is
    /// alone.
    async fn write(&mut self, batches: Vec<Batch>) {
        let mut groups = vec![batches];
        while let Some(mut batches) = groups.pop() {
            let answer = match self.commit_with_remedies(&batches).await {
                Ok(()) => Ok(()),
                Err(failure) if failure.cause == Cause::Data && batches.len() > 1 => {
                    groups.push(batches.split_off(batches.len() / 2));
                    groups.push(batches);
                    continue;
                }
                Err(failure) => Err(failure.refusal()),
            };
            for batch in batches {
                // A submitter that gave up meanwhile needs no answer.
                drop(batch.reply.send(answer.clone()));
            }
        }
    }

    /// Commits once, and a second time where something could be repaired in between. A second commit of what the first
    /// one stored after all is harmless: joining drops duplicates.
    async fn commit_with_remedies(&mut self, batches: &[Batch]) -> Result<(), Failure> {
        if batches.is_empty() {
            return Ok(());
        }
        let fresh = self.connection.is_none();
        let failure = match self.commit(batches).await {
            Ok(()) => return Ok(()),
            Err(failure) => failure,
        };
        match failure.cause {
            Cause::MissingPartition => {
                let connection = self.connected().await?;
                partition::ensure(connection, UnixNanos::now()).await.map_err(|error| Failure::of(&error))?;
                self.commit(batches).await
            }
            // The connection may have died long before, while nothing was written.
            Cause::Connection if !fresh => self.commit(batches).await,
            _ => Err(failure),
        }
    }

    async fn commit(&mut self, batches: &[Batch]) -> Result<(), Failure> {
        let settle = self.settle;
        let arrivals: Vec<&Arrival> = batches.iter().flat_map(|batch| &batch.arrivals).collect();
        let connection = self.connected().await?;
        let begun = Instant::now();
        let committing = group::commit(connection, &arrivals, UnixNanos::now(), settle);
        let outcome = match timeout(COMMIT_TIMEOUT, committing).await {
            Ok(outcome) => outcome.map_err(|error| Failure::of(&error)),
            Err(_) => Err(Failure::server(format!("no commit within {} s", COMMIT_TIMEOUT.as_secs()))),
        };
        metrics::histogram!("tracejoin_commit_seconds").record(begun.elapsed());
        match &outcome {
            Ok(()) => {
                metrics::counter!("tracejoin_commits_total").increment(1);
                metrics::counter!("tracejoin_committed_rows_total").increment(arrivals.len() as u64);
            }
            Err(failure) => {
                // A failed COPY may leave the connection out of step with the server.
                self.connection = None;
                metrics::counter!("tracejoin_commits_failed_total").increment(1);
                tracing::warn!(error = failure.message, rows = arrivals.len(), "a commit failed");
            }
        }
        outcome
    }

    async fn connected(&mut self) -> Result<&mut PgConnection, Failure> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        Ok(self.connection.insert(connection))
    }

    async fn connect(&self) -> Result<PgConnection, Failure> {
        let connecting = async {
            let mut connection = PgConnection::connect_with(&self.address).await?;
            prepare_session(&mut connection).await?;
            Ok(connection)
        };
        match timeout(CONNECT_TIMEOUT, connecting).await {
            Ok(connected) => connected.map_err(|error: sqlx::Error| Failure::of(&error)),
            Err(_) => Err(Failure::server(format!("no connection within {} s", CONNECT_TIMEOUT.as_secs()))),
        }
    }

    /// Tries until the database is back. Meanwhile new submits are refused at once, and so is what waits.
    async fn reconnect(&mut self) {
        let mut pause = FIRST_PROBE;
        loop {
            match self.connect().await {
                Ok(connection) => {
                    self.connection = Some(connection);
                    if self.away.swap(false, Ordering::Relaxed) {
                        tracing::info!("the database is back");
                    }
                    return;
                }
                Err(failure) => {
                    if !self.away.swap(true, Ordering::Relaxed) {
                        tracing::warn!(error = failure.message, "the database is unavailable");
                    }
                    if self.refuse_waiting(&failure).is_err() {
                        return;
                    }
                }
            }
            sleep(pause).await;
            pause = (2 * pause).min(SLOWEST_PROBE);
        }
    }

    /// An error says that no submitter is left.
    fn refuse_waiting(&self, failure: &Failure) -> Result<(), TryRecvError> {
        // Where another writer holds the receiver, it answers what waits.
        let Ok(mut receiver) = self.receiver.try_lock() else {
            return Ok(());
        };
        loop {
            match receiver.try_recv() {
                // A submitter that gave up meanwhile needs no answer.
                Ok(batch) => drop(batch.reply.send(Err(failure.refusal()))),
                Err(TryRecvError::Empty) => return Ok(()),
                Err(gone @ TryRecvError::Disconnected) => return Err(gone),
            }
        }
    }
}

impl Failure {
    fn of(error: &sqlx::Error) -> Self {
        Self { cause: Cause::of(error), message: error.to_string() }
    }

    fn server(message: String) -> Self {
        Self { cause: Cause::Server, message }
    }

    /// What the submitter reads. The database's own text stays in the log.
    fn refusal(&self) -> SubmitError {
        match self.cause {
            Cause::Data => {
                let message = "the database refuses this data: the server's log names the reason".to_owned();
                SubmitError::Invalid { message }
            }
            _ => SubmitError::unavailable("the database cannot commit now: send the same again later".to_owned()),
        }
    }
}
