//! The lines of one event.

use super::{Event, Item};

/// What has been read since the last blank line.
#[derive(Debug)]
pub struct Block {
    limit: usize,
    /// The line that is being read.
    line: Vec<u8>,
    /// All bytes of the block, line ends left out.
    bytes: u64,
    /// Whether a line has been read.
    begun: bool,
    data: Option<String>,
    name: Option<String>,
    retry: Option<u64>,
    /// Stays for the events to come.
    id: Option<String>,
}

impl Block {
    /// For events of at most so many bytes.
    pub fn new(limit: usize) -> Self {
        Self { limit, line: Vec::new(), bytes: 0, begun: false, data: None, name: None, retry: None, id: None }
    }

    /// Takes a part of a line. From the limit on nothing is kept.
    pub fn extend(&mut self, part: &[u8]) {
        self.bytes += part.len() as u64;
        if self.is_oversized() {
            (self.line, self.data, self.name) = (Vec::new(), None, None);
        } else {
            self.line.extend_from_slice(part);
        }
    }

    /// Reads the line that has ended.
    pub fn end_line(&mut self) {
        self.begun = true;
        let line = std::mem::take(&mut self.line);
        if self.is_oversized() {
            return;
        }
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let value = line.get(colon + 1..).unwrap_or_default();
        let value = String::from_utf8_lossy(value.strip_prefix(b" ").unwrap_or(value));
        match &line[..colon] {
            b"data" => self.add_data(&value),
            b"event" => self.name = Some(value.into_owned()).filter(|name| !name.is_empty()),
            b"id" if !value.contains('\0') => self.id = Some(value.into_owned()).filter(|id| !id.is_empty()),
            b"retry" if value.bytes().all(|byte| byte.is_ascii_digit()) => {
                self.retry = value.parse().ok().or(self.retry)
            }
            _ => {}
        }
        // Its room serves the next line.
        self.line = line;
        self.line.clear();
    }

    fn add_data(&mut self, value: &str) {
        match &mut self.data {
            Some(data) => {
                data.push('\n');
                data.push_str(value);
            }
            None => self.data = Some(value.to_owned()),
        }
    }

    /// What the block was, at its blank line; `None` where there was no line. The next one begins.
    pub fn end(&mut self) -> Option<Item> {
        let (data, name, retry) = (self.data.take(), self.name.take(), self.retry.take());
        let bytes = std::mem::take(&mut self.bytes);
        if !std::mem::take(&mut self.begun) {
            return None;
        }
        if bytes > self.limit as u64 {
            return Some(Item::Oversized(bytes));
        }
        // The standard drops an event whose data is the empty string.
        match data.filter(|data| !data.is_empty()) {
            Some(data) => Some(Item::Event(Event { name, data, id: self.id.clone(), retry })),
            None => Some(Item::NoData),
        }
    }

    fn is_oversized(&self) -> bool {
        self.bytes > self.limit as u64
    }
}
