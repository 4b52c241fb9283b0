//! Sends simulated calls as their servers and clients would.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use bytes::Bytes;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_client::TraceServiceClient;
use opentelemetry_proto::tonic::trace::v1::Span;
use rand::seq::SliceRandom;
use serde_json::Value;
use tonic::transport::Channel;

use super::gateway::Call;
use super::spans::{Process, exported, spans};
use super::{Identity, record};
use crate::cli::api::Api;
use crate::cli::import::upload::Uploader;
use crate::cli::record_line::RecordLine;
use model::UnixNanos;

/// An exporter's usual batch.
const SPANS_A_BATCH: usize = 512;
const RECORDS_AN_UPLOAD: usize = 500;
const RETRY_FOR: Duration = Duration::from_secs(30);

/// What is sent.
pub struct Traffic<'a> {
    pub calls: &'a [Call],
    /// The start of the play.
    pub start: UnixNanos,
    /// The name of the run.
    pub run: &'a str,
}

pub struct Sent {
    pub spans: usize,
    /// Client records.
    pub records: usize,
    /// How long it took until all of it was committed.
    pub took: Duration,
}

impl Traffic<'_> {
    /// Sends everything, and returns when all of it is acknowledged.
    pub async fn send(&self, otlp: SocketAddr, api: &Api) -> anyhow::Result<Sent> {
        let started = Instant::now();
        let (spans, records) = self.made();
        let sent = (spans.len(), records.len());
        tokio::try_join!(send_spans(otlp, spans), send_records(api, records))?;
        Ok(Sent { spans: sent.0, records: sent.1, took: started.elapsed() })
    }

    fn made(&self) -> (Vec<(Process, Span)>, Vec<RecordLine>) {
        let (mut all_spans, mut records) = (Vec::new(), Vec::new());
        for call in self.calls {
            let identity = Identity::random();
            records.push(record::record(call, &identity, self.start, self.run));
            if !call.spans_lost {
                all_spans.extend(spans(call, &identity, self.start));
            }
        }
        // Exporters do not send a trace's spans together, or in order.
        for stretch in all_spans.chunks_mut(4 * SPANS_A_BATCH) {
            stretch.shuffle(&mut rand::rng());
        }
        (all_spans, records)
    }
}

async fn send_spans(otlp: SocketAddr, spans: Vec<(Process, Span)>) -> anyhow::Result<()> {
    let channel =
        Channel::from_shared(format!("http://{otlp}"))?.connect().await.context("OTLP/gRPC does not answer")?;
    let mut client = TraceServiceClient::new(channel);
    for batch in spans.chunks(SPANS_A_BATCH) {
        let answer = client.export(export(batch)).await.context("OTLP/gRPC refused the demo's spans")?.into_inner();
        if let Some(partial) = answer.partial_success {
            bail!("{} of the demo's spans were refused: {}", partial.rejected_spans, partial.error_message);
        }
    }
    Ok(())
}

/// What the gateway and the engine export of these spans.
pub fn export(batch: &[(Process, Span)]) -> ExportTraceServiceRequest {
    let of = |process| batch.iter().filter(move |(from, _)| *from == process).map(|(_, span)| span.clone());
    let resource_spans = [Process::Gateway, Process::Engine].map(|process| exported(process, of(process).collect()));
    ExportTraceServiceRequest { resource_spans: resource_spans.into() }
}

async fn send_records(api: &Api, records: Vec<RecordLine>) -> anyhow::Result<()> {
    let uploader = Uploader::new(api.url(&["api", "v1", "records"])?, "application/json", RETRY_FOR)?;
    for upload in records.chunks(RECORDS_AN_UPLOAD) {
        upload_records(&uploader, upload).await?;
    }
    Ok(())
}

/// Sends records until the server has taken all of them.
///
/// # Errors
/// Where it stays away, or refuses one.
pub async fn upload_records(uploader: &Uploader, records: &[RecordLine]) -> anyhow::Result<()> {
    let response = uploader.send(Bytes::from(serde_json::to_vec(records)?)).await?;
    let answer: Value = response.json().await.context("the server did not answer as expected")?;
    let accepted = answer["accepted"].as_u64().unwrap_or(0) as usize;
    let sent = records.len();
    ensure!(accepted == sent, "{accepted} of {sent} of the demo's records were taken: {answer}");
    Ok(())
}
