//! The first token, in the spellings of many systems. The unit is part of the spelling.

use super::durations::part;
use super::{FirstToken, FirstTokenSource, Reading};
use crate::scalar;
use model::{Nanos, Span, Value};

const EVENTS: &[(&str, FirstTokenSource)] = &[
    ("first_token", FirstTokenSource::Event),
    ("llm.first_token", FirstTokenSource::Event),
    ("gen_ai.first_token", FirstTokenSource::Event),
    (OPENINFERENCE, FirstTokenSource::FirstChunk),
    ("ai.stream.firstChunk", FirstTokenSource::FirstChunk),
    ("gen_ai.content.completion.chunk", FirstTokenSource::ChunkEvent),
    ("llm.content.completion.chunk", FirstTokenSource::ChunkEvent),
    ("gen_ai.content.chunk", FirstTokenSource::ChunkEvent),
];

const OPENINFERENCE: &str = "First Token Stream Event";

/// A metric in seconds that some write on spans.
const SERVER_METRIC: &str = "gen_ai.server.time_to_first_token";

type Read = fn(&Value) -> Option<Nanos>;

const ATTRIBUTES: &[(&str, Read, FirstTokenSource)] = &[
    ("llm.ttft_ms", scalar::millis, FirstTokenSource::Attribute),
    ("ttft_ms", scalar::millis, FirstTokenSource::Attribute),
    ("time_to_first_token_ms", scalar::millis, FirstTokenSource::Attribute),
    ("gen_ai.latency.time_to_first_token", scalar::seconds, FirstTokenSource::Attribute),
    ("vllm.latency.ttft", scalar::seconds, FirstTokenSource::Attribute),
    (SERVER_METRIC, scalar::seconds, FirstTokenSource::Attribute),
    ("gen_ai.server.ttft", scalar::seconds, FirstTokenSource::Attribute),
    ("gen_ai.response.time_to_first_chunk", scalar::seconds, FirstTokenSource::FirstChunk),
    ("gen_ai.response.time_to_first_token", scalar::seconds, FirstTokenSource::FirstChunk),
    ("ai.response.msToFirstChunk", scalar::millis, FirstTokenSource::FirstChunk),
];

/// The attributes read here.
pub fn keys() -> impl Iterator<Item = &'static str> {
    ATTRIBUTES.iter().map(|(key, ..)| *key)
}

pub fn events() -> impl Iterator<Item = &'static str> {
    EVENTS.iter().map(|(name, _)| *name)
}

/// Fills in the most trusted first token, where the dialect has not told one.
pub fn fill(span: &Span, reading: &mut Reading) {
    if reading.first_token.is_some() || reading.no_first_token {
        return;
    }
    let from_attributes = attributes(span, reading);
    let told = events_of(span).chain(from_attributes);
    reading.first_token = told.min_by_key(|token| (token.source, token.offset));
}

fn events_of(span: &Span) -> impl Iterator<Item = FirstToken> {
    span.events.iter().filter_map(|event| {
        let (name, source) = EVENTS.iter().find(|(name, _)| *name == event.name)?;
        let offset = event.at - span.start;
        let usable = offset >= Nanos::ZERO && !(*name == OPENINFERENCE && stamped_at_end(span, offset));
        usable.then_some(FirstToken { offset, source: *source })
    })
}

/// A producer that adds this event when the span ends, with the time of that, tells nothing by it.
fn stamped_at_end(span: &Span, offset: Nanos) -> bool {
    const CLOSE: Nanos = Nanos(1_000_000);
    span.interval().is_some_and(|span| offset > span.length() - CLOSE)
}

/// The first attribute that lies inside the span; else the first that does not, which the join takes for none.
fn attributes(span: &Span, reading: &mut Reading) -> Option<FirstToken> {
    let mut past_the_end = None;
    for (key, read, source) in ATTRIBUTES {
        let read = if *key == SERVER_METRIC && from_strands(span) { scalar::millis } else { *read };
        let Some(offset) = part(span, key, read, reading) else { continue };
        let token = FirstToken { offset, source: *source };
        if !beyond(offset, span) {
            return Some(token);
        }
        past_the_end = past_the_end.or(Some(token));
    }
    past_the_end
}

