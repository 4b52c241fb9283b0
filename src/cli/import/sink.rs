//! Where a reader puts what it finds in a file; records gather into batches for the upload.

use anyhow::Context;
use tokio::sync::mpsc;

use crate::cli::record_line::RecordLine;

/// Most records and bytes of one upload.
pub const BATCH_RECORDS: usize = 2_000;
const BATCH_BYTES: usize = 1024 * 1024;

/// What a reader hands on, in the file's order.
#[derive(Debug, PartialEq, Eq)]
pub enum Item {
    /// Records, each without a line end in it.
    Batch(Vec<Vec<u8>>),
    /// Members of the file that cannot become records, and why.
    Refused(String, u64),
    /// Members of the file that are no requests to import, and why: nothing that anybody has to mend.
    LeftOut(String, u64),
    /// The last member is cut off.
    CutOff,
}

/// What a reader fills. Each member of the file goes to exactly one of its methods, so that the counts add up.
#[derive(Debug)]
pub struct Sink {
    items: mpsc::Sender<Item>,
    records: Vec<Vec<u8>>,
    bytes: usize,
}

impl Sink {
    /// One that feeds an upload.
    pub fn new(items: mpsc::Sender<Item>) -> Self {
        Self { items, records: Vec::new(), bytes: 0 }
    }

    /// Hands on a record.
    ///
    /// # Errors
    /// Where nobody takes records any more.
    pub fn record(&mut self, line: &RecordLine) -> anyhow::Result<()> {
        self.raw(serde_json::to_vec(line)?)
    }

    /// Hands on a record as the file has it, on one line; whether it is one is for the server to say.
    ///
    /// # Errors
    /// Where nobody takes records any more.
    pub fn raw(&mut self, record: Vec<u8>) -> anyhow::Result<()> {
        self.bytes += record.len();
        self.records.push(record);
        if self.records.len() >= BATCH_RECORDS || self.bytes >= BATCH_BYTES { self.flush() } else { Ok(()) }
    }

    /// Counts a member that cannot become a record. The reason says what to do, and is one of few.
    ///
    /// # Errors
    /// Where nobody takes items any more.
    pub fn refuse(&mut self, reason: impl Into<String>) -> anyhow::Result<()> {
        self.send(Item::Refused(reason.into(), 1))
    }

    /// Counts a member that is no request to import, as it should be: warm-up, what a filter leaves out.
    ///
    /// # Errors
    /// Where nobody takes items any more.
    pub fn leave_out(&mut self, reason: impl Into<String>) -> anyhow::Result<()> {
        self.send(Item::LeftOut(reason.into(), 1))
    }

    /// Counts a last member that is cut off.
    ///
    /// # Errors
    /// Where nobody takes items any more.
    pub fn cut_off(&mut self) -> anyhow::Result<()> {
        self.send(Item::CutOff)
    }

    /// Hands on what has gathered.
    ///
    /// # Errors
    /// Where nobody takes records any more.
    pub fn flush(&mut self) -> anyhow::Result<()> {
        self.bytes = 0;
        if self.records.is_empty() {
            return Ok(());
        }
        let records = std::mem::take(&mut self.records);
        self.send(Item::Batch(records))
    }

    fn send(&self, item: Item) -> anyhow::Result<()> {
        self.items.blocking_send(item).context("the upload stopped")
    }
}

/// What a reader found in a text, for the tests of readers.
#[cfg(test)]
#[derive(Debug, Default, PartialEq)]
pub struct Found {
    /// Records, in order.
    pub records: Vec<serde_json::Value>,
    /// Members refused, by reason.
    pub refused: std::collections::BTreeMap<String, u64>,
    /// Members left out, by reason.
    pub left_out: std::collections::BTreeMap<String, u64>,
    /// Whether the last member is cut off.
    pub cut_off: bool,
}

#[cfg(test)]
impl Found {
    /// Runs a reader over bytes, as they are in the file.
    pub fn of(
        bytes: &[u8],
        read: impl FnOnce(super::input::Input, &mut Sink) -> anyhow::Result<()> + Send + 'static,
    ) -> anyhow::Result<Self> {
        let input = super::input::of_bytes(bytes.to_vec())?;
        let (items, mut received) = mpsc::channel(1);
        let reader = std::thread::spawn(move || {
            let mut sink = Sink::new(items);
            read(input, &mut sink).and_then(|()| sink.flush())
        });
        let mut found = Self::default();
        while let Some(item) = received.blocking_recv() {
            match item {
                Item::Batch(records) => {
                    let parsed = records.iter().map(|record| serde_json::from_slice(record).expect("JSON"));
                    found.records.extend(parsed);
                }
                Item::Refused(reason, members) => *found.refused.entry(reason).or_default() += members,
                Item::LeftOut(reason, members) => *found.left_out.entry(reason).or_default() += members,
                Item::CutOff => found.cut_off = true,
            }
        }
        reader.join().expect("the reader does not panic")?;
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_bounded() {
        let (items, mut received) = mpsc::channel(100);
        let mut sink = Sink::new(items);
        for _ in 0..=BATCH_RECORDS {
            sink.raw(b"{}".to_vec()).expect("taken");
        }
        sink.raw(vec![b' '; BATCH_BYTES]).expect("taken");
        sink.raw(b"{}".to_vec()).expect("taken");
        sink.flush().expect("taken");
        drop(sink);
        let mut sizes = Vec::new();
        while let Some(item) = received.blocking_recv() {
            if let Item::Batch(batch) = item {
                sizes.push(batch.len());
            }
        }
        assert_eq!(sizes, [BATCH_RECORDS, 2, 1]);
    }
}
