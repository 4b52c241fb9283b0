//! Exporters that wait for each acknowledgement, each with its uploader of client records.

use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use bytes::{Buf, BufMut, Bytes};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use prost::Message;
use reqwest::header::CONTENT_TYPE;
use tokio::task::JoinSet;
use tonic::client::Grpc;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};

use super::load::{Load, SPANS_PER_BATCH, TRACES};
use super::server::Addresses;

const EXPORT: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";

/// Pause after a refusal that asks to try again.
const REFUSED: Duration = Duration::from_millis(100);

/// How long and how fast to send.
#[derive(Clone, Copy)]
pub struct Plan {
    pub exporters: usize,
    pub length: Duration,
    /// Requests a second of all exporters together; without it everybody sends as fast as answers come.
    pub rate: Option<f64>,
}

/// What was sent and acknowledged.
#[derive(Default)]
pub struct Sent {
    pub requests: u64,
    pub spans: u64,
    /// Answers that asked to try again.
    pub refused: u64,
    /// From when a batch was due until its acknowledgement.
    pub waits: Vec<Duration>,
    /// Some of the traces.
    pub samples: Vec<String>,
}

/// Sends until the plan's time is over and everything is acknowledged. Tells when it began, too.
pub async fn send(addresses: &Addresses, plan: Plan) -> anyhow::Result<(Sent, Instant)> {
    let mut connected = Vec::new();
    for _ in 0..plan.exporters {
        connected.push(Lane::connect(addresses).await?);
    }
    let begun = Instant::now();
    let mut lanes = JoinSet::new();
    for (number, lane) in connected.into_iter().enumerate() {
        lanes.spawn(lane.run(plan, number, begun));
    }
    let mut total = Sent::default();
    while let Some(sent) = lanes.join_next().await {
        let sent = sent.context("a lane panicked")??;
        total.requests += sent.requests;
        total.spans += sent.spans;
        total.refused += sent.refused;
        total.waits.extend(sent.waits);
        total.samples.extend(sent.samples);
    }
    Ok((total, begun))
}

/// One exporter and its uploader.
struct Lane {
    load: Load,
    spans: Grpc<Channel>,
    records: reqwest::Client,
    records_url: String,
}

impl Lane {
    async fn connect(addresses: &Addresses) -> anyhow::Result<Self> {
        let endpoint = Endpoint::from_shared(format!("http://{}", addresses.otlp_grpc))?;
        let channel = endpoint.connect().await.context("the OTLP endpoint is closed")?;
        Ok(Self {
            load: Load::new(chrono::Utc::now()),
            spans: Grpc::new(channel),
            records: reqwest::Client::new(),
            records_url: format!("http://{}/api/v1/records", addresses.http),
        })
    }

    async fn run(self, plan: Plan, number: usize, begun: Instant) -> anyhow::Result<Sent> {
        let mut sent = Sent::default();
        let spacing = plan.rate.map(|rate| Duration::from_secs_f64((TRACES * plan.exporters) as f64 / rate));
        // Exporters are not in step with one another.
        let mut due = begun + spacing.unwrap_or_default().mul_f64(number as f64 / plan.exporters as f64);
        loop {
            self.cycle(spacing.map(|spacing| (due, spacing)), &mut sent).await?;
            due += spacing.unwrap_or_default();
            if begun.elapsed() >= plan.length {
                return Ok(sent);
            }
        }
    }

    /// Sends one cycle: the batches one after the other, the records beside them.
    async fn cycle(&self, pace: Option<(Instant, Duration)>, sent: &mut Sent) -> anyhow::Result<()> {
        if let Some((due, _)) = pace {
            tokio::time::sleep_until(due.into()).await;
        }
        let cycle = self.load.fresh();
        let batches = cycle.batches.len() as u32;
        let spans = async {
            let mut refused = 0;
            let mut waits = Vec::new();
            for (number, batch) in (0..).zip(cycle.batches) {
                let due = pace.map(|(due, spacing)| due + spacing * number / batches);
                if let Some(due) = due {
                    tokio::time::sleep_until(due.into()).await;
                }
                let begun = due.unwrap_or_else(Instant::now);
                refused += self.export(batch).await?;
                waits.push(begun.elapsed());
            }
            anyhow::Ok((refused, waits))
        };
        let ((refused_spans, waits), refused_records) = tokio::try_join!(spans, self.upload(cycle.records))?;
        sent.requests += TRACES as u64;
        sent.spans += u64::from(batches) * SPANS_PER_BATCH as u64;
        sent.refused += refused_spans + refused_records;
        sent.waits.extend(waits);
        sent.samples.push(cycle.sample);
        Ok(())
    }

    /// Sends a batch until it is taken; returns how often it was refused.
    async fn export(&self, batch: Bytes) -> anyhow::Result<u64> {
        let mut refused = 0;
        let mut client = self.spans.clone();
        loop {
            client.ready().await?;
            let request = Request::new(batch.clone());
            match client.unary(request, EXPORT.parse()?, Raw).await {
                Ok(answer) if answer.get_ref().partial_success.is_none() => return Ok(refused),
                Ok(answer) => bail!("spans were rejected: {:?}", answer.into_inner().partial_success),
                Err(status) if matches!(status.code(), Code::Unavailable | Code::ResourceExhausted) => refused += 1,
                Err(status) => bail!("a batch was refused for good: {status}"),
            }
            tokio::time::sleep(REFUSED).await;
        }
    }

    /// The same for client records.
    async fn upload(&self, records: Bytes) -> anyhow::Result<u64> {
        let mut refused = 0;
        loop {
            let post = self.records.post(&self.records_url).header(CONTENT_TYPE, "application/x-ndjson");
            let answer = post.body(records.clone()).send().await?;
            let status = answer.status();
            let body: serde_json::Value = answer.json().await.unwrap_or_default();
            match status.as_u16() {
                // A second try may find that the first was stored after all.
                200 if accepted(&body) == TRACES as u64 => return Ok(refused),
                429 | 503 => refused += 1,
                _ => bail!("records were refused: {status} {body}"),
            }
            tokio::time::sleep(REFUSED).await;
        }
    }
}

fn accepted(answer: &serde_json::Value) -> u64 {
    ["accepted", "duplicates"].iter().filter_map(|count| answer[count].as_u64()).sum()
}

/// Sends bodies that are encoded already.
#[derive(Clone, Copy)]
struct Raw;

impl Codec for Raw {
    type Encode = Bytes;
    type Decode = ExportTraceServiceResponse;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        *self
    }

    fn decoder(&mut self) -> Self {
        *self
    }
}

impl Encoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, body: Bytes, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put(body);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = ExportTraceServiceResponse;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Self::Item>, Status> {
        let body = buffer.copy_to_bytes(buffer.remaining());
        ExportTraceServiceResponse::decode(body).map(Some).map_err(|fault| Status::internal(fault.to_string()))
    }
}
