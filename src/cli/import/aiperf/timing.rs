//! Which of AIPerf's times are disjoint, and what that makes as a record's durations.
//!
//! From `request_start_ns` a request waits for a connection, opens one where the pool has none, and is sent. AIPerf's
//! `sending` spans connecting too, so `http_req_total`, its sum, counts connecting twice. The disjoint parts are cut at
//! the instant when the connection is there: connecting has ended, or the pool has given one.

use super::line::{Exported, TraceData};
use crate::cli::record_line::{Millis, RecordLine, SetupLine};
use model::Nanos;

/// Fills in the durations of a record.
pub fn fill(record: &mut RecordLine, exported: &Exported) {
    let wall = between(exported.metadata.request_start_ns, exported.metadata.request_end_ns);
    let setup = setup(exported).filter(|(ready, _)| wall.is_some_and(|wall| *ready <= wall));
    let ready = setup.map(|(ready, _)| ready).unwrap_or_default();
    match setup {
        Some((_, parts)) => {
            record.setup = parts;
            record.duration_ms = wall.and_then(|wall| since(ready, wall));
        }
        None => record.wall_ms = wall.map(Millis),
    }
    record.client_queue_ms = queued(exported);
    record.headers_ms = offset(exported, exported.metadata.request_ack_ns).and_then(|at| since(ready, at));
    record.ttft_ms = exported.duration("time_to_first_token").and_then(|at| since(ready, at));
    record.ttft_visible_ms = exported.duration("time_to_first_output_token").and_then(|at| since(ready, at));
    if let Some(trace) = exported.trace_data.as_ref().filter(|_| setup.is_some()) {
        parts(record, exported, trace, ready);
    }
    if let Some(stream) = &mut record.stream {
        // AIPerf's latency ends at the last token, and the answer a little later.
        stream.last_event_ms = exported.duration("request_latency").and_then(|at| since(ready, at));
    }
}

/// How long after the start the connection was there, and of what that consists.
fn setup(exported: &Exported) -> Option<(Nanos, SetupLine)> {
    exported.trace_data.as_ref().and_then(|trace| by_times(exported, trace)).or_else(|| by_metrics(exported))
}

fn by_times(exported: &Exported, trace: &TraceData) -> Option<(Nanos, SetupLine)> {
    if let Some(reused) = offset(exported, trace.connection_reused_ns) {
        return Some((
            reused,
            SetupLine { blocked_ms: Some(Millis(reused)), connect_ms: ZERO, ..SetupLine::default() },
        ));
    }
    let from = offset(exported, trace.tcp_connect_start_ns)?;
    let to = offset(exported, trace.tcp_connect_end_ns)?;
    let dns = trace.dns_lookup_start_ns.zip(trace.dns_lookup_end_ns).and_then(|(from, to)| between(from, to));
    let blocked = from - dns.unwrap_or_default();
    let parts = SetupLine {
        blocked_ms: (blocked.0 >= 0).then_some(Millis(blocked)),
        dns_ms: dns.map(Millis),
        connect_ms: since(from, to),
        tls_ms: None,
    };
    parts.connect_ms.zip(parts.blocked_ms).map(|_| (to, parts))
}

/// Without the times the lengths of the parts are left, which do not overlap one another.
fn by_metrics(exported: &Exported) -> Option<(Nanos, SetupLine)> {
    let reused = exported.count("http_req_connection_reused") == Some(1);
    let connect = if reused { Some(Nanos(0)) } else { exported.duration("http_req_connecting") }?;
    let blocked = exported.duration("http_req_blocked");
    let dns = exported.duration("http_req_dns_lookup").filter(|_| !reused);
    let ready = connect + blocked.unwrap_or_default() + dns.unwrap_or_default();
    let connect_ms = Some(Millis(connect));
    Some((ready, SetupLine { blocked_ms: blocked.map(Millis), dns_ms: dns.map(Millis), connect_ms, tls_ms: None }))
}

const ZERO: Option<Millis> = Some(Millis(Nanos(0)));

/// Sending, waiting and receiving, which make up the duration. AIPerf's own `waiting` lasts until the first of the body.
fn parts(record: &mut RecordLine, exported: &Exported, trace: &TraceData, ready: Nanos) {
    let sent = offset(exported, trace.request_send_end_ns);
    let headers = offset(exported, trace.response_headers_received_ns);
    let end = offset(exported, Some(exported.metadata.request_end_ns));
    record.sending_ms = sent.and_then(|sent| since(ready, sent));
    record.waiting_ms = sent.zip(headers).and_then(|(sent, headers)| since(sent, headers));
    record.receiving_ms = headers.zip(end).and_then(|(headers, end)| since(headers, end));
}

/// Due to started: the client's own delay.
fn queued(exported: &Exported) -> Option<Millis> {
    between(exported.metadata.credit_issued_ns?, exported.metadata.request_start_ns).map(Millis)
}

/// A time as it lies after the request's start.
fn offset(exported: &Exported, at: Option<i64>) -> Option<Nanos> {
    between(exported.metadata.request_start_ns, at?)
}

fn since(from: Nanos, to: Nanos) -> Option<Millis> {
    (to >= from).then(|| Millis(to - from))
}

fn between(from: i64, to: i64) -> Option<Nanos> {
    to.checked_sub(from).filter(|length| *length >= 0).map(Nanos)
}
