//! One copy of each span, whatever the order of arrival (design, section 3, rule 1).

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::canonical;
use model::{Flag, Flags, Fragment, Nanos, Span, SpanId};

/// The spans of a trace, one copy each, by span id.
pub struct Copies {
    /// The copies that won.
    pub spans: Vec<Span>,
    /// What choosing them showed.
    pub flags: Flags,
}

/// Chooses one copy of each span and keeps at most `limit` spans: the longest, since those explain the most.
pub fn choose(fragments: Vec<Fragment>, limit: usize) -> Copies {
    let mut flags = Flags::NONE;
    let mut chosen: BTreeMap<SpanId, Span> = BTreeMap::new();
    for fragment in fragments {
        flags.set_if(fragment.dropped > 0, Flag::TraceTooLarge);
        for span in fragment.spans {
            flags.set_if(span.repaired, Flag::TextRepaired);
            match chosen.entry(span.span_id) {
                Entry::Vacant(vacant) => {
                    vacant.insert(span);
                }
                Entry::Occupied(mut held) => {
                    let both_ended = span.end.is_some() && held.get().end.is_some();
                    let order = compare(&span, held.get());
                    flags.set_if(both_ended && order != Ordering::Equal, Flag::ConflictingDuplicate);
                    if order == Ordering::Greater {
                        held.insert(span);
                    }
                }
            }
        }
    }
    let mut spans: Vec<Span> = chosen.into_values().collect();
    if spans.len() > limit {
        flags.set(Flag::TraceTooLarge);
        spans.sort_by_key(|span| (Reverse(length(span)), span.span_id));
        spans.truncate(limit);
        spans.sort_by_key(|span| span.span_id);
    }
    Copies { spans, flags }
}

fn length(span: &Span) -> Option<Nanos> {
    span.interval().map(|interval| interval.length())
}

/// The greater copy wins: the one with an end, then the later end, then the earlier start, then the greater bytes.
fn compare(left: &Span, right: &Span) -> Ordering {
    left.end
        .cmp(&right.end)
        .then_with(|| right.start.cmp(&left.start))
        .then_with(|| canonical::canonical(left).cmp(&canonical::canonical(right)))
        .then_with(|| left.resource.digest.cmp(&right.resource.digest))
        .then_with(|| left.scope.name.cmp(&right.scope.name))
}
