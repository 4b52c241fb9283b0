//! Splits an upload into its members without interpreting them, so that a broken one is refused alone.

use axum::http::{HeaderMap, header};
use serde::de::{DeserializeSeed, Error as _, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::super::body::BodyError;
use super::super::intake::RawRecord;
use super::super::limits::ByteLimit;

const BOM: &[u8] = b"\xef\xbb\xbf";
/// No client record is shorter: a trace id and a duration take as much. Bounds the members of an upload.
const SHORTEST_RECORD: usize = 64;

/// How the members of an upload are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// One object, or an array.
    Json,
    Lines,
}

impl Format {
    /// Reads `Content-Type`.
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        let value = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
        match value.split(';').next()?.trim().to_ascii_lowercase().as_str() {
            "application/json" => Some(Self::Json),
            "application/x-ndjson" | "application/ndjson" => Some(Self::Lines),
            _ => None,
        }
    }
}

/// The members of `body`, in order, each as its raw JSON or as the reason why it is none.
///
/// # Errors
/// More members than records fit into `limit`.
pub(super) fn split(format: Format, body: &[u8], limit: &ByteLimit) -> Result<Vec<RawRecord>, BodyError> {
    let body = body.strip_prefix(BOM).unwrap_or(body);
    let most = limit.bytes / SHORTEST_RECORD;
    let records = match format {
        Format::Json => document(body, most),
        Format::Lines => lines(body, most),
    };
    records.ok_or_else(|| {
        let ByteLimit { bytes, setting, .. } = limit;
        BodyError::TooLarge(format!(
            "the upload holds more than the {most} records that its limit of {bytes} bytes allows: send smaller \
             uploads or raise {setting}"
        ))
    })
}

/// One member a line; blank lines, carriage returns and padding with NUL are passed over.
fn lines(body: &[u8], most: usize) -> Option<Vec<RawRecord>> {
    let mut records = Vec::new();
    for (number, line) in body.split(|byte| *byte == b'\n').enumerate() {
        let line = trim_padding(line);
        if line.is_empty() {
            continue;
        }
        if records.len() == most {
            return None;
        }
        let record = serde_json::from_slice::<Box<RawValue>>(line);
        records.push(record.map_err(|fault| {
            format!("line {} is not JSON: {} in column {}", number + 1, cause(&fault), fault.column())
        }));
    }
    Some(records)
}

fn trim_padding(mut line: &[u8]) -> &[u8] {
    let is_padding = |byte: &u8| *byte == 0 || byte.is_ascii_whitespace();
    while let [first, rest @ ..] = line
        && is_padding(first)
    {
        line = rest;
    }
    while let [rest @ .., last] = line
        && is_padding(last)
    {
        line = rest;
    }
    line
}

/// One object or an array. Members before a fault are kept; the fault is one refused member.
fn document(body: &[u8], most: usize) -> Option<Vec<RawRecord>> {
    let body = trim_padding(body);
    let mut records = Vec::new();
    let mut reader = serde_json::Deserializer::from_slice(body);
    let read = if body.first() == Some(&b'[') {
        Members { records: &mut records, most }.deserialize(&mut reader)
    } else {
        serde::Deserialize::deserialize(&mut reader).map(|record| records.push(Ok(record)))
    };
    if let Err(fault) = read.and_then(|()| reader.end()) {
        if records.len() == most {
            return None;
        }
        records.push(Err(format!(
            "not JSON: {} in line {}, column {}; nothing from here on was read (records one a line are sent as \
             application/x-ndjson)",
            cause(&fault),
            fault.line(),
            fault.column()
        )));
    }
    Some(records)
}

/// The fault without the position, which each format tells in its own way.
fn cause(fault: &serde_json::Error) -> String {
    let text = fault.to_string();
    text.split(" at line ").next().unwrap_or_default().to_owned()
}

/// Reads an array into `records`, which keeps what was read when a fault ends it.
struct Members<'a> {
    records: &'a mut Vec<RawRecord>,
    most: usize,
}

