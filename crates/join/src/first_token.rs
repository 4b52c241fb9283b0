//! The server's time to the first token (design, section 2, "Streaming: two pairs").

use super::paint::Painting;
use super::tree::{Forest, Place};
use model::reading::{FirstToken, FirstTokenSource, SubPhase};
use model::{Flag, Flags, Interval, Nanos};

/// A span's own clock readings may disagree by this part of its length (5 %).
const CLOCK_ERROR: i64 = 20;

/// Start of the entry span to the first token. An event on the entry span, or on a span that writes the answer, is
/// trusted most; then an attribute of the entry span; then what an inner span saw, carried up by where that span lies.
pub fn server_ttft(
    forest: &Forest,
    entry: Place,
    server: Interval,
    painting: &Painting,
    flags: &mut Flags,
) -> Option<Nanos> {
    let from_entry = |place: Place| -> Option<(FirstToken, Nanos)> {
        let node = forest.node(place);
        let token = node.reading.first_token.filter(|_| !inside_prefill(forest, place))?;
        let start = node.interval?.start + painting.shift(place)?;
        Some((token, start + token.offset - server.start))
    };
    let tokens: Vec<(Place, FirstToken, Nanos)> =
        painting.places().into_iter().filter_map(|place| from_entry(place).map(|(t, at)| (place, t, at))).collect();
    let on_entry_clock = |place: Place| forest.is_on_clock_of(entry, place);
    let writes = |place: Place| place == entry || (forest.node(place).reading.writes_response && on_entry_clock(place));
    let is_event = |token: &FirstToken| matches!(token.source, FirstTokenSource::Event | FirstTokenSource::ChunkEvent);
    let event = tokens.iter().filter(|(place, token, _)| writes(*place) && is_event(token)).min_by_key(|(.., at)| *at);
    let attribute = || tokens.iter().find(|(place, ..)| *place == entry);
    let own = event.or_else(attribute);
    let depth = |place: Place| forest.ancestors(place).take_while(|up| *up != entry).count();
    // The entry's own clock before what is laid by equal margins; then the outermost, which wrote last.
    let outermost =
        |(place, token, at): &&(Place, FirstToken, Nanos)| (!on_entry_clock(*place), depth(*place), token.source, *at);
    // The entry's own token is bounded by the server's end, which may lie past the entry span's.
    let lies_inside_its_span = |(place, token, _): &&(Place, FirstToken, Nanos)| {
        let length = forest.node(*place).interval.map(Interval::length);
        length.is_none_or(|length| token.offset.0 <= length.0.saturating_add(length.0 / CLOCK_ERROR))
    };
    let inner = || tokens.iter().filter(lies_inside_its_span).min_by_key(outermost);
    let body = || forest.body_sends(entry).map(|sends| sends.start - server.start);
    let (is_own, at) = match own {
        Some((.., at)) => (true, Some(*at)),
        None => (false, inner().map(|(.., at)| *at).or_else(body)),
    };
    let inside = at.filter(|at| *at >= Nanos::ZERO && *at <= server.length());
    flags.set_if(inside.is_none() && !tokens.is_empty(), Flag::NoFirstToken);
    flags.set_if(inside.is_some() && !is_own, Flag::TtftFromInner);
    inside
}

/// Whether it lies inside a span that is a prefill as a whole, such as a prefill worker's: what that makes goes to the
/// worker that decodes, not to the client.
fn inside_prefill(forest: &Forest, place: Place) -> bool {
    forest.ancestors(place).any(|up| forest.node(up).reading.sub == Some(SubPhase::Prefill))
}
