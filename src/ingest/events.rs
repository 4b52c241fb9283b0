//! Lines of event logs, gathered by request.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde_json::{Map, Value};

use crate::archive::{KeptLine, KeptLog};
use crate::receive::intake::{RawRecord, RecordOutcome, RejectedRecord};
use crate::store::Arrival;
use model::Key;
use model::{Alias, Side, StreamEvent, TraceId};
use normalise::{self, ExtraKeys, ParsedEvent};

/// Most lines of one stored row. A longer log is stored in parts, far below the bound of a row's bytes.
const LINES_PER_ARRIVAL: usize = 10_000;

/// A stored row to be, and the lines of the upload that it stands for.
pub struct Gathered {
    /// The row.
    pub arrival: Arrival,
    /// Its lines; none of an alias.
    pub log: KeptLog,
}

impl Gathered {
    fn new(log: KeptLog) -> Self {
        Self { arrival: Arrival::events(&log.log()), log }
    }

    /// How many lines it stands for.
    pub fn lines(&self) -> u64 {
        self.log.lines.len() as u64
    }

    /// Where the same lines may lie already: under the trace, or from before it was known under the request id.
    pub fn places(&self) -> impl Iterator<Item = Key> {
        let hub = self.log.request_id.as_deref().map(TraceId::of_request_id);
        let places = [Some(self.log.trace_id), hub.filter(|hub| *hub != self.log.trace_id)];
        places.into_iter().flatten().filter(|_| self.lines() > 0).map(|trace_id| *trace_id.as_bytes())
    }

    /// What is new of it, where `held` are the lines of its request that are stored; `None` where nothing is.
    pub fn without(mut self, held: &HashSet<StreamEvent>) -> Option<Self> {
        let came = self.lines();
        self.log.lines.retain(|(line, _)| !held.contains(line));
        match self.lines() {
            left if left == came => Some(self),
            0 => None,
            _ => Some(Self::new(self.log)),
        }
    }
}

/// Reads the lines of an upload. The outcome counts what is refused, and as duplicates the lines that say no more than
/// another of this upload.
pub fn gather(raw: Vec<RawRecord>, extra: &ExtraKeys) -> (Vec<Gathered>, RecordOutcome) {
    let mut outcome = RecordOutcome::default();
    let mut lines = Vec::with_capacity(raw.len());
    for (index, raw) in raw.into_iter().enumerate() {
        match read(raw, extra) {
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

fn read(raw: RawRecord, extra: &ExtraKeys) -> Result<ParsedEvent, (String, String)> {
    let raw = raw.map_err(|reason| (String::new(), reason))?;
    normalise::event(&raw, extra).map_err(|error| (error.field, error.reason))
}

/// The logs of some lines. A line that tells only the request id belongs to the one trace that other lines of that id
/// tell, where there is one.
fn logs(lines: Vec<ParsedEvent>) -> Vec<KeptLog> {
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
    let mut logs: BTreeMap<(TraceId, Option<String>), Vec<KeptLine>> = BTreeMap::new();
    for ParsedEvent { request_id, trace_id, event, extra, .. } in lines {
        let told = trace_id.or_else(|| request_id.as_ref().and_then(only_trace));
        // A line without either id is refused when it is read.
        let Some(trace_id) = told.or_else(|| request_id.as_deref().map(TraceId::of_request_id)) else { continue };
        logs.entry((trace_id, request_id)).or_default().push((event, extra));
    }
    logs.into_iter().map(|((trace_id, request_id), lines)| KeptLog { trace_id, request_id, lines }).collect()
}

/// Adds the rows of a log, and says how many of its lines another one makes superfluous.
fn store(log: KeptLog, gathered: &mut Vec<Gathered>) -> u64 {
    let KeptLog { trace_id, request_id, lines } = log;
    let came = lines.len();
    let mut distinct: BTreeMap<StreamEvent, Map<String, Value>> = BTreeMap::new();
    for (line, extra) in lines {
        distinct.entry(line).or_insert(extra);
    }
    let duplicates = came - distinct.len();
    let lines: Vec<KeptLine> = distinct.into_iter().collect();
    let since = lines.iter().filter_map(|(line, _)| line.calendar_time()).min();
    if let Some(request_id) = &request_id
        && trace_id != TraceId::of_request_id(request_id)
    {
        let arrival = Arrival::alias(request_id, Alias { side: Side::Client, trace_id }, since);
        let log = KeptLog { trace_id, request_id: Some(request_id.clone()), lines: Vec::new() };
        gathered.push(Gathered { arrival, log });
    }
    for part in lines.chunks(LINES_PER_ARRIVAL) {
        gathered.push(Gathered::new(KeptLog { trace_id, request_id: request_id.clone(), lines: part.to_vec() }));
    }
    duplicates as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::ArrivalKind;

    const TRACE: &str = "dddddddddddddddddddddddddddddddd";

    fn gathered(lines: &[String]) -> (Vec<Gathered>, RecordOutcome) {
        let raw = lines.iter().map(|line| serde_json::from_str(line).map_err(|error| error.to_string()));
        gather(raw.collect(), &ExtraKeys::default())
    }

    fn line(request: &str, seq: u32, more: &str) -> String {
        format!(r#"{{"request_id":"{request}","event_seq":{seq},"event_type":"business"{more}}}"#)
    }

    fn keys(gathered: &[Gathered]) -> Vec<(String, ArrivalKind, u64)> {
        gathered.iter().map(|row| (hex::encode(row.arrival.key), row.arrival.kind, row.lines())).collect()
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
        assert_eq!(rows.iter().map(Gathered::lines).sum::<u64>(), 1);
        assert_eq!(outcome.duplicates, 1);
        assert_eq!((outcome.rejected.len(), outcome.rejected[0].index), (1, 2));
    }

    #[test]
    fn lines_that_are_stored_are_left_out_of_a_row() {
        let row = || gathered(&[line("a", 1, ""), line("a", 2, "")]).0.remove(0);
        let [first, second] = [0, 1].map(|place| row().log.lines[place].0);
        let rest = row().without(&HashSet::from([first])).expect("one is new");
        assert_eq!(rest.log.lines.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [second]);
        assert_ne!(rest.arrival.identity, row().arrival.identity);
        assert!(row().without(&HashSet::from([first, second])).is_none());
    }

    #[test]
    fn a_long_log_is_stored_in_parts() {
        let lines: Vec<String> = (0..=LINES_PER_ARRIVAL as u32).map(|seq| line("a", seq, "")).collect();
        let sizes: Vec<u64> = gathered(&lines).0.iter().map(Gathered::lines).collect();
        assert_eq!(sizes, [LINES_PER_ARRIVAL as u64, 1]);
    }
}
