//! A request as k6 measured it, turned into a client record.

use super::group::Group;
use super::identity::Identity;
use super::labels::{self, TagRule};
use super::point::{Labels, Part};
use super::stream::Stream;
use crate::cli::record_line::{Millis, RecordLine, SetupLine};
use model::{Nanos, ResultClass, UnixNanos};

/// A request that has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// When asking for a connection began, where k6 tells it; else when sending began.
    pub start: UnixNanos,
    pub end: UnixNanos,
    /// The status, where k6 was not told to leave it out.
    pub status: Option<i64>,
    /// Why it is not wanted, if it is not.
    pub left_out: Option<&'static str>,
    pub line: RecordLine,
}

impl Request {
    /// From its points; `None` without a duration. `time` is the end, so sending began a duration before it.
    pub fn new(group: &Group, identity: &Identity, stream: Option<Stream>, rules: &[TagRule]) -> Option<Self> {
        let duration = millis(group, Part::Duration)?;
        let status = group.labels.tag("status").and_then(|status| status.parse().ok());
        let mut line = line(identity, &group.labels, rules);
        line.started_at = Some(group.time - duration.0);
        match stream {
            Some(stream) => {
                line.wall_ms = Some(duration);
                stream.write_into(group.time - duration.0, &mut line);
            }
            None => measured(group, status, duration, &mut line),
        }
        line.status = status.or_else(|| unanswered_stream(&line).then_some(0));
        outcome(group, &mut line);
        let blocked = millis(group, Part::Blocked).map_or(Nanos::ZERO, |blocked| blocked.0);
        let start = group.time - duration.0 - blocked;
        Some(Self { start, end: group.time, status, left_out: None, line })
    }
}

/// A record with the ids and labels of a point.
pub fn line(identity: &Identity, labels: &Labels, rules: &[TagRule]) -> RecordLine {
    let traceparent = identity.traceparent();
    let alone = traceparent.is_none();
    let mut line = RecordLine {
        trace_id: alone.then_some(identity.trace_id),
        span_id: identity.span_id.filter(|_| alone),
        traceparent,
        ..RecordLine::default()
    };
    labels::fill(&mut line, labels, rules);
    line
}

/// A duration of the group; a negative one is none.
fn millis(group: &Group, part: Part) -> Option<Millis> {
    group.part(part).filter(|millis| *millis >= 0.0).and_then(Millis::new)
}

/// The times of k6/http. Where no connection was had k6 writes 0 for each of them, and where no answer came it counts the
/// time until it gave up as waiting for one.
fn measured(group: &Group, status: Option<i64>, duration: Millis, line: &mut RecordLine) {
    let failed = status == Some(0);
    if failed && duration.0 == Nanos::ZERO {
        return;
    }
    line.duration_ms = Some(duration);
    line.setup = setup(group);
    line.sending_ms = millis(group, Part::Sending);
    let receiving = millis(group, Part::Receiving);
    if failed && receiving.is_none_or(|receiving| receiving.0 == Nanos::ZERO) {
        return;
    }
    line.waiting_ms = millis(group, Part::Waiting);
    line.receiving_ms = receiving;
    line.headers_ms = line.sending_ms.zip(line.waiting_ms).map(|(sending, waiting)| Millis(sending.0 + waiting.0));
}

/// k6's own `blocked` holds connecting and the TLS handshake, and the look-up of the name, which it does not tell.
fn setup(group: &Group) -> SetupLine {
    let (connect_ms, tls_ms) = (millis(group, Part::Connecting), millis(group, Part::Tls));
    let parts = connect_ms.zip(tls_ms).map(|(connect, tls)| connect.0 + tls.0);
    let blocked = millis(group, Part::Blocked).zip(parts).map(|(blocked, parts)| blocked.0 - parts);
    SetupLine { blocked_ms: blocked.map(|blocked| Millis(blocked.max(Nanos::ZERO))), dns_ms: None, connect_ms, tls_ms }
}

/// xk6-sse writes no status where there was no answer.
fn unanswered_stream(line: &RecordLine) -> bool {
    line.wall_ms.is_some() && line.ttft_ms.is_none()
}

fn outcome(group: &Group, line: &mut RecordLine) {
    match line.status {
        Some(0) => line.error = Some(error_class(group.labels.tag("error_code"))),
        None if group.part(Part::Failed) == Some(1.0) => {
            line.result = Some(ResultClass::Error);
            line.error = Some(error_class(group.labels.tag("error_code")));
        }
        _ => {}
    }
}

/// k6's error codes, as its documentation lists them.
fn error_class(code: Option<&str>) -> String {
    let class = match code {
        None => "no_answer",
        Some("1050") => "timeout",
        Some("1100") => "dns",
        Some("1101") => "no_such_host",
        Some("1110" | "1111") => "blocked_by_k6",
        Some("1201") => "broken_pipe",
        Some("1211") => "connect_timeout",
        Some("1212") => "connection_refused",
        Some("1220") => "connection_reset",
        Some("1310" | "1311") => "certificate",
        Some(code) if code.len() == 4 && code.bytes().all(|byte| byte.is_ascii_digit()) => return format!("k6_{code}"),
        Some(_) => "k6_unknown",
    };
    class.to_owned()
}
