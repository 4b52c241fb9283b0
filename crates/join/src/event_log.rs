//! What the lines of an event log tell of their request (design, sections 5 and 6). Lines of one request only are ever
//! set against one another, and the order in which they came makes no difference.

use std::collections::{BTreeMap, BTreeSet};

use super::identity::{self, Claimant};
use model::{ClientRecord, EventKind, Nanos, ResultClass, StreamEvent, StreamSummary, TraceId, UnixNanos};
use model::{ReceivedLog, ReceivedRecord};

/// The lines of one request, each once.
#[derive(Debug, Clone, PartialEq)]
pub struct Log {
    request_id: Option<String>,
    /// By the client's clock; those that do not tell it last.
    lines: Vec<StreamEvent>,
    last_received: UnixNanos,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct LogSummary {
    started_at: Option<UnixNanos>,
    duration: Option<Nanos>,
    ttft: Option<Nanos>,
    tokens: Option<i64>,
    stream: StreamSummary,
}

/// Who claims a request of a trace: its records, completed by its logs.
pub fn claimants(
    records: Vec<ReceivedRecord>,
    logs: Vec<ReceivedLog>,
    trace_id: TraceId,
    quiet_since: UnixNanos,
) -> Vec<Claimant> {
    let mut claimants = identity::claimants(records);
    if !logs.is_empty() {
        fold(&mut claimants, logs, trace_id, quiet_since);
    }
    claimants
}

/// Folds logs into the records that they belong to; a log without one becomes a record itself. A log whose last line came
/// after `quiet_since` and that has no end marker is open: what it lacks may still come.
fn fold(claimants: &mut Vec<Claimant>, logs: Vec<ReceivedLog>, trace_id: TraceId, quiet_since: UnixNanos) {
    let logs = gather(logs);
    let measured = claimants.len();
    for log in &logs {
        let open = (!log.is_done() && log.last_received > quiet_since).then_some(log.last_received);
        let summary = log.summary(open.is_some());
        let owner = owner(&claimants[..measured], log, logs.len());
        match owner.and_then(|owner| claimants.get_mut(owner)) {
            Some(claimant) => {
                claimant.open_since = claimant.open_since.max(open);
                claimant.records.iter_mut().for_each(|record| summary.complete(record));
            }
            None => claimants.push(Claimant {
                span_id: None,
                records: vec![summary.record(trace_id, log.request_id.clone())],
                open_since: open,
                from_log: true,
            }),
        }
    }
}

/// The records that a log belongs to: those of its request id, else the only ones of the trace where one of the two does
/// not tell its request id.
fn owner(claimants: &[Claimant], log: &Log, logs: usize) -> Option<usize> {
    let same =
        |claimant: &Claimant| claimant.request_id().is_some() && claimant.request_id() == log.request_id.as_deref();
    let mut owners = claimants.iter().enumerate().filter(|(_, claimant)| same(claimant)).map(|(place, _)| place);
    if let Some(owner) = owners.next() {
        return owners.next().is_none().then_some(owner);
    }
    let [only] = claimants else { return None };
    (logs == 1 && (log.request_id.is_none() || only.request_id().is_none())).then_some(0)
}

/// The lines by request. Lines that tell their trace only belong to the one request of it whose id others tell.
fn gather(logs: Vec<ReceivedLog>) -> Vec<Log> {
    let ids: BTreeSet<String> = logs.iter().filter_map(|arrived| arrived.log.request_id.clone()).collect();
    let only = if ids.len() == 1 { ids.into_iter().next() } else { None };
    let mut lines: BTreeMap<Option<String>, (Vec<StreamEvent>, UnixNanos)> = BTreeMap::new();
    for ReceivedLog { received_at, log } in logs {
        let request_id = log.request_id.or_else(|| only.clone());
        let (held, last) = lines.entry(request_id).or_insert((Vec::new(), received_at));
        held.extend(log.lines);
        *last = received_at.max(*last);
    }
    let log = |(request_id, (lines, last_received))| Log { request_id, lines: distinct(lines), last_received };
    lines.into_iter().map(log).collect()
}

/// Each line once: by its sequence number, of several with one number the first by the client's clock; lines without a
/// number by all that they say.
fn distinct(lines: Vec<StreamEvent>) -> Vec<StreamEvent> {
    let rank = |line: &StreamEvent| (line.client_time.is_none(), *line);
    let mut numbered: BTreeMap<i64, StreamEvent> = BTreeMap::new();
    let mut others: BTreeSet<StreamEvent> = BTreeSet::new();
    for line in lines {
        let Some(seq) = line.seq else {
            others.insert(line);
            continue;
        };
        numbered.entry(seq).and_modify(|held| *held = std::cmp::min_by_key(*held, line, rank)).or_insert(line);
    }
    let mut lines: Vec<StreamEvent> = numbered.into_values().chain(others).collect();
    lines.sort_unstable_by_key(rank);
    lines
}

impl Log {
    fn is_done(&self) -> bool {
        self.of(EventKind::Done).next().is_some()
    }

    fn of(&self, kind: EventKind) -> impl Iterator<Item = &StreamEvent> {
        self.lines.iter().filter(move |line| line.kind == kind)
    }