/// The Strands SDK writes that metric in milliseconds (checked in its tracer).
fn from_strands(span: &Span) -> bool {
    let system = ["gen_ai.system", "gen_ai.provider.name"].map(|key| span.attributes.get(key).and_then(scalar::text));
    span.scope.name.contains("strands") || system.into_iter().flatten().any(|system| system == "strands-agents")
}

/// Whether a first token lies past its span's end by more than clocks of one machine differ.
fn beyond(offset: Nanos, span: &Span) -> bool {
    span.interval().is_some_and(|span| offset.0 > span.length().0.saturating_add(span.length().0 / 20))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::{self, sample};
    use model::{Flag, SpanKind};

    fn read(attributes: &[(&'static str, Value)]) -> Reading {
        dialect::read(&sample::span("x", SpanKind::Internal, 2000, attributes))
    }

    #[test]
    fn every_spelling_has_its_unit() {
        for (key, value) in [
            ("llm.ttft_ms", Value::Int(400)),
            ("ttft_ms", sample::text("400")),
            ("time_to_first_token_ms", Value::Double(400.0)),
            ("gen_ai.latency.time_to_first_token", Value::Double(0.4)),
            ("gen_ai.response.time_to_first_chunk", Value::Double(0.4)),
        ] {
            assert_eq!(read(&[(key, value)]).first_token.map(|token| token.offset), Some(Nanos(400_000_000)), "{key}");
        }
    }

    #[test]
    fn another_unit_is_flagged_and_a_late_one_left_to_the_join() {
        let millis = read(&[("gen_ai.server.time_to_first_token", Value::Double(400.0))]);
        assert_eq!((millis.first_token, millis.flags.has(Flag::UnitSuspect)), (None, true));
        // Microseconds under a key that others write in seconds.
        let micros = read(&[("gen_ai.response.time_to_first_token", Value::Int(400_000))]);
        assert_eq!((micros.first_token, micros.flags.has(Flag::UnitSuspect)), (None, true));
        let late = read(&[("gen_ai.server.time_to_first_token", Value::Double(3.0))]);
        assert_eq!(late.first_token.map(|token| token.offset), Some(Nanos(3_000_000_000)), "past the end of its span");
        assert!(!late.flags.has(Flag::UnitSuspect));
    }

    #[test]
    fn the_strands_sdk_writes_milliseconds_under_a_key_of_seconds() {
        let span = sample::span("chat", SpanKind::Internal, 2000, &[(SERVER_METRIC, Value::Int(400))]);
        let reading = dialect::read(&sample::with_scope(span, "strands.telemetry.tracer"));
        assert_eq!(reading.first_token.map(|token| token.offset), Some(Nanos(400_000_000)));
        assert!(!reading.flags.has(Flag::UnitSuspect));
    }

    #[test]
    fn a_marking_event_goes_before_an_attribute_and_a_chunk_event_after_it() {
        let attributes = [("llm.ttft_ms", Value::Int(400))];
        let base = sample::span("x", SpanKind::Internal, 2000, &attributes);
        let chunk = sample::with_event(base, "gen_ai.content.completion.chunk", 100);
        assert_eq!(dialect::read(&chunk).first_token.map(|token| token.offset), Some(Nanos(400_000_000)));
        let marked = sample::with_event(chunk, "first_token", 300);
        assert_eq!(dialect::read(&marked).first_token.map(|token| token.offset), Some(Nanos(300_000_000)));
    }

    #[test]
    fn an_event_stamped_at_the_end_is_no_first_token() {
        let span = sample::span("ChatCompletion", SpanKind::Internal, 2000, &[]);
        let at_end = sample::with_event(span.clone(), OPENINFERENCE, 2000);
        assert_eq!(dialect::read(&at_end).first_token, None);
        let in_time = sample::with_event(span, OPENINFERENCE, 90);
        let source = dialect::read(&in_time).first_token.map(|token| token.source);
        assert_eq!(source, Some(FirstTokenSource::FirstChunk));
    }
}
