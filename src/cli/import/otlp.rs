//! OTLP traces from a file.

mod frames;
mod pack;

use std::path::Path;

use anyhow::Context;
use bytes::Bytes;
use opentelemetry_proto::tonic::collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse};
use prost::Message as _;
use reqwest::Response;
use tokio::sync::mpsc;
use tonic_types::pb::Status;
use url::Url;

use self::frames::{Frame, Frames};
use self::pack::{Pack, span_count};
use super::FileArgs;
use super::input::{self, Input};
use super::tally::Tally;
use super::upload::Uploader;
use crate::receive::otlp::{decode_protobuf, json};

/// Batches that are read ahead of the upload.
const READ_AHEAD: usize = 2;

/// What the reader of a file hands to the upload.
#[derive(Debug)]
enum Item {
    /// Spans to send.
    Batch(ExportTraceServiceRequest),
    /// A message that is no OTLP traces.
    Bad(String),
    /// The last message is cut off.
    CutOff,
}

/// Sends the spans of a file, in its order.
pub(super) async fn import(args: &FileArgs, url: Url) -> anyhow::Result<Tally> {
    let uploader = Uploader::new(url, "application/x-protobuf", args.retry_for)?;
    let (input, bar) = input::open(&args.file)?;
    let (sender, mut items) = mpsc::channel(READ_AHEAD);
    let reader = tokio::task::spawn_blocking(move || read(input, &sender));
    let mut tally = Tally::default();
    while let Some(item) = items.recv().await {
        match item {
            Item::Batch(request) => upload(&uploader, &request, &mut tally).await?,
            Item::Bad(reason) => {
                tally.read += 1;
                tally.reject(reason, 1);
            }
            Item::CutOff => tally.cut_off(),
        }
        bar.set_message(format!("{} spans", tally.read));
    }
    reader.await.context("the reader of the file stopped")??;
    bar.finish_and_clear();
    Ok(tally)
}

async fn upload(uploader: &Uploader, request: &ExportTraceServiceRequest, tally: &mut Tally) -> anyhow::Result<()> {
    let spans = span_count(request);
    tally.read += spans;
    let response = uploader.send(Bytes::from(request.encode_to_vec())).await?;
    if !response.status().is_success() {
        tally.reject(status_message(response).await, spans);
        return Ok(());
    }
    let body = response.bytes().await.context("the server broke off its answer")?;
    let answer = ExportTraceServiceResponse::decode(body).context("the server did not answer as OTLP asks")?;
    let partial = answer.partial_success.unwrap_or_default();
    let rejected = u64::try_from(partial.rejected_spans).unwrap_or(0);
    tally.reject(partial.error_message, rejected);
    tally.accepted += spans.saturating_sub(rejected);
    Ok(())
}

/// OTLP answers a refusal with a `google.rpc.Status` in the request's form.
async fn status_message(response: Response) -> String {
    let fallback = format!("the server answered {}", response.status());
    let Ok(body) = response.bytes().await else { return fallback };
    match Status::decode(body) {
        Ok(status) if !status.message.is_empty() => status.message,
        _ => fallback,
    }
}

/// Reads a file to its end, or until nobody takes its spans any more.
fn read(input: Input, sender: &mpsc::Sender<Item>) -> anyhow::Result<()> {
    let send = |item| sender.blocking_send(item).context("the upload stopped");
    let mut pack = Pack::default();
    let mut messages = Messages::of(input)?;
    while let Some(message) = messages.next()? {
        match message {
            Message::Spans(request) => pack.add(request, &mut |batch| send(Item::Batch(batch)))?,
            Message::Bad(reason) => send(Item::Bad(reason))?,
            Message::CutOff => {
                pack.finish(&mut |batch| send(Item::Batch(batch)))?;
                return send(Item::CutOff);
            }
        }
    }
    pack.finish(&mut |batch| send(Item::Batch(batch)))
}

/// One message of a file.
pub(in crate::cli) enum Message {
    Spans(ExportTraceServiceRequest),
    /// No OTLP traces, and why.
    Bad(String),
    /// The last message breaks off.
    CutOff,
}

/// The messages of a file, in its order.
pub(in crate::cli) struct Messages {
    frames: Frames,
}

impl Messages {
    /// Of a file, perhaps compressed; `-` is standard input.
    ///
    /// # Errors
    /// Where it cannot be opened.
    pub(in crate::cli) fn open(path: &Path) -> anyhow::Result<Self> {
        let (input, bar) = input::open(path)?;
        bar.finish_and_clear();
        Self::of(input)
    }

    fn of(input: Input) -> anyhow::Result<Self> {
        Ok(Self { frames: Frames::new(input)? })
    }

    /// The next message; `None` after the last.
    ///
    /// # Errors
    /// A failure of the input.
    pub(in crate::cli) fn next(&mut self) -> anyhow::Result<Option<Message>> {
        let decoded = match self.frames.next()? {
            None => return Ok(None),
            Some(Frame::CutOff) => return Ok(Some(Message::CutOff)),
            Some(Frame::Json(document)) => json::decode(&document),
            Some(Frame::Protobuf(message)) => decode_protobuf(Bytes::from(message)),
        };
        Ok(Some(match decoded {
            Ok(decoded) => Message::Spans(decoded.request),
            Err(reason) => Message::Bad(reason),
        }))
    }
}