    fn summary(&self, open: bool) -> LogSummary {
        let connect = self.of(EventKind::Connect).next();
        let started = connect.and_then(|connect| connect.client_time);
        let from_start = |at: Option<Nanos>| Some(at? - started?).filter(|time| *time >= Nanos::ZERO);
        let business: Vec<&StreamEvent> = self.of(EventKind::Business).collect();
        // A line without a time may have been the first, the last or between any two.
        let times: Option<Vec<Nanos>> = business.iter().map(|line| line.client_time).collect();
        let times = times.unwrap_or_default();
        let tokens: Option<Vec<i64>> = business.iter().map(|line| line.tokens).collect();
        let tokens = tokens.filter(|tokens| !tokens.is_empty());
        let after_first = tokens.as_ref().filter(|_| !times.is_empty()).and_then(|tokens| sum(&tokens[1..]));
        let seen = arrivals(&times, started);
        let stream = StreamSummary {
            business_events: Some(business.len() as i64),
            batched_events: batched(&business),
            done_received: if open { None } else { Some(self.is_done()) },
            last_seq: self.lines.iter().filter_map(|line| line.seq).max(),
            // A hole may still be filled.
            missing_seq: if open { None } else { self.missing() },
            last_event: from_start(times.last().copied()),
            tokens_after_first: after_first,
            ..seen
        };
        // Where the client saw most events come together, its clock may have been read too late to show it.
        let hidden = stream.mostly_batched() == Some(true) && seen.buffered_events == Some(0);
        let buffered_events = seen.buffered_events.filter(|_| !hidden);
        LogSummary {
            started_at: connect.and_then(StreamEvent::calendar_time),
            duration: if open { None } else { from_start(self.end()) },
            ttft: from_start(times.first().copied()),
            tokens: tokens.and_then(|tokens| sum(&tokens)),
            stream: StreamSummary { buffered_events, ..stream },
        }
    }

    /// The client's clock at the end marker; without one at the last line, since more is not known.
    fn end(&self) -> Option<Nanos> {
        if self.of(EventKind::Done).any(|line| line.client_time.is_none()) {
            return None;
        }
        self.lines.iter().filter_map(|line| line.client_time).max()
    }

    /// Numbers between the first and the highest that no line has. Streams count from 1; from 0 where a line says so.
    fn missing(&self) -> Option<i64> {
        let numbers: Option<Vec<i64>> = self.lines.iter().map(|line| line.seq).collect();
        let numbers = numbers?;
        let first = i64::from(!numbers.contains(&0));
        Some(numbers.iter().max()? - first + 1 - numbers.len() as i64)
    }
}

/// Tokens of all lines; `None` where no answer has so many.
fn sum(tokens: &[i64]) -> Option<i64> {
    tokens.iter().try_fold(0_i64, |sum, tokens| sum.checked_add(*tokens))
}

/// Business events that came together with another; `None` where no line tells.
fn batched(business: &[&StreamEvent]) -> Option<i64> {
    let batches_marked = business.iter().any(|line| line.batched.is_some());
    batches_marked.then(|| business.iter().filter(|line| line.batched == Some(true)).count() as i64)
}

/// What the arrivals of events at these times tell; without a start, the wait for the first is not known.
fn arrivals(times: &[Nanos], started: Option<Nanos>) -> StreamSummary {
    let Some(origin) = started.or_else(|| times.first().copied()) else { return StreamSummary::default() };
    let since: Vec<Nanos> = times.iter().map(|time| *time - origin).collect();
    StreamSummary::of_arrivals(&since)
}

impl LogSummary {
    /// Adds to a record what it does not tell itself.
    fn complete(&self, record: &mut ClientRecord) {
        record.ttft = record.ttft.or(self.ttft);
        record.streaming = record.streaming.or(Some(true));
        record.output_tokens = record.output_tokens.or(self.tokens);
        let StreamSummary {
            business_events,
            batched_events,
            p50_gap,
            p95_gap,
            p99_gap,
            max_gap,
            gaps_over_1s,
            done_received,
            last_seq,
            missing_seq,
            last_event,
            tokens_after_first,
            buffered_events,
            buffer_silence,
            buffer_burst,
        } = self.stream;
        let stream = record.stream.get_or_insert_default();
        stream.business_events = stream.business_events.or(business_events);
        stream.batched_events = stream.batched_events.or(batched_events);
        stream.p50_gap = stream.p50_gap.or(p50_gap);
        stream.p95_gap = stream.p95_gap.or(p95_gap);
        stream.p99_gap = stream.p99_gap.or(p99_gap);
        stream.max_gap = stream.max_gap.or(max_gap);
        stream.gaps_over_1s = stream.gaps_over_1s.or(gaps_over_1s);
        stream.done_received = stream.done_received.or(done_received);
        stream.last_seq = stream.last_seq.or(last_seq);
        stream.missing_seq = stream.missing_seq.or(missing_seq);
        stream.last_event = stream.last_event.or(last_event);
        stream.tokens_after_first = stream.tokens_after_first.or(tokens_after_first);
        stream.buffered_events = stream.buffered_events.or(buffered_events);
        stream.buffer_silence = stream.buffer_silence.or(buffer_silence);
        stream.buffer_burst = stream.buffer_burst.or(buffer_burst);
    }

    /// The log as the client's observation.
    fn record(&self, trace_id: TraceId, request_id: Option<String>) -> ClientRecord {
        let whole = self.stream.done_received == Some(true) && self.stream.missing_seq.unwrap_or(0) == 0;
        let result = if whole { ResultClass::Ok } else { ResultClass::Truncated };
        ClientRecord {
            request_id,
            started_at: self.started_at,
            duration: self.duration,
            ttft: self.ttft,
            streaming: Some(true),
            output_tokens: self.tokens,
            stream: Some(self.stream),
            ..ClientRecord::unmeasured(trace_id, result)
        }
    }
}
