//! The thread that writes the archive.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use chrono::{Days, NaiveDate};
use tokio::sync::mpsc::UnboundedReceiver;
use uuid::Uuid;

use super::member::MemberFile;
use super::{KeptLog, Message, Options, State, day, weight};
use model::UnixNanos;

/// How long lines wait for others to share a member with: less is lost by a kill, more is smaller on the disk.
const LINGER: Duration = Duration::from_millis(200);

/// Most bytes of lines that one member is made of.
const MEMBER_BYTES: usize = 8 << 20;

/// Lines of one day that go into one member.
#[derive(Default)]
struct Batch {
    text: Vec<u8>,
    lines: u64,
}

/// Writes to one file a day that no other process writes to.
pub struct Writer {
    options: Options,
    state: Arc<State>,
    open: Option<(NaiveDate, MemberFile)>,
}

impl Writer {
    /// One that has not written yet.
    pub fn new(options: Options, state: Arc<State>) -> Self {
        Self { options, state, open: None }
    }

    /// Writes what comes until it is told to end.
    pub fn run(mut self, mut inbox: UnboundedReceiver<Message>) {
        let mut ends = false;
        while !ends && let Some(message) = inbox.blocking_recv() {
            let mut batches = BTreeMap::new();
            ends = self.take(message, &mut batches);
            if !ends && !batches.is_empty() {
                std::thread::sleep(LINGER);
            }
            while !ends
                && batches.values().map(|batch: &Batch| batch.text.len()).sum::<usize>() < MEMBER_BYTES
                && let Ok(message) = inbox.try_recv()
            {
                ends = self.take(message, &mut batches);
            }
            for (day, batch) in batches {
                self.write(day, &batch);
            }
        }
        if let Err(error) = self.close() {
            tracing::error!(%error, "the archive's file could not be closed");
        }
    }

    /// Does what a message says; whether it is the last.
    fn take(&self, message: Message, batches: &mut BTreeMap<NaiveDate, Batch>) -> bool {
        match message {
            Message::Keep(committed_at, logs) => self.gather(committed_at, &logs, batches),
            Message::Tidy => self.tidy(UnixNanos::now()),
            Message::Close => return true,
        }
        false
    }

    fn gather(&self, committed_at: UnixNanos, logs: &[KeptLog], batches: &mut BTreeMap<NaiveDate, Batch>) {
        self.state.waiting.fetch_sub(weight(logs), Ordering::Relaxed);
        let batch = batches.entry(committed_at.to_datetime().date_naive()).or_default();
        for log in logs {
            match log.write(&mut batch.text) {
                Ok(()) => batch.lines += log.lines.len() as u64,
                Err(error) => self.state.lost(log.lines.len() as u64, error.to_string()),
            }
        }
    }

    fn write(&mut self, day: NaiveDate, batch: &Batch) {
        match self.append(day, &batch.text) {
            Ok(()) => self.state.written(batch.lines),
            Err(error) => {
                self.state.lost(batch.lines, format!("{}: {error}", self.options.dir.display()));
                // What follows a torn member cannot be read.
                self.open.take_if(|(_, file)| !file.is_whole());
            }
        }
    }

    fn append(&mut self, day: NaiveDate, text: &[u8]) -> io::Result<()> {
        if let Some((open, file)) = &mut self.open
            && *open == day
            && file.is_there()
        {
            return file.append(text);
        }
        self.close()?;
        let folder = self.options.dir.join(day::folder(day));
        fs::create_dir_all(&folder)?;
        let instance = Uuid::new_v4().simple().to_string();
        let file = MemberFile::create(&folder.join(day::file(&instance)))?;
        let (_, file) = self.open.insert((day, file));
        file.append(text)
    }

    fn close(&mut self) -> io::Result<()> {
        match self.open.take() {
            Some((_, file)) => file.close(),
            None => Ok(()),
        }
    }

    fn tidy(&self, now: UnixNanos) {
        let days = self.options.retention.as_secs().div_ceil(86_400);
        let Some(first_kept) = now.to_datetime().date_naive().checked_sub_days(Days::new(days)) else { return };
        match day::delete_before(&self.options.dir, first_kept) {
            Ok(deleted) if deleted.is_empty() => {}
            Ok(deleted) => tracing::info!(days = ?deleted, "days of the archive were deleted"),
            Err(error) => tracing::warn!(%error, "old days of the archive could not be deleted; trying again later"),
        }
    }
}