impl<'de> DeserializeSeed<'de> for Members<'_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Members<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("an array of client records")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        while let Some(record) = members.next_element::<Box<RawValue>>()? {
            if self.records.len() == self.most {
                return Err(A::Error::custom("too many members"));
            }
            self.records.push(Ok(record));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMIT: ByteLimit = ByteLimit { bytes: 1024, subject: "the upload", setting: "--limit" };

    /// The members' JSON; a refused one as `!` and its reason.
    fn members(format: Format, body: &[u8]) -> Vec<String> {
        let records = split(format, body, &LIMIT).expect("few members");
        let text = |record: RawRecord| match record {
            Ok(json) => json.get().to_owned(),
            Err(reason) => format!("!{reason}"),
        };
        records.into_iter().map(text).collect()
    }

    #[test]
    fn lines_tolerate_what_files_hold() {
        let body = b"\xef\xbb\xbf{\"a\":1}\r\n\r\n  \n\0{\"b\":2}\n\0\0\0";
        assert_eq!(members(Format::Lines, body), [r#"{"a":1}"#, r#"{"b":2}"#]);
        assert!(members(Format::Lines, b"").is_empty());
    }

    #[test]
    fn a_broken_line_is_refused_alone_with_its_number() {
        let found = members(Format::Lines, b"{\"a\":1}\n\n{\"b\":\n{\"c\":\"\xff\"}\n{\"d\":4}");
        assert_eq!(found.len(), 4);
        assert_eq!(found[1], "!line 3 is not JSON: EOF while parsing a value in column 5");
        assert!(found[2].starts_with("!line 4 is not JSON: invalid unicode"), "{}", found[2]);
        assert_eq!(found[3], r#"{"d":4}"#);
    }

    #[test]
    fn an_object_or_an_array_of_them() {
        assert_eq!(members(Format::Json, b" {\"a\":1} "), [r#"{"a":1}"#]);
        assert_eq!(members(Format::Json, b"[{\"a\":1},2]"), [r#"{"a":1}"#, "2"]);
        assert!(members(Format::Json, b"[]").is_empty());
    }

    #[test]
    fn an_array_keeps_what_stands_before_its_fault() {
        let found = members(Format::Json, b"[{\"a\":1},\n{\"b\":}, {\"c\":3}]");
        assert_eq!(found[0], r#"{"a":1}"#);
        assert!(found[1].starts_with("!not JSON: expected value in line 2, column 6"), "{}", found[1]);
        assert_eq!(found.len(), 2);
        assert!(members(Format::Json, b"[{\"a\":1}")[1].starts_with("!not JSON: EOF"));
    }

    #[test]
    fn what_follows_a_document_is_refused() {
        let found = members(Format::Json, b"{\"a\":1}\n{\"b\":2}");
        assert_eq!(found[0], r#"{"a":1}"#);
        assert!(found[1].contains("application/x-ndjson"), "{}", found[1]);
    }

    #[test]
    fn members_are_bounded() {
        for (format, body) in [(Format::Lines, "1\n".repeat(17)), (Format::Json, format!("[{}1]", "1,".repeat(16)))] {
            let refused = split(format, body.as_bytes(), &LIMIT).expect_err("17 members where 16 fit");
            assert!(refused.to_string().contains("16 records"), "{refused}");
            assert!(refused.to_string().contains("--limit"), "{refused}");
        }
        assert_eq!(members(Format::Lines, "1\n".repeat(16).as_bytes()).len(), 16);
    }

    #[test]
    fn deep_nesting_does_not_overflow_the_stack() {
        let deep = "[".repeat(1_000_000);
        assert_eq!(members(Format::Json, deep.as_bytes()).len(), 1);
        assert_eq!(members(Format::Lines, deep.as_bytes()).len(), 1);
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_split_panic(body in prop::collection::vec(any::<u8>(), 0..256)) {
            for format in [Format::Json, Format::Lines] {
                if let Ok(records) = split(format, &body, &LIMIT) {
                    prop_assert!(records.len() <= LIMIT.bytes / SHORTEST_RECORD);
                }
            }
        }
    }
}
