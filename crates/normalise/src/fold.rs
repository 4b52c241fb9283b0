//! What bounds a trace: messages that an ASGI server traces once a chunk, and more spans than are kept.

use std::collections::{HashMap, HashSet};

use super::dialect::http::{AsgiMessage, asgi_message};
use model::{Nanos, Span, SpanId};

/// Keeps of an ASGI server's messages only the first and the last that each parent sent of a kind, which tell when the
/// answer began and ended. Returns how many were folded away.
pub fn messages(spans: &mut Vec<Span>) -> u64 {
    if !spans.iter().any(|span| asgi_message(span).is_some()) {
        return 0;
    }
    let mut ends: HashMap<(Option<SpanId>, bool), (usize, usize)> = HashMap::new();
    for (at, span) in spans.iter().enumerate() {
        let Some(AsgiMessage::Send { body }) = asgi_message(span) else { continue };
        let (first, last) = ends.entry((span.parent, body)).or_insert((at, at));
        let order = |at: usize| (spans[at].start, spans[at].span_id);
        if order(at) < order(*first) {
            *first = at;
        }
        if order(at) > order(*last) {
            *last = at;
        }
    }
    let kept: HashSet<SpanId> =
        ends.into_values().flat_map(|(first, last)| [spans[first].span_id, spans[last].span_id]).collect();
    let before = spans.len();
    spans.retain(|span| asgi_message(span).is_none() || kept.contains(&span.span_id));
    (before - spans.len()) as u64
}

/// Keeps the longest spans, of equal ones those with the smaller id, in the order in which they stood. Returns how many
/// were dropped.
pub fn longest(spans: &mut Vec<Span>, limit: usize) -> usize {
    if spans.len() <= limit {
        return 0;
    }
    // A span without a length tells the least.
    let length = |span: &Span| span.interval().map_or(Nanos(-1), |interval| interval.length());
    let mut order: Vec<usize> = (0..spans.len()).collect();
    order.sort_by(|&a, &b| {
        length(&spans[b]).cmp(&length(&spans[a])).then_with(|| spans[a].span_id.cmp(&spans[b].span_id))
    });
    let mut kept = vec![false; spans.len()];
    for &at in order.iter().take(limit) {
        kept[at] = true;
    }
    let dropped = spans.len() - limit;
    let mut verdicts = kept.into_iter();
    spans.retain(|_| verdicts.next().unwrap_or(false));
    dropped
}
