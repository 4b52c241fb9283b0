//! Records on their way to the server, while requests go on.

use std::time::Duration;

use anyhow::Context;
use bytes::Bytes;
use reqwest::StatusCode;
use serde::Deserialize;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::cli::api::{Api, refusal};
use crate::cli::import::upload::Uploader;
use crate::cli::record_line::RecordLine;

/// Records that wait while the server is away. What comes on top is counted as not delivered.
const WAITING: usize = 10_000;
const BATCH: usize = 500;
/// Between two series of tries.
const PAUSE: Duration = Duration::from_secs(1);

/// What became of the records.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Delivered {
    /// Taken by the server, those that it had already among them.
    pub taken: u64,
    /// Refused for good.
    pub refused: u64,
    /// Not delivered.
    pub lost: u64,
    /// The last reason for a refusal or a loss.
    pub reason: Option<String>,
}

/// Delivers records in the order in which they come.
pub struct Delivery {
    records: mpsc::Sender<Vec<u8>>,
    task: JoinHandle<Delivered>,
    overflow: u64,
}

/// The endpoint's answer.
#[derive(Deserialize)]
struct Answer {
    accepted: u64,
    duplicates: u64,
    rejected: Vec<Rejected>,
}

#[derive(Deserialize)]
struct Rejected {
    field: String,
    reason: String,
}

impl Delivery {
    /// Starts to deliver; `retry_for` is how long the last records are tried when the end has come.
    ///
    /// # Errors
    /// Where no HTTP client can be made.
    pub fn start(api: &Api, retry_for: Duration) -> anyhow::Result<Self> {
        let uploader = Uploader::new(api.url(&["api", "v1", "records"])?, "application/x-ndjson", retry_for)?;
        let (records, waiting) = mpsc::channel(WAITING);
        Ok(Self { records, task: tokio::spawn(deliver(uploader, waiting)), overflow: 0 })
    }

    /// Takes a record, which is delivered as soon as it can be.
    ///
    /// # Errors
    /// A record that cannot be written as JSON.
    pub fn add(&mut self, record: &RecordLine) -> anyhow::Result<()> {
        if self.records.try_send(serde_json::to_vec(record)?).is_err() {
            self.overflow += 1;
        }
        Ok(())
    }

    /// Delivers what is left and says what became of all.
    ///
    /// # Errors
    /// Where delivering broke down, which it never should.
    pub async fn finish(self) -> anyhow::Result<Delivered> {
        drop(self.records);
        let mut delivered = self.task.await.context("the delivery of records broke down")?;
        delivered.lost += self.overflow;
        Ok(delivered)
    }
}

/// While probing goes on a batch is tried for ever; after that once more.
async fn deliver(uploader: Uploader, mut waiting: mpsc::Receiver<Vec<u8>>) -> Delivered {
    let mut delivered = Delivered::default();
    let mut batch = Vec::new();
    while waiting.recv_many(&mut batch, BATCH).await > 0 {
        let body = Bytes::from(batch.join(&b'\n'));
        let count = batch.len() as u64;
        batch.clear();
        loop {
            let closing = waiting.is_closed();
            match send(&uploader, body.clone(), &mut delivered).await {
                Ok(()) => break,
                Err(error) if closing => {
                    delivered.lost += count + remaining(&mut waiting);
                    delivered.reason = Some(format!("{error:#}"));
                    return delivered;
                }
                Err(error) => {
                    eprintln!("tracejoin: records wait: {error:#}");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }
    delivered
}

async fn send(uploader: &Uploader, body: Bytes, delivered: &mut Delivered) -> anyhow::Result<()> {
    let count = body.split(|byte| *byte == b'\n').count() as u64;
    let response = uploader.send(body).await?;
    if !matches!(response.status(), StatusCode::OK | StatusCode::BAD_REQUEST) {
        delivered.refused += count;
        delivered.reason = Some(refusal(response).await);
        return Ok(());
    }
    let answer: Answer = response.json().await.context("the server did not answer as expected")?;
    delivered.taken += answer.accepted + answer.duplicates;
    delivered.refused += answer.rejected.len() as u64;
    if let Some(rejected) = answer.rejected.last() {
        delivered.reason = Some(format!("{}: {}", rejected.field, rejected.reason));
    }
    Ok(())
}

fn remaining(waiting: &mut mpsc::Receiver<Vec<u8>>) -> u64 {
    let mut count = 0;
    while waiting.try_recv().is_ok() {
        count += 1;
    }
    count
}
