//! The upload of client records, and the exact count of what became of each member of a file.

use std::collections::{BTreeMap, HashSet};

use anyhow::{Context, bail};
use bytes::Bytes;
use reqwest::StatusCode;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use url::Url;

use super::FileArgs;
use super::input::{self, Input};
use super::sink::{Item, Sink};
use super::tally::Tally;
use super::upload::Uploader;
use crate::cli::api::refusal;
use model::ResultClass;
use normalise;

/// Items that are read ahead of the upload.
const READ_AHEAD: usize = 2;

/// The door's answer.
#[derive(Debug, Deserialize)]
struct Answer {
    accepted: u64,
    duplicates: u64,
    rejected: Vec<Rejected>,
}

#[derive(Debug, Deserialize)]
struct Rejected {
    index: usize,
    field: String,
    reason: String,
}

/// Uploads the client records that a reader finds in a file, in its order. A reader knows no network: it fills a
/// [`Sink`].
pub async fn import(
    args: &FileArgs,
    url: Url,
    read: impl FnOnce(Input, &mut Sink) -> anyhow::Result<()> + Send + 'static,
) -> anyhow::Result<Tally> {
    let tally = Tally { duplicates: Some(0), results: Some(no_results()), ..Tally::default() };
    send(args, url, read, tally).await
}

/// The same for event lines, which say nothing of how a request ended.
pub async fn import_events(
    args: &FileArgs,
    url: Url,
    read: impl FnOnce(Input, &mut Sink) -> anyhow::Result<()> + Send + 'static,
) -> anyhow::Result<Tally> {
    send(args, url, read, Tally { duplicates: Some(0), ..Tally::default() }).await
}

async fn send(
    args: &FileArgs,
    url: Url,
    read: impl FnOnce(Input, &mut Sink) -> anyhow::Result<()> + Send + 'static,
    mut tally: Tally,
) -> anyhow::Result<Tally> {
    let uploader = Uploader::new(url, "application/x-ndjson", args.retry_for)?;
    let (input, bar) = input::open(&args.file)?;
    let (sender, mut items) = mpsc::channel(READ_AHEAD);
    let reader = tokio::task::spawn_blocking(move || {
        let mut sink = Sink::new(sender);
        read(input, &mut sink).and_then(|()| sink.flush())
    });
    while let Some(item) = items.recv().await {
        match item {
            Item::Batch(records) => upload(&uploader, &records, &mut tally).await?,
            Item::Refused(reason, members) => {
                tally.read += members;
                tally.reject(reason, members);
            }
            Item::LeftOut(reason, members) => {
                tally.read += members;
                tally.leave_out(reason, members);
            }
            Item::CutOff => tally.cut_off(),
        }
        bar.set_message(format!("{} records", tally.read));
    }
    reader.await.context("the reader of the file stopped")??;
    bar.finish_and_clear();
    Ok(tally)
}

async fn upload(uploader: &Uploader, records: &[Vec<u8>], tally: &mut Tally) -> anyhow::Result<()> {
    let response = uploader.send(Bytes::from(records.join(&b'\n'))).await?;
    let status = response.status();
    tally.read += records.len() as u64;
    if !matches!(status, StatusCode::OK | StatusCode::BAD_REQUEST) {
        tally.reject(refusal(response).await, records.len() as u64);
        return Ok(());
    }
    let answer: Answer = response.json().await.context("the server did not answer as expected")?;
    let rejected: HashSet<usize> = answer.rejected.iter().map(|member| member.index).collect();
    for member in &answer.rejected {
        let reason = &member.reason;
        tally.reject(if member.field.is_empty() { reason.clone() } else { format!("{}: {reason}", member.field) }, 1);
    }
    let taken = answer.accepted + answer.duplicates + rejected.len() as u64;
    if taken != records.len() as u64 {
        bail!("the server answered for {taken} of {} records; is it of the same version?", records.len());
    }
    if let Some(results) = &mut tally.results {
        for (_, record) in records.iter().enumerate().filter(|(index, _)| !rejected.contains(index)) {
            if let Some(class) = result_of(record) {
                *results.entry(class.name()).or_default() += 1;
            }
        }
    }
    tally.accepted += answer.accepted;
    *tally.duplicates.get_or_insert(0) += answer.duplicates;
    Ok(())
}

/// How a record's request ended, as the server reads it.
fn result_of(record: &[u8]) -> Option<ResultClass> {
    let raw: &RawValue = serde_json::from_slice(record).ok()?;
    Some(normalise::record(raw).ok()?.record.result)
}

/// No request of any class yet.
fn no_results() -> BTreeMap<&'static str, u64> {
    ResultClass::ALL.into_iter().map(|class| (class.name(), 0)).collect()
}
