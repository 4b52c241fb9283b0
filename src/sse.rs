//! Server-sent events from bytes as they arrive. Pure: chunks go in, and what each completes comes out at once, so that
//! whoever reads the clock once a chunk knows the arrival of each event.
//!
//! It follows the WHATWG standard's "event stream interpretation", and adds what measuring needs and the crates for the
//! purpose (eventsource-stream, sse-stream, sseer) keep to themselves: comments are reported, since they are heartbeats;
//! an event that grows beyond a limit is counted and skipped in constant memory; and what an ending stream leaves
//! unfinished is handed over.

mod block;

use self::block::Block;

/// What a chunk completed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// An event with data.
    Event(Event),
    /// A comment line: it keeps a connection alive and says nothing.
    Comment,
    /// A block of lines without data. The standard dispatches no event for it.
    NoData,
    /// An event beyond the limit, by its length in bytes as it was sent, line ends left out. Its content is gone.
    Oversized(u64),
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Event {
    /// Its name; the standard's default, `message`, is `None`.
    pub name: Option<String>,
    /// Its data: the lines joined with line feeds, invalid UTF-8 replaced by U+FFFD.
    pub data: String,
    /// The last id that the stream told up to here; it stays in force until the next.
    pub id: Option<String>,
    /// The reconnection time that this event's block told, in milliseconds.
    pub retry: Option<u64>,
}

/// Where the parser stands in the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    /// Among the first bytes of the stream, of which so many are a byte order mark's so far.
    Mark(usize),
    /// After a carriage return: a line feed that follows belongs to it.
    AfterReturn,
    /// At the start of a line.
    Start,
    /// In a line that is kept.
    Field,
    /// In a comment, which is not kept.
    Comment,
}

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Turns chunks into items.
#[derive(Debug)]
pub struct Parser {
    line: Line,
    block: Block,
}

impl Parser {
    /// For events of at most so many bytes, line ends left out. A small multiple of it bounds the memory, whatever comes.
    pub fn new(limit: usize) -> Self {
        Self { line: Line::Mark(0), block: Block::new(limit) }
    }

    /// Takes the next bytes, which may be cut anywhere, and hands on what they complete.
    pub fn push(&mut self, chunk: &[u8], mut sink: impl FnMut(Item)) {
        let mut rest = self.after_mark(chunk);
        while let Some(&first) = rest.first() {
            if self.line == Line::AfterReturn {
                self.line = Line::Start;
                if first == b'\n' {
                    rest = &rest[1..];
                    continue;
                }
            }
            let end = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            self.part(&rest[..end.unwrap_or(rest.len())]);
            let Some(end) = end else { return };
            if let Some(item) = self.end_line() {
                sink(item);
            }
            self.line = if rest[end] == b'\r' { Line::AfterReturn } else { Line::Start };
            rest = &rest[end + 1..];
        }
    }

    /// What the stream's end left without its closing blank line. The standard drops it; a sender that forgets the blank
    /// line after its end marker is common enough to look.
    pub fn finish(mut self) -> Option<Event> {
        if matches!(self.line, Line::Field | Line::Comment) {
            self.end_line();
        }
        match self.block.end()? {
            Item::Event(event) => Some(event),
            Item::Comment | Item::NoData | Item::Oversized(_) => None,
        }
    }

    /// The chunk without the byte order mark that the stream may begin with, also where it comes in pieces.
    fn after_mark<'a>(&mut self, mut chunk: &'a [u8]) -> &'a [u8] {
        while let (Line::Mark(seen), Some(&first)) = (self.line, chunk.first()) {
            if BYTE_ORDER_MARK.get(seen) != Some(&first) {
                self.line = Line::Start;
                // What looked like a mark was the start of a line.
                self.part(&BYTE_ORDER_MARK[..seen]);
                break;
            }
            chunk = &chunk[1..];
            self.line = if seen + 1 == BYTE_ORDER_MARK.len() { Line::Start } else { Line::Mark(seen + 1) };
        }
        chunk
    }

    /// A part of a line.
    fn part(&mut self, part: &[u8]) {
        let Some(&first) = part.first() else { return };
        if self.line == Line::Start {
            self.line = if first == b':' { Line::Comment } else { Line::Field };
        }
        if self.line == Line::Field {
            self.block.extend(part);
        }
    }

    fn end_line(&mut self) -> Option<Item> {
        match self.line {
            Line::Comment => return Some(Item::Comment),
            Line::Field => self.block.end_line(),
            Line::Mark(_) | Line::AfterReturn | Line::Start => return self.block.end(),
        }
        None
    }
}

#[cfg(test)]
mod tests;
