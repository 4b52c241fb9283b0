//! Group commit: submits that come while a commit is under way share the next one.

mod group;
mod task;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::time::timeout;

use self::task::WriterTask;
use super::arrival::Arrival;
use super::error::SubmitError;
use super::options::StoreOptions;

/// Two keep the disk busy while the next group is encoded; more would only make smaller groups.
const WRITERS: usize = 2;
/// Beyond this an exporter's own deadline is near: it must be told to try again.
const SUBMIT_TIMEOUT: Duration = Duration::from_secs(4);
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// What a queued row takes beside its body.
const ROW_OVERHEAD: usize = 64;

/// One submit on its way.
struct Batch {
    arrivals: Vec<Arrival>,
    bytes: usize,
    reply: oneshot::Sender<Result<(), SubmitError>>,
    /// Its room in the queue, free again when the batch is answered.
    _room: OwnedSemaphorePermit,
}

/// The queue before the writers. They end when the last clone of this is gone.
#[derive(Clone)]
pub(super) struct Writer {
    sender: mpsc::UnboundedSender<Batch>,
    room: Arc<Semaphore>,
    capacity: usize,
    away: Arc<AtomicBool>,
}

impl Writer {
    /// Starts the writer tasks.
    pub(super) fn start(address: PgConnectOptions, options: &StoreOptions) -> Self {
        let (sender, receiver) = mpsc::unbounded_channel();
        let receiver = Arc::new(Mutex::new(receiver));
        let away = Arc::new(AtomicBool::new(false));
        for _ in 0..WRITERS {
            let task = WriterTask::new(address.clone(), options, receiver.clone(), away.clone());
            tokio::spawn(task.run());
        }
        // A batch takes its permits as a u32.
        let capacity = options.queue_bytes.min(u32::MAX as usize);
        Self { sender, room: Arc::new(Semaphore::new(capacity)), capacity, away }
    }

    /// See [`super::Store::is_unavailable`].
    pub(super) fn is_unavailable(&self) -> bool {
        self.away.load(Ordering::Relaxed)
    }

    /// See [`super::Store::submit`].
    pub(super) async fn submit(&self, arrivals: Vec<Arrival>) -> Result<(), SubmitError> {
        if arrivals.is_empty() {
            return Ok(());
        }
        let answer = self.enqueue_and_wait(arrivals).await;
        if let Err(refusal) = &answer {
            metrics::counter!("tracejoin_submits_refused_total", "reason" => refusal.reason()).increment(1);
        }
        self.measure_queue();
        answer
    }

    async fn enqueue_and_wait(&self, arrivals: Vec<Arrival>) -> Result<(), SubmitError> {
        if self.is_unavailable() {
            return Err(SubmitError::unavailable("the database is unavailable".to_owned()));
        }
        let bytes: usize = arrivals.iter().map(|arrival| arrival.body.len() + ROW_OVERHEAD).sum();
        let room = self.reserve(bytes)?;
        let (reply, answer) = oneshot::channel();
        let batch = Batch { arrivals, bytes, reply, _room: room };
        if self.sender.send(batch).is_err() {
            return Err(SubmitError::unavailable("the writers have stopped".to_owned()));
        }
        self.measure_queue();
        match timeout(SUBMIT_TIMEOUT, answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(SubmitError::unavailable("the writers have stopped".to_owned())),
            Err(_) => {
                let waited = SUBMIT_TIMEOUT.as_secs();
                Err(SubmitError::unavailable(format!("the database did not commit within {waited} s")))
            }
        }
    }

    fn reserve(&self, bytes: usize) -> Result<OwnedSemaphorePermit, SubmitError> {
        let capacity = self.capacity;
        if bytes > capacity {
            return Err(SubmitError::Invalid {
                message: format!(
                    "the batch takes {bytes} bytes, more than the whole ingest queue of {capacity} bytes \
                     (--ingest-queue-bytes): send smaller batches"
                ),
            });
        }
        self.room.clone().try_acquire_many_owned(bytes as u32).map_err(|_| SubmitError::Overloaded {
            message: format!("the ingest queue is full: {capacity} bytes (--ingest-queue-bytes) wait for their commit"),
            retry_after: RETRY_AFTER,
        })
    }

    fn measure_queue(&self) {
        let waiting = self.capacity - self.room.available_permits();
        metrics::gauge!("tracejoin_ingest_queue_bytes").set(waiting as f64);
    }
}

impl SubmitError {
    fn unavailable(message: String) -> Self {
        Self::Unavailable { message, retry_after: RETRY_AFTER }
    }

    fn reason(&self) -> &'static str {
        match self {
            Self::Overloaded { .. } => "overloaded",
            Self::Unavailable { .. } => "unavailable",
            Self::Invalid { .. } => "invalid",
        }
    }
}
