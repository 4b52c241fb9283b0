//! How new rows of a trace follow its old ones.

use crate::store::RequestRow;
use model::{Flag, SpanId, State};

/// Makes new rows of a trace follow its old ones; `None` where they say the same. Else the requests, by their client's
/// span, that say what they said: only others of their trace have changed.
pub(super) fn supersede(before: &[RequestRow], rows: &mut [RequestRow]) -> Option<Vec<Option<SpanId>>> {
    let contents = |rows: &[RequestRow]| {
        let mut contents: Vec<i64> = rows.iter().map(|row| row.content).collect();
        contents.sort_unstable();
        contents
    };
    if contents(before) == contents(rows) {
        return None;
    }
    let mut unchanged = Vec::new();
    for row in rows {
        let client_span = row.request.client_span;
        if follow(before.iter().filter(|old| old.request.client_span == client_span), row) {
            unchanged.push(client_span);
        }
    }
    Some(unchanged)
}

/// Counts a row's revisions, and returns whether it says what it said. One that waits for its other side has not been
/// joined: its revision is 0, and what completes it is not late.
fn follow<'a>(before: impl Iterator<Item = &'a RequestRow> + Clone, row: &mut RequestRow) -> bool {
    let last = before.clone().map(|old| old.revision).max().unwrap_or(0);
    let unchanged = before.clone().any(|old| old.content == row.content);
    let late = before.clone().any(|old| old.request.flags.has(Flag::Late)) || (last > 0 && !unchanged);
    let waits = row.request.state == State::Pending && last == 0;
    row.revision = if unchanged || waits { last } else { last + 1 };
    row.request.flags.set_if(late, Flag::Late);
    unchanged
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::workers::join::observer::Written;
    use model::{ClientSide, Dimensions, Flags, JoinMethod, Nanos, Rates, Request, TraceId, UnixNanos};

    fn id(number: u64) -> SpanId {
        SpanId::from_bytes(number.to_be_bytes()).expect("not zero")
    }

    fn row(duration: i64, client: u64, state: State, revision: i32) -> RequestRow {
        let request = Request {
            trace_id: TraceId::from_bytes([7; 16]).expect("not zero"),
            server_trace: None,
            request_id: None,
            client_span: Some(id(client)),
            window_at: UnixNanos(5),
            state,
            result: None,
            flags: Flags::NONE,
            join_method: JoinMethod::TraceId,
            client: Some(ClientSide { duration: Some(Nanos(duration)), ..ClientSide::default() }),
            server: None,
            network_envelope: None,
            wall_envelope: None,
            phases: None,
            ttft: None,
            rates: Rates::default(),
            stream: None,
            completeness: None,
            input_tokens: None,
            output_tokens: None,
            client_dimensions: Dimensions::default(),
            dimensions: Dimensions::default(),
        };
        RequestRow::new(request, UnixNanos(5), revision)
    }

    fn after(before: &[RequestRow], row: RequestRow) -> (bool, i32, bool) {
        let mut rows = [row];
        let changed = supersede(before, &mut rows).is_some();
        (changed, rows[0].revision, rows[0].request.flags.has(Flag::Late))
    }

    #[test]
    fn a_first_join_is_revision_one_and_not_late() {
        assert_eq!(after(&[], row(10, 9, State::Matched, 0)), (true, 1, false));
        let waiting = row(10, 9, State::Pending, 0);
        assert_eq!(after(&[], waiting.clone()), (true, 0, false));
        assert_eq!(after(&[waiting], row(10, 9, State::Matched, 0)), (true, 1, false));
    }

    #[test]
    fn new_content_is_a_late_revision_and_equal_content_is_none() {
        let joined = row(10, 9, State::Matched, 1);
        assert_eq!(after(std::slice::from_ref(&joined), row(10, 9, State::Matched, 0)), (false, 0, false));
        assert_eq!(after(&[joined], row(11, 9, State::Matched, 0)), (true, 2, true));
    }

    #[test]
    fn another_request_of_the_trace_does_not_make_a_row_late() {
        let joined = row(10, 9, State::Matched, 1);
        let mut rows = [joined.clone(), row(20, 8, State::Matched, 0)];
        let unchanged = supersede(&[joined], &mut rows).expect("a change");
        assert_eq!(rows.each_ref().map(|row| row.revision), [1, 1]);
        assert!(rows.iter().all(|row| !row.request.flags.has(Flag::Late)));

        let trace_id = rows[0].request.trace_id;
        let unchanged = unchanged.into_iter().map(|span| (trace_id, span)).collect();
        let written = Written::of(rows.to_vec(), &unchanged);
        let first: Vec<_> = written.first.iter().map(|row| row.request.client_span).collect();
        assert_eq!((first, written.corrections), (vec![Some(id(8))], 0));
    }

    #[test]
    fn what_waits_is_no_news_and_what_is_late_is_a_correction() {
        let waiting = row(10, 9, State::Pending, 0);
        assert_eq!(Written::of(vec![waiting], &HashSet::new()), Written::default());
        let mut late = [row(11, 9, State::Matched, 0)];
        supersede(&[row(10, 9, State::Matched, 1)], &mut late).expect("a change");
        assert_eq!(Written::of(late.to_vec(), &HashSet::new()), Written { first: Vec::new(), corrections: 1 });
    }
}
