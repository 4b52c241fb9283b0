//! By which id each request of an AIPerf file is found.

use crate::cli::record_line::RecordLine;

/// Without headers there is no trace id, and without an id of the request nothing at all.
pub const NO_ID: &str = "it has neither a traceparent nor an x_request_id; run AIPerf under opentelemetry-instrument with \
                         --export-http-trace, so that each request carries a traceparent of its own and the file keeps it";
/// With one header for all, all requests are one trace.
pub const CONSTANT: &str = "its traceparent is that of the requests beside it, and it has no x_request_id; leave out \
                            -H traceparent and run AIPerf under opentelemetry-instrument with --export-http-trace";

/// Holds the first record back until the second shows whether each request has a traceparent of its own: `-H` gives all
/// requests the same, and joined by it they would be taken for one.
#[derive(Debug, Default)]
pub struct Ids {
    state: State,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Unknown,
    Held(Box<RecordLine>),
    Own,
    Constant,
}

/// A record that can be found, or why not.
pub type Found = Result<RecordLine, &'static str>;

impl Ids {
    /// Takes a record, gives those of which it is known by now how they are found.
    pub fn take(&mut self, line: RecordLine) -> Vec<Found> {
        if line.traceparent.is_none() {
            return vec![if line.trace_id.is_some() || line.request_id.is_some() { Ok(line) } else { Err(NO_ID) }];
        }
        match std::mem::take(&mut self.state) {
            State::Unknown => {
                self.state = State::Held(Box::new(line));
                Vec::new()
            }
            State::Held(first) if first.traceparent == line.traceparent => {
                self.state = State::Constant;
                vec![by_request_id(*first), by_request_id(line)]
            }
            State::Held(first) => {
                self.state = State::Own;
                vec![Ok(*first), Ok(line)]
            }
            State::Own => {
                self.state = State::Own;
                vec![Ok(line)]
            }
            State::Constant => {
                self.state = State::Constant;
                vec![by_request_id(line)]
            }
        }
    }

    /// The record that is still held back, at the end of the file.
    pub fn last(self) -> Option<RecordLine> {
        match self.state {
            State::Held(line) => Some(*line),
            _ => None,
        }
    }
}

fn by_request_id(mut line: RecordLine) -> Found {
    line.traceparent = None;
    if line.request_id.is_some() { Ok(line) } else { Err(CONSTANT) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(traceparent: Option<&str>, request_id: Option<&str>) -> RecordLine {
        let [traceparent, request_id] = [traceparent, request_id].map(|id| id.map(str::to_owned));
        RecordLine { traceparent, request_id, ..RecordLine::default() }
    }

    #[test]
    fn a_traceparent_of_its_own_is_kept() {
        let mut ids = Ids::default();
        assert_eq!(ids.take(line(Some("a"), Some("1"))), []);
        assert_eq!(ids.take(line(None, Some("2"))), [Ok(line(None, Some("2")))]);
        let both = [Ok(line(Some("a"), Some("1"))), Ok(line(Some("b"), None))];
        assert_eq!(ids.take(line(Some("b"), None)), both);
        assert_eq!(ids.take(line(Some("b"), None)), [Ok(line(Some("b"), None))]);
        assert_eq!(ids.last(), None);
    }

    #[test]
    fn one_traceparent_for_all_is_no_id() {
        let mut ids = Ids::default();
        assert_eq!(ids.take(line(Some("a"), Some("1"))), []);
        assert_eq!(ids.take(line(Some("a"), None)), [Ok(line(None, Some("1"))), Err(CONSTANT)]);
        assert_eq!(ids.take(line(Some("a"), Some("3"))), [Ok(line(None, Some("3")))]);
        assert_eq!(ids.last(), None);
    }

    #[test]
    fn a_single_request_is_taken_at_its_word() {
        let mut ids = Ids::default();
        assert_eq!(ids.take(line(None, None)), [Err(NO_ID)]);
        assert_eq!(ids.take(line(Some("a"), None)), []);
        assert_eq!(ids.last(), Some(line(Some("a"), None)));
    }
}
