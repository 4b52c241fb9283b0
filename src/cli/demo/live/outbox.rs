//! What has ended, on its way to a server that may be unavailable for a while.

use std::time::Duration;

use anyhow::Context;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_client::TraceServiceClient;
use opentelemetry_proto::tonic::trace::v1::Span;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tonic::transport::Channel;

use super::traffic::Ended;
use crate::cli::api::Api;
use crate::cli::demo::send::{export, upload_records};
use crate::cli::demo::spans::Process;
use crate::cli::import::upload::Uploader;
use crate::cli::record_line::RecordLine;

/// How many batches wait for a server that is unavailable; those after them are dropped.
const WAITING: usize = 256;
/// How long one batch is tried.
const RETRY_FOR: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_secs(1);
/// After this an exporter gives up an attempt, as stock ones do.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long what waits may take at the end.
const FLUSH: Duration = Duration::from_secs(10);

/// An exporter of spans and an uploader of records, each sending one batch after another.
pub struct Outbox {
    spans: mpsc::Sender<Vec<(Process, Span)>>,
    records: mpsc::Sender<Vec<RecordLine>>,
    senders: JoinSet<()>,
}

impl Outbox {
    /// Connects.
    ///
    /// # Errors
    /// Where one of the two endpoints does not answer.
    pub async fn open(otlp: &str, api: &Api) -> anyhow::Result<Self> {
        api.get(api.url(&["readyz"])?, "*/*").await?;
        let endpoint = Channel::from_shared(format!("http://{otlp}")).context("no address of OTLP/gRPC")?;
        let channel = endpoint.timeout(EXPORT_TIMEOUT).connect().await;
        let channel = channel.with_context(|| format!("OTLP/gRPC does not answer at {otlp}"))?;
        let uploader = Uploader::new(api.url(&["api", "v1", "records"])?, "application/json", RETRY_FOR)?;
        let (spans, waiting_spans) = mpsc::channel(WAITING);
        let (records, waiting_records) = mpsc::channel(WAITING);
        let mut senders = JoinSet::new();
        senders.spawn(send_spans(TraceServiceClient::new(channel), waiting_spans));
        senders.spawn(send_records(uploader, waiting_records));
        Ok(Self { spans, records, senders })
    }

    /// Hands on what has ended, without waiting for it to be taken.
    pub fn send(&self, ended: Ended) {
        if !ended.spans.is_empty() && self.spans.try_send(ended.spans).is_err() {
            tracing::warn!("spans were dropped: too many wait for the server");
        }
        if !ended.records.is_empty() && self.records.try_send(ended.records).is_err() {
            tracing::warn!("records were dropped: too many wait for the server");
        }
    }

    /// Waits until what was handed on is taken, or no longer worth waiting for.
    pub async fn close(self) {
        let Self { spans, records, senders } = self;
        drop((spans, records));
        if timeout(FLUSH, senders.join_all()).await.is_err() {
            tracing::warn!("the last requests were dropped: the server does not take them");
        }
    }
}

async fn send_spans(mut client: TraceServiceClient<Channel>, mut waiting: mpsc::Receiver<Vec<(Process, Span)>>) {
    while let Some(batch) = waiting.recv().await {
        let request = export(&batch);
        let deadline = Instant::now() + RETRY_FOR;
        loop {
            match client.export(request.clone()).await.map(tonic::Response::into_inner) {
                Ok(answer) => {
                    if let Some(partial) = answer.partial_success {
                        tracing::warn!(refused = partial.rejected_spans, reason = partial.error_message, "spans");
                    }
                    break;
                }
                Err(_) if Instant::now() < deadline => sleep(PAUSE).await,
                Err(status) => {
                    tracing::warn!(spans = batch.len(), %status, "a batch of spans was dropped");
                    break;
                }
            }
        }
    }
}

async fn send_records(uploader: Uploader, mut waiting: mpsc::Receiver<Vec<RecordLine>>) {
    while let Some(records) = waiting.recv().await {
        if let Err(error) = upload_records(&uploader, &records).await {
            tracing::warn!(records = records.len(), %error, "records were dropped");
        }
    }
}
