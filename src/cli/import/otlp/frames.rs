//! The messages of a file: lines of JSON, or protobuf one after another.

use std::io::{ErrorKind, Read};

use anyhow::bail;

use crate::cli::import::input::{self, Input};

/// Most bytes of one message: what a length beyond it says is no length.
const LONGEST_MESSAGE: u64 = 1 << 30;

/// One message, not decoded yet.
#[derive(Debug, PartialEq, Eq)]
pub enum Frame {
    /// As OTLP/JSON.
    Json(Vec<u8>),
    Protobuf(Vec<u8>),
    /// The last message breaks off.
    CutOff,
}

/// How messages are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    /// One JSON document a line, as the Collector's file exporter writes by default.
    Lines,
    /// Four bytes of length, most significant first, before each message, as the file exporter writes `format: proto`.
    FixedLength,
    /// A varint of length before each message, as protobuf's own delimited form has it.
    VarintLength,
    /// The file is one message.
    Whole,
}

/// The messages of a file, in its order.
pub struct Frames {
    input: Input,
    framing: Framing,
    /// Whether nothing has been read yet.
    first: bool,
    ended: bool,
}

impl Frames {
    /// Recognises the framing by the first bytes.
    ///
    /// # Errors
    /// A failure of the input.
    pub fn new(mut input: Input) -> anyhow::Result<Self> {
        let framing = recognise(&mut input)?;
        Ok(Self { input, framing, first: true, ended: false })
    }

    /// The next message; `None` after the last.
    ///
    /// # Errors
    /// A failure of the input, or a length that cannot be one.
    pub fn next(&mut self) -> anyhow::Result<Option<Frame>> {
        if self.ended {
            return Ok(None);
        }
        let frame = match self.framing {
            Framing::Lines => self.line()?,
            Framing::Whole => {
                self.ended = true;
                let mut bytes = Vec::new();
                match self.input.read_to_end(&mut bytes) {
                    Ok(_) => Some(Frame::Protobuf(bytes)),
                    Err(error) if error.kind() == ErrorKind::UnexpectedEof => Some(Frame::CutOff),
                    Err(error) => return Err(error.into()),
                }
            }
            Framing::FixedLength | Framing::VarintLength => self.delimited()?,
        };
        self.ended |= matches!(frame, None | Some(Frame::CutOff));
        Ok(frame)
    }

    fn line(&mut self) -> anyhow::Result<Option<Frame>> {
        loop {
            let Some(line) = input::next_line(&mut self.input)? else { return Ok(None) };
            if line.bytes.is_empty() {
                continue;
            }
            let document = serde_json::from_slice::<serde::de::IgnoredAny>(&line.bytes);
            if self.first && line.whole && document.as_ref().is_err_and(serde_json::Error::is_eof) {
                return self.spread_out(line.bytes).map(Some);
            }
            self.first = false;
            let cut_off = !line.whole && document.is_err();
            return Ok(Some(if cut_off { Frame::CutOff } else { Frame::Json(line.bytes) }));
        }
    }

    /// A document that is spread over the lines of the whole file, as people keep one.
    fn spread_out(&mut self, mut document: Vec<u8>) -> anyhow::Result<Frame> {
        self.ended = true;
        match self.input.read_to_end(&mut document) {
            Ok(_) => Ok(Frame::Json(document)),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(Frame::CutOff),
            Err(error) => Err(error.into()),
        }
    }

    fn delimited(&mut self) -> anyhow::Result<Option<Frame>> {
        let length = match self.length()? {
            Length::End => return Ok(None),
            Length::CutOff => return Ok(Some(Frame::CutOff)),
            Length::Bytes(length) => length,
        };
        if length > LONGEST_MESSAGE {
            bail!(
                "a message of {length} bytes is announced: the file is not OTLP as the Collector's file exporter writes it"
            );
        }
        let mut message = Vec::new();
        match (&mut self.input).take(length).read_to_end(&mut message) {
            Ok(_) if message.len() as u64 == length => Ok(Some(Frame::Protobuf(message))),
            Ok(_) => Ok(Some(Frame::CutOff)),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(Some(Frame::CutOff)),
            Err(error) => Err(error.into()),
        }
    }

