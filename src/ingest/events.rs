//! Lines of event logs, gathered by request.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::model::{Alias, EventLog, Side, StreamEvent, TraceId};
use crate::normalise::{self, ParsedEvent};
use crate::receive::intake::{RawRecord, RecordOutcome, RejectedRecord};
use crate::store::Arrival;

/// Most lines of one stored row. A longer log is stored in parts, far below the bound of a row's bytes.
const LINES_PER_ARRIVAL: usize = 10_000;

/// A stored row to be, and how many lines of the upload it stands for.
pub struct Gathered {
    /// The row.
    pub arrival: Arrival,
    /// Its lines; none of an alias.
    pub lines: u64,
}

/// Reads the lines of an upload. The outcome counts what is refused, and as duplicates the lines that say no more than
/// another of this upload.
pub fn gather(raw: Vec<RawRecord>) -> (Vec<Gathered>, RecordOutcome) {
    let mut outcome = RecordOutcome::default();
    let mut lines = Vec::with_capacity(raw.len());
    for (index, raw) in raw.into_iter().enumerate() {
        match read(raw) {
            Ok(line) => {
                outcome.ignored_fields += line.ignored_fields;
                lines.push(line);
            }
            Err((field, reason)) => outcome.rejected.push(RejectedRecord { index, field, reason }),
        }
    }
    let mut gathered = Vec::new();
    for log in logs(lines) {
        outcome.duplicates += store(log, &mut gathered);
    }
    (gathered, outcome)
}

fn read(raw: RawRecord) -> Result<ParsedEvent, (String, String)> {
    let raw = raw.map_err(|reason| (String::new(), reason))?;
    normalise::event(&raw).map_err(|error| (error.field, error.reason))
}

/// The logs of some lines. A line that tells only the request id belongs to the one trace that other lines of that id
/// tell, where there is one.
fn logs(lines: Vec<ParsedEvent>) -> Vec<EventLog> {
    let mut traces: HashMap<String, BTreeSet<TraceId>> = HashMap::new();
    for line in &lines {
        if let (Some(request_id), Some(trace_id)) = (&line.request_id, line.trace_id) {
            traces.entry(request_id.clone()).or_default().insert(trace_id);
        }
    }
    let only_trace = |request_id: &String| {
        let mut told = traces.get(request_id)?.iter();
        told.next().copied().filter(|_| told.next().is_none())
    };
    let mut logs: BTreeMap<(TraceId, Option<String>), Vec<StreamEvent>> = BTreeMap::new();
    for ParsedEvent { request_id, trace_id, event, .. } in lines {
        let told = trace_id.or_else(|| request_id.as_ref().and_then(only_trace));
        // A line without either id is refused when it is read.
        let Some(trace_id) = told.or_else(|| request_id.as_deref().map(TraceId::of_request_id)) else { continue };
        logs.entry((trace_id, request_id)).or_default().push(event);
    }
    logs.into_iter().map(|((trace_id, request_id), lines)| EventLog { trace_id, request_id, lines }).collect()
}

/// Adds the rows of a log, and says how many of its lines another one makes superfluous.
fn store(log: EventLog, gathered: &mut Vec<Gathered>) -> u64 {
    let EventLog { trace_id, request_id, lines } = log;
    let came = lines.len();
    let distinct: BTreeSet<StreamEvent> = lines.into_iter().collect();
    let duplicates = came - distinct.len();
    let lines: Vec<StreamEvent> = distinct.into_iter().collect();
    let since = lines.iter().filter_map(StreamEvent::calendar_time).min();
    if let Some(request_id) = &request_id
        && trace_id != TraceId::of_request_id(request_id)
    {
        let alias = Arrival::alias(request_id, Alias { side: Side::Client, trace_id }, since);
        gathered.push(Gathered { arrival: alias, lines: 0 });
    }
    for part in lines.chunks(LINES_PER_ARRIVAL) {
        let arrival = Arrival::events(&EventLog { trace_id, request_id: request_id.clone(), lines: part.to_vec() });
        gathered.push(Gathered { arrival, lines: part.len() as u64 });
    }
    duplicates as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::ArrivalKind;

    const TRACE: &str = "dddddddddddddddddddddddddddddddd";

    fn gathered(lines: &[String]) -> (Vec<Gathered>, RecordOutcome) {
        gather(lines.iter().map(|line| serde_json::from_str(line).map_err(|error| error.to_string())).collect())
    }

    fn line(request: &str, seq: u32, more: &str) -> String {
        format!(r#"{{"request_id":"{request}","event_seq":{seq},"event_type":"business"{more}}}"#)
    }

    fn keys(gathered: &[Gathered]) -> Vec<(String, ArrivalKind, u64)> {
        gathered.iter().map(|row| (hex::encode(row.arrival.key), row.arrival.kind, row.lines)).collect()
    }

    #[test]
    fn one_line_that_tells_the_trace_tells_it_for_its_request() {
        let (rows, outcome) =
            gathered(&[line("a", 2, ""), line("a", 1, &format!(r#","trace_id":"{TRACE}""#)), line("b", 1, "")]);
        let of_a = TraceId::of_request_id("a").to_string();
        let of_b = TraceId::of_request_id("b").to_string();
        let mut found = keys(&rows);
        found.sort_by_key(|row| (row.2, row.0.clone()));
        let mut wanted = vec![
            (of_a, ArrivalKind::Alias, 0),
            (of_b, ArrivalKind::Events, 1),
            (TRACE.to_owned(), ArrivalKind::Events, 2),
        ];
        wanted.sort_by_key(|row| (row.2, row.0.clone()));
        assert_eq!(found, wanted);
        assert_eq!((outcome.duplicates, outcome.rejected.len()), (0, 0));
    }

    #[test]
    fn a_request_id_of_two_traces_tells_nothing_of_a_line_without_one() {
        let other = TRACE.replace('d', "e");
        let told = |trace: &str| format!(r#","trace_id":"{trace}""#);
        let (rows, _) = gathered(&[line("a", 1, &told(TRACE)), line("a", 1, &told(&other)), line("a", 2, "")]);
        let of_a = TraceId::of_request_id("a").to_string();
        let events = keys(&rows).into_iter().filter(|row| row.1 == ArrivalKind::Events);
        let lines: BTreeMap<String, u64> = events.map(|row| (row.0, row.2)).collect();
        assert_eq!(lines, BTreeMap::from([(TRACE.to_owned(), 1), (other, 1), (of_a, 1)]));
    }

    #[test]
    fn copies_and_bad_lines_are_counted_and_the_rest_is_kept() {
        let (rows, outcome) = gathered(&[line("a", 1, ""), line("a", 1, ""), line("a", 2, r#","event_type":7"#)]);
        assert_eq!(rows.iter().map(|row| row.lines).sum::<u64>(), 1);
        assert_eq!(outcome.duplicates, 1);
        assert_eq!((outcome.rejected.len(), outcome.rejected[0].index), (1, 2));
    }

    #[test]
    fn a_long_log_is_stored_in_parts() {
        let lines: Vec<String> = (0..=LINES_PER_ARRIVAL as u32).map(|seq| line("a", seq, "")).collect();
        let sizes: Vec<u64> = gathered(&lines).0.iter().map(|row| row.lines).collect();
        assert_eq!(sizes, [LINES_PER_ARRIVAL as u64, 1]);
    }
}
