//! When the server's time ends (design, section 3, rule 3).

use super::tolerance::tolerance;
use super::tree::{Forest, Place};
use model::{ClientRecord, Flag, Flags, Interval, Nanos, ResultClass, ServerPhase, UnixNanos};

/// The entry span's interval, extended or cut to when the answer really ended. `None` where the entry span's own clock is
/// invalid.
pub fn server_time(forest: &Forest, entry: Place, client: Option<ClientTime>, flags: &mut Flags) -> Option<Interval> {
    let own = forest.node(entry).interval?;
    let body = forest.body_sends(entry).map(|body| body.end).filter(|last| own.start <= *last);
    let Some(client) = client else {
        let end = body.filter(|last| *last < own.end).unwrap_or(own.end);
        return Interval::new(own.start, end);
    };
    let left = own.start + client.duration;
    let latest = left + tolerance(client.duration);
    let outlives = client.is_whole && own.end > latest;
    let answer = Answer::of(forest, entry, own);
    let end = if let Some(last) = body.filter(|last| *last < own.end) {
        flags.set_if(outlives && last <= latest, Flag::EntryEndedLate);
        last
    } else if let Some(last) =
        answer.latest_until(left).max(body.filter(|last| *last <= left)).filter(|last| *last > own.end)
    {
        flags.set(Flag::EntryEndedEarly);
        last
    } else if let Some(last) = answer.ended().filter(|last| outlives && *last <= latest) {
        flags.set(Flag::EntryEndedLate);
        last
    } else {
        own.end
    };
    if client.gave_up && end > left {
        flags.set(Flag::ServerOutlivedClient);
        return Interval::new(own.start, left);
    }
    Interval::new(own.start, end)
}

/// How long a request took by its client's clock.
#[derive(Debug, Clone, Copy)]
pub struct ClientTime {
    /// The duration, else the wall time.
    duration: Nanos,
    /// Whether it lasts until the end of the answer.
    is_whole: bool,
    /// Whether the client left before the answer was whole.
    gave_up: bool,
}

impl ClientTime {
    /// As a record measured it; `None` where it has neither duration nor wall time.
    pub fn of_record(record: &ClientRecord) -> Option<Self> {
        let duration = record.duration.or(record.wall)?;
        let is_whole = !record.headers_only;
        let cut_off = matches!(record.result, ResultClass::Cancelled | ResultClass::Timeout | ResultClass::Truncated);
        Some(Self { duration, is_whole, gave_up: is_whole && cut_off })
    }

    /// As a caller's span shows it, which may end with the headers.
    pub const fn of_call(duration: Nanos) -> Self {
        Self { duration, is_whole: false, gave_up: false }
    }
}

/// Where the spans of the entry's own clock end.
#[derive(Default)]
struct Answer {
    /// Of those that generate, call a provider or write the response.
    answering: Vec<UnixNanos>,
    /// The latest of those that write the response.
    written: Option<UnixNanos>,
    /// The latest of those that are painted.
    painted: Option<UnixNanos>,
}

impl Answer {
    fn of(forest: &Forest, entry: Place, own: Interval) -> Self {
        let mut answer = Self::default();
        let mut open = vec![entry];
        while let Some(place) = open.pop() {
            for child in forest.node(place).children.iter().copied() {
                if forest.crosses_clocks(child, place) {
                    continue;
                }
                open.push(child);
                answer.add(forest, child, entry, own);
            }
        }
        answer
    }

    fn add(&mut self, forest: &Forest, place: Place, entry: Place, own: Interval) {
        let node = forest.node(place);
        let Some(at) = node.interval else { return };
        let reading = &node.reading;
        let generates = |phase: ServerPhase| matches!(phase, ServerPhase::Generation | ServerPhase::Provider);
        let opaque = forest.holds_nothing_known(place);
        let laid = reading.laid.iter().any(|laid| generates(laid.phase));
        if reading.writes_response || reading.phase.is_some_and(generates) || laid || opaque {
            self.answering.push(at.end);
        }
        if reading.writes_response {
            self.written = self.written.max(Some(at.end));
        }
        if reading.phase.is_some() || !reading.laid.is_empty() || opaque {
            let end = forest.bounded(place, entry, Some(own)).map(|at| at.end);
            self.painted = self.painted.max(end);
        }
    }

    /// The latest end of an answering span that is no later than `limit`.
    fn latest_until(&self, limit: UnixNanos) -> Option<UnixNanos> {
        self.answering.iter().copied().filter(|end| *end <= limit).max()
    }

    /// Where the answer ended as spans inside show it: the response's writer before any other painted span.
    fn ended(&self) -> Option<UnixNanos> {
        self.written.or(self.painted)
    }
}
