//! The archive of event lines: what was committed, as NDJSON in one folder a day, so that it can be sent again.
//!
//! It stands beside the database, never before it: lines are written after their commit by a thread of their own, and
//! where they cannot be written that is counted and told, while the server goes on.

mod day;
mod line;
mod member;
mod writer;

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use metrics::counter;
use thiserror::Error;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::watch;

pub use self::day::{days, parse as parse_day};
pub use self::line::{KeptLine, KeptLog};
use self::writer::Writer;
use model::UnixNanos;

/// Most bytes of lines that wait for the disk. Over it lines are lost to the archive, though not to the database.
const MAX_WAITING: usize = 64 << 20;

/// Where lines are kept, and for how long.
#[derive(Debug, Clone)]
pub struct Options {
    /// The folder of the days.
    pub dir: PathBuf,
    /// How long a day is kept.
    pub retention: Duration,
}

/// Why no archive can be kept.
#[derive(Debug, Error)]
#[error("cannot write to the archive's folder {}; choose another with --archive-dir, or make it writable", dir.display())]
pub struct ArchiveError {
    dir: PathBuf,
    source: std::io::Error,
}

/// Takes lines to be archived. Clones share everything.
#[derive(Debug, Clone)]
pub struct Archive {
    queue: UnboundedSender<Message>,
    state: Arc<State>,
    ended: watch::Receiver<()>,
}

/// What the writer is told.
#[derive(Debug)]
enum Message {
    /// Lines that were committed then.
    Keep(UnixNanos, Vec<KeptLog>),
    /// Look for days past their retention.
    Tidy,
    /// Write what waits, then end.
    Close,
}

/// What the writer and those who feed it share.
#[derive(Debug, Default)]
struct State {
    waiting: AtomicUsize,
    trouble: Mutex<Option<String>>,
}

impl Archive {
    /// Opens the archive in a folder, which is made where it is missing.
    ///
    /// # Errors
    /// Where nothing can be written there.
    pub fn open(options: Options) -> Result<Self, ArchiveError> {
        let failed = |source| ArchiveError { dir: options.dir.clone(), source };
        std::fs::create_dir_all(&options.dir).map_err(failed)?;
        // Fails now rather than with the first lines.
        tempfile::tempfile_in(&options.dir).map_err(failed)?;
        let state = Arc::new(State::default());
        let (queue, inbox) = unbounded_channel();
        let (running, ended) = watch::channel(());
        let writer = Writer::new(options.clone(), Arc::clone(&state));
        let work = move || {
            writer.run(inbox);
            drop(running);
        };
        std::thread::Builder::new().name("archive".to_owned()).spawn(work).map_err(failed)?;
        Ok(Self { queue, state, ended })
    }

    /// Hands on lines that were committed at a time of our clock. It never waits: a disk that does not keep up costs
    /// lines of the archive, which are counted.
    pub fn keep(&self, committed_at: UnixNanos, logs: Vec<KeptLog>) {
        let weight = weight(&logs);
        let lines = lines(&logs);
        if lines == 0 {
            return;
        }
        if self.state.waiting.fetch_add(weight, Ordering::Relaxed) + weight > MAX_WAITING {
            self.state.waiting.fetch_sub(weight, Ordering::Relaxed);
            self.state.lost(lines, "the disk does not keep up".to_owned());
        } else if self.queue.send(Message::Keep(committed_at, logs)).is_err() {
            self.state.lost(lines, "its writer has ended".to_owned());
        }
    }

    /// What is wrong with the archive at the moment; `None` where the last lines were written.
    pub fn trouble(&self) -> Option<String> {
        self.state.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Has days past their retention deleted.
    pub fn tidy(&self) {
        // A writer that has ended tidies no more.
        let _ = self.queue.send(Message::Tidy);
    }

    /// Waits until everything that was handed on is written and the file is closed.
    pub async fn close(mut self) {
        // Where the writer has ended there is nothing to wait for.
        let _ = self.queue.send(Message::Close);
        let _ = self.ended.changed().await;
    }
}

impl State {
    /// Counts lines that are not in the archive. Only the first of a row of failures is logged.
    fn lost(&self, lines: u64, cause: String) {
        counter!("tracejoin_archive_lines_total", "outcome" => "lost").increment(lines);
        let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        if trouble.is_none() {
            tracing::error!(%cause, lines, "event lines are not archived, though they are stored");
        }
        *trouble = Some(format!("event lines are not archived: {cause}"));
    }

    fn written(&self, lines: u64) {
        counter!("tracejoin_archive_lines_total", "outcome" => "written").increment(lines);
        let before = self.trouble.lock().unwrap_or_else(PoisonError::into_inner).take();
        if before.is_some() {
            tracing::info!("event lines are archived again");
        }
    }
}

fn lines(logs: &[KeptLog]) -> u64 {
    logs.iter().map(|log| log.lines.len() as u64).sum()
}

/// About how many bytes of memory logs take.
fn weight(logs: &[KeptLog]) -> usize {
    logs.iter().map(KeptLog::weight).sum()
}

#[cfg(test)]
mod tests;
