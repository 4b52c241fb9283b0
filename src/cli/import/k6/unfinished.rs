//! Requests whose end k6 has not told, or never tells.
//!
//! A request that is under way when k6 stops a virtual user leaves no point of its own: only the bytes of its iteration
//! carry its trace id. A stream of xk6-sse is told by points as it goes on: one at its start, one an event.

use std::collections::{HashMap, HashSet, VecDeque};

use super::identity::Identity;
use super::labels::TagRule;
use super::point::Labels;
use super::request;
use super::stream::Stream;
use crate::cli::record_line::RecordLine;
use model::{ResultClass, UnixNanos};

/// Requests whose end is remembered: the bytes of their iteration come soon after it.
const REMEMBERED: usize = 50_000;

/// A request without an end.
#[derive(Debug, Clone, PartialEq)]
struct Unfinished {
    labels: Labels,
    seen_at: UnixNanos,
    stream: Option<Stream>,
    /// Whether its iteration is over: its bytes have been told.
    interrupted: bool,
}

/// All of them.
#[derive(Debug, Default)]
pub struct UnfinishedRequests {
    open: HashMap<Identity, Unfinished>,
    ended: HashSet<Identity>,
    order: VecDeque<Identity>,
}

impl UnfinishedRequests {
    /// An iteration moved bytes under this identity.
    pub fn bytes(&mut self, identity: Identity, at: UnixNanos, labels: Labels) {
        if let Some(request) = self.request(identity, at, labels) {
            request.interrupted = true;
        }
    }

    pub fn stream_start(&mut self, identity: Identity, at: UnixNanos, labels: Labels) {
        if let Some(stream) = self.stream(identity, at, labels) {
            stream.starts(at);
        }
    }

    /// An event came.
    pub fn stream_event(&mut self, identity: Identity, at: UnixNanos, labels: Labels) {
        if let Some(stream) = self.stream(identity, at, labels) {
            stream.receives(at);
        }
    }

    fn stream(&mut self, identity: Identity, at: UnixNanos, labels: Labels) -> Option<&mut Stream> {
        self.request(identity, at, labels).map(|request| request.stream.get_or_insert_default())
    }

    fn request(&mut self, identity: Identity, at: UnixNanos, labels: Labels) -> Option<&mut Unfinished> {
        if self.ended.contains(&identity) {
            return None;
        }
        let new = || Unfinished { labels, seen_at: at, stream: None, interrupted: false };
        Some(self.open.entry(identity).or_insert_with(new))
    }

    /// A request ended; what is known of its stream.
    pub fn end(&mut self, identity: Identity) -> Option<Stream> {
        if self.ended.insert(identity) {
            self.order.push_back(identity);
        }
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.ended.remove(&oldest);
        }
        self.open.remove(&identity)?.stream
    }

    /// The records of those that were interrupted, in the order of their time; `None` for a stream that goes on. They
    /// have no duration: k6 does not tell it.
    pub fn finish(self, rules: &[TagRule]) -> Vec<Option<RecordLine>> {
        let mut all: Vec<_> = self.open.into_iter().collect();
        all.sort_by_key(|(identity, request)| (request.seen_at, *identity));
        all.into_iter()
            .map(|(identity, request)| request.interrupted.then(|| cancelled(&identity, request, rules)))
            .collect()
    }
}

fn cancelled(identity: &Identity, request: Unfinished, rules: &[TagRule]) -> RecordLine {
    let mut line = request::line(identity, &request.labels, rules);
    line.started_at = Some(request.seen_at);
    line.result = Some(ResultClass::Cancelled);
    line.error = Some("interrupted".to_owned());
    if let Some(stream) = request.stream {
        stream.write_into(request.seen_at, &mut line);
    }
    line
}
