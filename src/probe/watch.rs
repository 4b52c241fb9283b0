//! A stream as it is watched: which event came when, by its class. Pure: the arrival times come with the bytes.

use serde_json::Value;

use super::rules::{Reading, Rules, TokenKind};
use super::usage::Usage;
use crate::sse::{Event, Item, Parser};
use model::Nanos;

/// The largest event that is read. Larger ones are counted and skipped.
pub const MAX_EVENT: usize = 1024 * 1024;

/// The most tokens whose arrivals are kept. No answer has as many; a stream without an end would fill the memory.
const MAX_TOKENS: usize = 1_000_000;

/// What an event is to the one who waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Before the first token, without one: the stream is open.
    Connect,
    /// With a token.
    Business,
    /// After the first token, without one; also comments and whatever keeps the connection alive.
    Heartbeat,
    /// The end marker.
    Done,
    /// The answer failed.
    Error,
}

/// What has been seen of a stream. Times are since the start of sending.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Seen {
    /// The first event of any kind; comments are none.
    pub first_event: Option<Nanos>,
    /// Arrival of each business event.
    pub tokens: Vec<Nanos>,
    /// The first text that a person sees.
    pub first_visible: Option<Nanos>,
    /// Business events with reasoning and no visible text.
    pub reasoning: u64,
    /// Business events with a part of a tool call only.
    pub tool_calls: u64,
    /// Events that opened the stream.
    pub connects: u64,
    /// Comments and events that said nothing.
    pub heartbeats: u64,
    /// Events that were too large to be read.
    pub oversized: u64,
    /// The end marker.
    pub done: Option<Nanos>,
    /// An event that said that the answer failed.
    pub failed: Option<Nanos>,
    /// Token counts of the server.
    pub usage: Usage,
    /// The engine's own timing.
    pub metrics: Option<Value>,
    /// The answer's id.
    pub answer_id: Option<String>,
    /// Numbers that events told of themselves.
    pub sequence: Option<SequenceSeen>,
}

/// Events that tell their number in the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SequenceSeen {
    /// The highest.
    pub last: i64,
    /// How many of those since the first never came. A stream keeps its order, so a later one shows them.
    pub missing: i64,
}

/// Watches one stream.
#[derive(Debug)]
pub struct Watch<'a> {
    rules: &'a Rules,
    parser: Parser,
    seen: Seen,
}

impl<'a> Watch<'a> {
    /// A stream's start.
    pub fn new(rules: &'a Rules) -> Self {
        Self { rules, parser: Parser::new(MAX_EVENT), seen: Seen::default() }
    }

    /// Takes bytes that arrived at a time.
    pub fn push(&mut self, at: Nanos, bytes: &[u8]) {
        let Self { rules, parser, seen } = self;
        parser.push(bytes, |item| match item {
            Item::Event(event) => {
                seen.first_event.get_or_insert(at);
                seen.take(at, rules.read(&event));
            }
            Item::Comment | Item::NoData => seen.heartbeats += 1,
            Item::Oversized(_) => {
                seen.first_event.get_or_insert(at);
                seen.oversized += 1;
            }
        });
    }

    /// What has been seen so far.
    pub fn seen(&self) -> &Seen {
        &self.seen
    }

    /// Whether there are more tokens than are kept.
    pub fn is_full(&self) -> bool {
        self.seen.tokens.len() >= MAX_TOKENS
    }

    /// What was seen in all. An end marker counts without the blank line that should follow it.
    pub fn finish(self, at: Nanos) -> Seen {
        let mut seen = self.seen;
        let unfinished = self.parser.finish().map(|event: Event| self.rules.read(&event));
        if unfinished.is_some_and(|reading| reading.done) {
            seen.done.get_or_insert(at);
        }
        seen
    }
}

impl Seen {
    fn take(&mut self, at: Nanos, reading: Reading) {
        match self.class(&reading) {
            Class::Business => self.token(at, reading.token),
            Class::Connect => self.connects += 1,
            Class::Heartbeat => self.heartbeats += 1,
            Class::Error => {
                self.failed.get_or_insert(at);
            }
            Class::Done => {}
        }
        if reading.done {
            self.done.get_or_insert(at);
        }
        self.usage = self.usage.updated(reading.usage);
        self.metrics = reading.metrics.or(self.metrics.take());
        self.answer_id = self.answer_id.take().or(reading.answer_id);
        if let Some(number) = reading.sequence {
            self.count(number);
        }
    }

    /// The class of an event that follows what has been seen. A last token may be the end marker as well.
    fn class(&self, reading: &Reading) -> Class {
        if reading.error {
            Class::Error
        } else if reading.token.is_some() {
            Class::Business
        } else if reading.done {
            Class::Done
        } else if reading.heartbeat || !self.tokens.is_empty() {
            Class::Heartbeat
        } else {
            Class::Connect
        }
    }

    fn token(&mut self, at: Nanos, kind: Option<TokenKind>) {
        self.tokens.push(at);
        match kind {
            Some(TokenKind::Reasoning) => self.reasoning += 1,
            Some(TokenKind::ToolCall) => self.tool_calls += 1,
            Some(TokenKind::Visible) | None => {
                self.first_visible.get_or_insert(at);
            }
        }
    }

    fn count(&mut self, number: i64) {
        let Some(seen) = &mut self.sequence else {
            self.sequence = Some(SequenceSeen { last: number, missing: 0 });
            return;
        };
        if number > seen.last {
            let skipped = number.saturating_sub(seen.last) - 1;
            *seen = SequenceSeen { last: number, missing: seen.missing.saturating_add(skipped) };
        }
    }

    /// Business events that arrived together with another.
    pub fn batched(&self) -> u64 {
        let runs = self.tokens.chunk_by(|one, next| one == next);
        runs.map(|run| run.len() as u64).filter(|together| *together > 1).sum()
    }
}

#[cfg(test)]
mod tests;
