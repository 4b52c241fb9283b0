//! Client records from a file.

use std::fmt;
use std::io;

use anyhow::Context;
use serde::de::{DeserializeSeed, Deserializer, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::input::{self, Input};
use super::sink::Sink;

/// Reads a file to its end, or until nobody takes its records any more.
pub fn read(mut input: Input, sink: &mut Sink) -> anyhow::Result<()> {
    let ended = match input::peek(&mut input)?.first() {
        None => return Ok(()),
        Some(b'[') => array(input, sink)?,
        Some(_) => lines(&mut input, sink)?,
    };
    if ended == Ended::CutOff { sink.cut_off() } else { Ok(()) }
}

/// How a file ended.
#[derive(Debug, PartialEq, Eq)]
enum Ended {
    Whole,
    CutOff,
}

/// One record a line; a single record may take several lines. Lines that are no JSON are left to the server, which
/// refuses them one by one; only the last one may be cut off.
fn lines(input: &mut Input, sink: &mut Sink) -> anyhow::Result<Ended> {
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
            return object(&line.bytes, input, sink);
        }
        first = false;
        sink.raw(line.bytes)?;
    }
    Ok(Ended::Whole)
}

/// Records that take several lines each, the first of which has been read.
fn object(first: &[u8], input: &mut Input, sink: &mut Sink) -> anyhow::Result<Ended> {
    let whole = io::Read::chain(io::Read::chain(first, &b"\n"[..]), input);
    for record in serde_json::Deserializer::from_reader(whole).into_iter::<Box<RawValue>>() {
        match record {
            Ok(record) => sink.raw(one_line(&record))?,
            Err(error) if error.is_eof() => return Ok(Ended::CutOff),
            Err(error) => return Err(error).context("the file is neither NDJSON nor JSON"),
        }
    }
    Ok(Ended::Whole)
}

/// An array of records, read one by one.
fn array(input: Input, sink: &mut Sink) -> anyhow::Result<Ended> {
    let mut failure = None;
    let read = Members { sink, failure: &mut failure }.deserialize(&mut serde_json::Deserializer::from_reader(input));
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

struct Members<'a> {
    sink: &'a mut Sink,
    failure: &'a mut Option<anyhow::Error>,
}

impl<'de> DeserializeSeed<'de> for Members<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Members<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of client records")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        while let Some(record) = members.next_element::<Box<RawValue>>()? {
            if let Err(failure) = self.sink.raw(one_line(&record)) {
                *self.failure = Some(failure);
                return Err(serde::de::Error::custom("the upload stopped"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::sink::{Found, Item};
    use super::*;

    /// The records of a text, and whether its last one is cut off.
    fn split(text: &str) -> anyhow::Result<(Vec<Value>, bool)> {
        let found = Found::of(text.as_bytes(), read)?;
        Ok((found.records, found.cut_off))
    }

    #[test]
    fn lines_arrays_and_single_objects_are_the_same_records() {
        let want = (vec![json!({"a": 1}), json!({"b": 2})], false);
        for text in ["{\"a\":1}\n\n{\"b\":2}\n", "{\"a\":1}\r\n{\"b\":2}", " [{\"a\":1},\n{\"b\":2}]"] {
            assert_eq!(split(text).expect(text), want, "{text}");
        }
        assert_eq!(split("{\n \"a\": 1\n}\n").expect("an object"), (vec![json!({"a": 1})], false));
        assert_eq!(split("").expect("nothing"), (vec![], false));
    }

    #[test]
    fn a_bad_line_in_the_middle_is_left_to_the_server() {
        let (sender, mut items) = tokio::sync::mpsc::channel(100);
        let mut sink = Sink::new(sender);
        let input = input::of_bytes(b"{\"a\":1}\noops\n{\"b\":2}\n".to_vec()).expect("opened");
        read(input, &mut sink).and_then(|()| sink.flush()).expect("three lines");
        let lines = ["{\"a\":1}", "oops", "{\"b\":2}"].map(|line| line.as_bytes().to_vec());
        assert_eq!(items.blocking_recv(), Some(Item::Batch(lines.to_vec())));
    }

    #[test]
    fn only_the_last_record_may_be_cut_off() {
        for text in ["{\"a\":1}\n{\"b\":", "[{\"a\":1},{\"b\":", "{\n\"a\":1}\n{\n\"b\":"] {
            let (records, cut_off) = split(text).expect(text);
            assert_eq!((records.len(), cut_off), (1, true), "{text}");
        }
        assert!(split("[{\"a\":1} {\"b\":2}]").is_err());
    }
}
