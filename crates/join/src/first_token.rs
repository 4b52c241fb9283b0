//! The server's time to the first token (design, section 2, "Streaming: two pairs").

use super::paint::Painting;
use super::tree::{Forest, Place};
use model::reading::{FirstToken, FirstTokenSource, SubPhase};
use model::{Flag, Flags, Interval, Nanos};

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
    let writes = |place: Place| place == entry || forest.node(place).reading.writes_response;
    let is_event = |token: &FirstToken| matches!(token.source, FirstTokenSource::Event | FirstTokenSource::ChunkEvent);
    let event = tokens.iter().filter(|(place, token, _)| writes(*place) && is_event(token)).map(|(.., at)| *at).min();
    let attribute = || tokens.iter().find(|(place, ..)| *place == entry).map(|(.., at)| *at);
    if let Some(at) = event.or_else(attribute) {
        return Some(at);
    }
    let inner = tokens.into_iter().map(|(_, token, at)| (token.source, at)).min().map(|(_, at)| at);
    let body = || Some(forest.body_sends(entry)?.start - server.start);
    let found = inner.or_else(body);
    flags.set_if(found.is_some(), Flag::TtftFromInner);
    found
}

/// Whether it lies inside a span that is a prefill as a whole, such as a prefill worker's: what that makes goes to the
/// worker that decodes, not to the client.
fn inside_prefill(forest: &Forest, place: Place) -> bool {
    forest.ancestors(place).any(|up| forest.node(up).reading.sub == Some(SubPhase::Prefill))
}
