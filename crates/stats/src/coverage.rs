//! How much of what clients measured is explained, and why the rest is not (design, section 7).

use std::collections::BTreeMap;

use super::bias::Bias;
use super::cell::{CellKey, Counts};
use model::{Dimension, Flag, State};

/// Counts of requests by what became of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tally {
    matched: u64,
    matched_by_request_id: u64,
    matched_sampled_out: u64,
    client_only: u64,
    server_only: u64,
    excluded: BTreeMap<Flag, u64>,
    excluded_records: u64,
    pending: u64,
    server_requests: u64,
    sampled_out: u64,
    from_spans: u64,
}

impl Tally {
    /// Adds the requests of one cell.
    pub fn add(&mut self, key: &CellKey, counts: &Counts) {
        if key.state == State::Pending {
            // Beside everything else: what it will become is not known yet.
            self.pending += counts.requests;
            return;
        }
        self.server_requests += counts.server;
        self.sampled_out += counts.sampled_out;
        self.from_spans += counts.from_spans;
        match key.state {
            State::Matched => {
                self.matched += counts.requests;
                self.matched_by_request_id += counts.by_request_id;
                self.matched_sampled_out += counts.sampled_out;
            }
            State::ClientOnly => self.client_only += counts.requests,
            State::ServerOnly => self.server_only += counts.requests,
            State::Excluded => {
                self.excluded_records += counts.client;
                for (reason, n) in &counts.excluded {
                    *self.excluded.entry(*reason).or_default() += n;
                }
            }
            State::Pending => {}
        }
    }

    /// Client records that are settled: the denominator of every coverage.
    pub fn client_records(&self) -> u64 {
        self.matched + self.client_only + self.excluded_records
    }

    /// Server requests that are settled.
    pub const fn server_requests(&self) -> u64 {
        self.server_requests
    }

    /// Requests with both sides.
    pub const fn matched(&self) -> u64 {
        self.matched
    }

    /// How many of the matched were joined by a request id, since their traces differ.
    pub const fn matched_by_request_id(&self) -> u64 {
        self.matched_by_request_id
    }

    /// Client records whose spans never came.
    pub const fn client_only(&self) -> u64 {
        self.client_only
    }

    /// Server requests whose client record never came.
    pub const fn server_only(&self) -> u64 {
        self.server_only
    }

    /// Requests in no distribution, by the flag that says why.
    pub const fn excluded(&self) -> &BTreeMap<Flag, u64> {
        &self.excluded
    }

    /// Requests that are not settled, in no other count.
    pub const fn pending(&self) -> u64 {
        self.pending
    }

    /// Client records whose traceparent asked for no sampling.
    pub const fn sampled_out(&self) -> u64 {
        self.sampled_out
    }

    /// How many of the client records are the caller's own spans, since no record came.
    pub const fn from_spans(&self) -> u64 {
        self.from_spans
    }

    /// Matched requests by client records; `None` without any.
    pub fn join_coverage(&self) -> Option<f64> {
        share(self.matched, self.client_records())
    }

    /// The same without the records that asked for no sampling.
    pub fn join_coverage_sampled(&self) -> Option<f64> {
        share(self.matched - self.matched_sampled_out, self.client_records().saturating_sub(self.sampled_out))
    }
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// Coverage of a window or a group.
#[derive(Debug, Clone, PartialEq)]
pub struct Coverage {
    /// The counts that the shares are of.
    pub tally: Tally,
    /// Labels asked for by which the counts are not filtered, since only servers tell them.
    pub not_filtered_by: Vec<Dimension>,
    /// Whether the matched requests differ from the others.
    pub bias: Bias,
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::ResultClass;

    fn counts(requests: u64, client: u64, server: u64, sampled_out: u64) -> Counts {
        Counts { requests, client, server, sampled_out, ..Counts::default() }
    }

    fn key(state: State) -> CellKey {
        CellKey { labels: 0, state, result: Some(ResultClass::Ok) }
    }

    #[test]
    fn excluded_and_lone_records_are_in_the_denominator_and_pending_ones_are_not() {
        let mut tally = Tally::default();
        tally.add(&key(State::Matched), &Counts { by_request_id: 30, ..counts(400, 400, 400, 4) });
        tally.add(&key(State::ClientOnly), &counts(25, 25, 0, 6));
        tally.add(&key(State::ServerOnly), &counts(9, 0, 9, 0));
        tally.add(&key(State::Pending), &counts(70, 70, 3, 1));
        let mut excluded = counts(3, 3, 3, 0);
        excluded.excluded.insert(Flag::NegativeEnvelope, 3);
        tally.add(&key(State::Excluded), &excluded);
        assert_eq!((tally.client_records(), tally.server_requests(), tally.pending()), (428, 412, 70));
        assert_eq!((tally.matched(), tally.matched_by_request_id()), (400, 30));
        assert_eq!(tally.join_coverage(), Some(400.0 / 428.0));
        assert_eq!(tally.sampled_out(), 10);
        assert_eq!(tally.join_coverage_sampled(), Some(396.0 / 418.0));
        assert_eq!(tally.excluded()[&Flag::NegativeEnvelope], 3);
    }

    #[test]
    fn no_records_have_no_coverage() {
        let mut tally = Tally::default();
        tally.add(&key(State::ServerOnly), &counts(9, 0, 9, 0));
        assert_eq!((tally.join_coverage(), tally.join_coverage_sampled()), (None, None));
    }
}