    fn length(&mut self) -> anyhow::Result<Length> {
        let mut bytes = Vec::new();
        let most = if self.framing == Framing::FixedLength { 4 } else { 10 };
        while bytes.len() < most {
            let mut byte = [0];
            match self.input.read(&mut byte) {
                Ok(0) if bytes.is_empty() => return Ok(Length::End),
                Ok(0) => return Ok(Length::CutOff),
                Ok(_) => bytes.push(byte[0]),
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(Length::CutOff),
                Err(error) => return Err(error.into()),
            }
            if self.framing == Framing::VarintLength && byte[0] < 0x80 {
                break;
            }
        }
        Ok(Length::Bytes(match self.framing {
            Framing::FixedLength => bytes.iter().fold(0, |length, byte| length << 8 | u64::from(*byte)),
            _ => prost::encoding::decode_varint(&mut bytes.as_slice())?,
        }))
    }
}

/// What stands before a message.
enum Length {
    End,
    CutOff,
    Bytes(u64),
}

/// A message of OTLP starts with the tag of its first field, which is 0x0A. A length before it is larger than 10, since
/// a trace id alone is longer, so a first byte of 0x0A is a whole message. A varint length of 123 looks like a brace, but
/// no quotation mark or brace follows it.
fn recognise(input: &mut Input) -> anyhow::Result<Framing> {
    let head = std::io::BufRead::fill_buf(input)?;
    let mut visible = head.iter().copied().filter(|byte| !byte.is_ascii_whitespace());
    Ok(match head.first() {
        None => Framing::Lines,
        Some(0x00) => Framing::FixedLength,
        Some(0x0a) if visible.next() != Some(b'{') => Framing::Whole,
        Some(_) => {
            let mut visible = head.iter().copied().filter(|byte| !byte.is_ascii_whitespace());
            let is_json = visible.next() == Some(b'{') && matches!(visible.next(), Some(b'"' | b'}'));
            if is_json { Framing::Lines } else { Framing::VarintLength }
        }
    })
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Cursor};

    use super::*;

    fn frames(bytes: &[u8]) -> Vec<Frame> {
        let input: Input = BufReader::new(Box::new(Cursor::new(bytes.to_vec())));
        let mut frames = Frames::new(input).expect("opened");
        std::iter::from_fn(|| frames.next().expect("read")).collect()
    }

    /// A message as OTLP starts it, of a given length.
    fn message(length: u8) -> Vec<u8> {
        let mut bytes = vec![0x0a, length - 2];
        bytes.resize(usize::from(length), b'x');
        bytes
    }

    #[test]
    fn framings_are_recognised_by_the_first_bytes() {
        let one = message(40);
        let want = vec![Frame::Protobuf(one.clone()), Frame::Protobuf(one.clone())];
        let fixed = [&[0, 0, 0, 40][..], &one, &[0, 0, 0, 40], &one].concat();
        let varint = [&[40][..], &one, &[40], &one].concat();
        assert_eq!(frames(&fixed), want);
        assert_eq!(frames(&varint), want);
        assert_eq!(frames(&one), [Frame::Protobuf(one.clone())]);
        let brace = message(123);
        assert_eq!(frames(&[&[123][..], &brace].concat()), [Frame::Protobuf(brace)]);
        let json = frames(b"\n{ \"resourceSpans\": []}\n\n{}\n");
        assert_eq!(json, [Frame::Json(b"{ \"resourceSpans\": []}".to_vec()), Frame::Json(b"{}".to_vec())]);
        assert_eq!(frames(b""), []);
    }

    #[test]
    fn a_document_may_be_spread_over_lines() {
        let read = frames(b"{\r\n  \"resourceSpans\": [\n  ]\n}\n");
        assert_eq!(read, [Frame::Json(b"{  \"resourceSpans\": [\n  ]\n}\n".to_vec())]);
    }

    #[test]
    fn only_the_last_message_may_be_cut_off() {
        let one = message(40);
        let first = Frame::Protobuf(one.clone());
        let fixed = [&[0, 0, 0, 40][..], &one, &[0, 0, 0, 40], &one[..10]].concat();
        assert_eq!(frames(&fixed), [first, Frame::CutOff]);
        assert_eq!(frames(b"{\"a\":1}\n{\"a\":"), [Frame::Json(b"{\"a\":1}".to_vec()), Frame::CutOff]);
        assert_eq!(frames(b"{\"a\":1}\n{\"a\":2}").len(), 2, "a missing line end alone cuts nothing off");
    }

    #[test]
    fn an_absurd_length_is_refused() {
        let input: Input = BufReader::new(Box::new(Cursor::new(vec![0xff; 20])));
        assert!(Frames::new(input).expect("opened").next().is_err());
    }
}
