//! Who told of which requests, asked once a round for all objectives that share it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::reader::{ReadError, Reader};
use model::{Dimension, Interval, Nanos, ResultClass, Selection, UnixNanos};
use slo::alert::Presence;
use stats::Question;

/// Conditions on labels.
pub(super) type Filters = BTreeMap<Dimension, BTreeSet<String>>;

/// The counts of one round.
pub(super) struct Scopes<'a> {
    reader: &'a Reader,
    end: UnixNanos,
    known: HashMap<(Filters, Nanos), Presence>,
}

impl<'a> Scopes<'a> {
    /// Of windows that end at `end`.
    pub(super) fn new(reader: &'a Reader, end: UnixNanos) -> Self {
        Self { reader, end, known: HashMap::new() }
    }

    /// Where all windows of the round end.
    pub(super) const fn end(&self) -> UnixNanos {
        self.end
    }

    /// Who told of the requests with these labels, of every result.
    ///
    /// # Errors
    /// All of [`ReadError`].
    pub(super) async fn presence(&mut self, filters: &Filters, length: Nanos) -> Result<Presence, ReadError> {
        let key = (filters.clone(), length);
        if let Some(known) = self.known.get(&key) {
            return Ok(*known);
        }
        let selection = Selection {
            window: Interval { start: self.end - length, end: self.end },
            filters: filters.clone(),
            results: ResultClass::ALL.into(),
        };
        let question = Question { selection, group_by: Vec::new(), quantiles: Vec::new() };
        let tally = question.coverage(&self.reader.contents(&question).await?.contents).tally;
        // A caller's own span is no client record that came.
        let settled = tally.client_records().saturating_sub(tally.from_spans());
        let presence =
            Presence { client_records: settled + tally.pending(), settled, with_server: tally.server_requests() };
        self.known.insert(key, presence);
        Ok(presence)
    }

    /// The part of all client records of a window that has these labels; `None` without any.
    ///
    /// # Errors
    /// All of [`ReadError`].
    pub(super) async fn traffic_share(&mut self, filters: &Filters, length: Nanos) -> Result<Option<f64>, ReadError> {
        let own = self.presence(filters, length).await?.settled;
        let all = self.presence(&Filters::new(), length).await?.settled;
        Ok((all > 0).then(|| own as f64 / all as f64))
    }
}
