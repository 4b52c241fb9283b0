//! Client records from a file.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::io;

use anyhow::{Context, bail};
use bytes::Bytes;
use reqwest::StatusCode;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, SeqAccess, Visitor};
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use url::Url;

use super::FileArgs;
use super::input::{self, Input};
use super::tally::Tally;
use super::upload::Uploader;
use crate::cli::api::refusal;
use crate::model::ResultClass;
use crate::normalise;

/// Most records and bytes of one upload.
const BATCH_RECORDS: usize = 2_000;
const BATCH_BYTES: usize = 1024 * 1024;
/// Batches that are read ahead of the upload.
const READ_AHEAD: usize = 2;

/// What the reader of a file hands to the upload.
#[derive(Debug, PartialEq, Eq)]
enum Item {
    /// Records, each without a line end in it.
    Batch(Vec<Vec<u8>>),
    /// The last record is cut off.
    CutOff,
}

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

/// Uploads the records of a file, in its order.
pub async fn import(args: &FileArgs, url: Url) -> anyhow::Result<Tally> {
    let uploader = Uploader::new(url, "application/x-ndjson", args.retry_for)?;
    let (input, bar) = input::open(&args.file)?;
    let (sender, mut items) = mpsc::channel(READ_AHEAD);
    let reader = tokio::task::spawn_blocking(move || read(input, &sender));
    let mut tally = Tally { duplicates: Some(0), results: Some(no_results()), ..Tally::default() };
    while let Some(item) = items.recv().await {
        match item {
            Item::Batch(records) => upload(&uploader, &records, &mut tally).await?,
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
    let results = tally.results.get_or_insert_with(no_results);
    for (_, record) in records.iter().enumerate().filter(|(index, _)| !rejected.contains(index)) {
        if let Some(class) = result_of(record) {
            *results.entry(class.name()).or_default() += 1;
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

/// Reads a file to its end, or until nobody takes its records any more.
fn read(mut input: Input, sender: &mpsc::Sender<Item>) -> anyhow::Result<()> {
    let mut batch = Batch { sender, records: Vec::new(), bytes: 0 };
    let ended = match input::peek(&mut input)?.first() {
        None => return Ok(()),
        Some(b'[') => array(input, &mut batch)?,
        Some(_) => lines(&mut input, &mut batch)?,
    };
    batch.send()?;
    if ended == Ended::CutOff {
        sender.blocking_send(Item::CutOff).context("the upload stopped")?;
    }
    Ok(())
}

/// How a file ended.
#[derive(Debug, PartialEq, Eq)]
enum Ended {
    Whole,
    CutOff,
}

struct Batch<'a> {
    sender: &'a mpsc::Sender<Item>,
    records: Vec<Vec<u8>>,
    bytes: usize,
}

impl Batch<'_> {
    fn add(&mut self, record: Vec<u8>) -> anyhow::Result<()> {
        self.bytes += record.len();
        self.records.push(record);
        if self.records.len() >= BATCH_RECORDS || self.bytes >= BATCH_BYTES { self.send() } else { Ok(()) }
    }

    fn send(&mut self) -> anyhow::Result<()> {
        self.bytes = 0;
        if self.records.is_empty() {
            return Ok(());
        }
        let records = std::mem::take(&mut self.records);
        self.sender.blocking_send(Item::Batch(records)).context("the upload stopped")
    }
}

/// One record a line; a single record may take several lines. Lines that are no JSON are left to the server, which
/// refuses them one by one; only the last one may be cut off.
fn lines(input: &mut Input, batch: &mut Batch<'_>) -> anyhow::Result<Ended> {
    let mut first = true;
    while let Some(line) = input::next_line(input)? {
        if line.bytes.is_empty() {
            continue;
        }
        let is_json = serde_json::from_slice::<&RawValue>(&line.bytes).is_ok();
        if !is_json && !line.whole {
            return Ok(Ended::CutOff);
        }
        if !is_json && first && line.bytes.starts_with(b"{") {
            return object(&line.bytes, input, batch);
        }
        first = false;
        batch.add(line.bytes)?;
    }
    Ok(Ended::Whole)
}

/// Records that take several lines each, the first of which has been read.
fn object(first: &[u8], input: &mut Input, batch: &mut Batch<'_>) -> anyhow::Result<Ended> {
    let whole = io::Read::chain(io::Read::chain(first, &b"\n"[..]), input);
    for record in serde_json::Deserializer::from_reader(whole).into_iter::<Box<RawValue>>() {
        match record {
            Ok(record) => batch.add(one_line(&record))?,
            Err(error) if error.is_eof() => return Ok(Ended::CutOff),
            Err(error) => return Err(error).context("the file is neither NDJSON nor JSON"),
        }
    }
    Ok(Ended::Whole)
}

/// An array of records, read one by one.
fn array(input: Input, batch: &mut Batch<'_>) -> anyhow::Result<Ended> {
    let mut failure = None;
    let read = Members { batch, failure: &mut failure }.deserialize(&mut serde_json::Deserializer::from_reader(input));
    match (failure, read) {
        (Some(failure), _) => Err(failure),
        (None, Ok(())) => Ok(Ended::Whole),
        (None, Err(error)) if error.is_eof() => Ok(Ended::CutOff),
        (None, Err(error)) => Err(error).context("the file is neither NDJSON nor a JSON array"),
    }
}

/// Line ends between the tokens of JSON mean nothing, and inside a text they cannot stand.
fn one_line(record: &RawValue) -> Vec<u8> {
    record.get().bytes().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte }).collect()
}

struct Members<'a, 'b> {
    batch: &'a mut Batch<'b>,
    failure: &'a mut Option<anyhow::Error>,
}

impl<'de> DeserializeSeed<'de> for Members<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Members<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of client records")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        while let Some(record) = members.next_element::<Box<RawValue>>()? {
            if let Err(failure) = self.batch.add(one_line(&record)) {
                *self.failure = Some(failure);
                return Err(serde::de::Error::custom("the upload stopped"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Cursor};

    use super::*;

    /// The records of a text, and whether its last one is cut off.
    fn split(text: &str) -> anyhow::Result<(Vec<String>, bool)> {
        let (sender, mut items) = mpsc::channel(100);
        let input: Input = BufReader::new(Box::new(Cursor::new(text.to_owned().into_bytes())));
        read(input, &sender)?;
        drop(sender);
        let (mut records, mut cut_off) = (Vec::new(), false);
        while let Some(item) = items.blocking_recv() {
            match item {
                Item::Batch(batch) => records.extend(batch.into_iter().map(|r| String::from_utf8(r).expect("UTF-8"))),
                Item::CutOff => cut_off = true,
            }
        }
        Ok((records, cut_off))
    }

    fn whole(records: &[&str]) -> (Vec<String>, bool) {
        (records.iter().map(|record| (*record).to_owned()).collect(), false)
    }

    #[test]
    fn lines_arrays_and_single_objects_are_the_same_records() {
        let want = whole(&[r#"{"a":1}"#, r#"{"b":2}"#]);
        for text in ["{\"a\":1}\n\n{\"b\":2}\n", "{\"a\":1}\r\n{\"b\":2}", " [{\"a\":1},\n{\"b\":2}]"] {
            assert_eq!(split(text).expect(text), want, "{text}");
        }
        assert_eq!(split("{\n \"a\": 1\n}\n").expect("an object"), whole(&["{  \"a\": 1 }"]));
        assert_eq!(split("").expect("nothing"), whole(&[]));
    }

    #[test]
    fn a_bad_line_in_the_middle_is_left_to_the_server() {
        let records = whole(&[r#"{"a":1}"#, "oops", r#"{"b":2}"#]);
        assert_eq!(split("{\"a\":1}\noops\n{\"b\":2}\n").expect("three lines"), records);
    }

    #[test]
    fn only_the_last_record_may_be_cut_off() {
        for text in ["{\"a\":1}\n{\"b\":", "[{\"a\":1},{\"b\":", "{\n\"a\":1}\n{\n\"b\":"] {
            let (records, cut_off) = split(text).expect(text);
            assert_eq!((records.len(), cut_off), (1, true), "{text}");
        }
        assert!(split("[{\"a\":1} {\"b\":2}]").is_err());
    }

    #[test]
    fn batches_are_bounded() {
        let (sender, mut items) = mpsc::channel(100);
        let text = "{}\n".repeat(BATCH_RECORDS + 1);
        read(BufReader::new(Box::new(Cursor::new(text.into_bytes()))), &sender).expect("read");
        drop(sender);
        let mut sizes = Vec::new();
        while let Some(item) = items.blocking_recv() {
            if let Item::Batch(batch) = item {
                sizes.push(batch.len());
            }
        }
        assert_eq!(sizes, [BATCH_RECORDS, 1]);
    }
}
