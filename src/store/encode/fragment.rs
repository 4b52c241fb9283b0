//! The stored form of the spans of one trace that arrived together.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use prost::Message;

use super::text::{TextWriter, read_text};
use super::{DecodeError, open, seal};
use model::{Attributes, Fragment, Resource, Scope, Span, SpanEvent, SpanId, SpanKind, UnixNanos, Value};

/// Lists without a remark have one member a span. The fields that almost every body has come first: their tags take one
/// byte.
#[derive(Message)]
struct Body {
    /// Texts without a fixed code.
    #[prost(string, repeated, tag = "1")]
    texts: Vec<String>,
    #[prost(fixed64, repeated, tag = "2")]
    span_ids: Vec<u64>,
    /// 0 none; 1 + n the n-th span; 1 + spans + n the n-th of `foreign_parents`.
    #[prost(uint32, repeated, tag = "3")]
    parents: Vec<u32>,
    #[prost(fixed64, repeated, tag = "4")]
    foreign_parents: Vec<u64>,
    #[prost(uint32, repeated, tag = "5")]
    names: Vec<u32>,
    /// Kind in the three lowest bits, then `OPEN`, `ERROR`, `REPAIRED`.
    #[prost(uint32, repeated, tag = "6")]
    traits: Vec<u32>,
    /// Start of the first span.
    #[prost(fixed64, tag = "7")]
    base: u64,
    /// Start less the start of the span before.
    #[prost(sint64, repeated, tag = "8")]
    starts: Vec<i64>,
    /// End less start; 0 where there is no end.
    #[prost(uint64, repeated, tag = "9")]
    durations: Vec<u64>,
    /// How many attributes; all events follow in `events`. Empty where no span has any.
    #[prost(uint32, repeated, tag = "10")]
    attribute_counts: Vec<u32>,
    #[prost(uint32, repeated, tag = "11")]
    scope_names: Vec<u32>,
    #[prost(fixed64, repeated, tag = "12")]
    resource_digests: Vec<u64>,
    #[prost(uint32, repeated, tag = "13")]
    resource_counts: Vec<u32>,
    /// Keys of all attributes: of the resources, then of each span and its events.
    #[prost(uint32, repeated, tag = "14")]
    keys: Vec<u32>,
    /// Values in the same order: type in the two lowest bits.
    #[prost(uint64, repeated, tag = "15")]
    values: Vec<u64>,
    /// Empty where no span has any.
    #[prost(uint32, repeated, tag = "16")]
    event_counts: Vec<u32>,
    /// Place in `scope_names`; empty where all are 0.
    #[prost(uint32, repeated, tag = "17")]
    scopes: Vec<u32>,
    /// Place in `resource_digests`; empty where all are 0.
    #[prost(uint32, repeated, tag = "18")]
    resources: Vec<u32>,
    #[prost(uint32, repeated, tag = "19")]
    event_names: Vec<u32>,
    /// One an event: its time less its span's start.
    #[prost(sint64, repeated, tag = "20")]
    event_times: Vec<i64>,
    /// One an event; empty where no event has attributes.
    #[prost(uint32, repeated, tag = "21")]
    event_attribute_counts: Vec<u32>,
    /// Integers that do not fit beside a type, and doubles.
    #[prost(fixed64, repeated, tag = "22")]
    wide: Vec<u64>,
    #[prost(message, repeated, tag = "23")]
    lists: Vec<List>,
    /// Spans left out.
    #[prost(uint32, tag = "24")]
    dropped: u32,
}

#[derive(Message)]
struct List {
    #[prost(uint32, repeated, tag = "1")]
    members: Vec<u32>,
}

const OPEN: u32 = 1 << 3;
const ERROR: u32 = 1 << 4;
const REPAIRED: u32 = 1 << 5;

/// A value's type: a text's code.
const TEXT: u64 = 0;
/// A zigzag integer.
const INTEGER: u64 = 1;
/// A place in `lists`.
const LIST: u64 = 2;
/// A small number: 0 false, 1 true, 2 + n the integer and 2⁶⁰ + n the double at a place of `wide`.
const OTHER: u64 = 3;
const WIDE_DOUBLE: u64 = 1 << 60;

/// Writes a fragment.
pub(in crate::store) fn encode_fragment(fragment: &Fragment) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.resources_and_scopes(&fragment.spans);
    for span in &fragment.spans {
        writer.span(span);
    }
    writer.parents(&fragment.spans);
    let mut body = writer.body;
    body.base = fragment.spans.first().map_or(0, |span| span.start.0 as u64);
    body.dropped = fragment.dropped;
    body.texts = writer.texts.into_texts();
    for column in [&mut body.attribute_counts, &mut body.event_counts, &mut body.event_attribute_counts] {
        clear_zeros(column);
    }
    clear_zeros(&mut body.scopes);
    clear_zeros(&mut body.resources);
    seal(&body)
}

fn clear_zeros(column: &mut Vec<u32>) {
    if column.iter().all(|value| *value == 0) {
        column.clear();
    }
}

#[derive(Default)]
struct Writer<'a> {
    texts: TextWriter<'a>,
    body: Body,
    last_start: Option<i64>,
}

impl<'a> Writer<'a> {
    fn resources_and_scopes(&mut self, spans: &'a [Span]) {
        let mut resources: Vec<&Resource> = Vec::new();
        let mut scopes: Vec<&Scope> = Vec::new();
        for span in spans {
            let resource = place_of(&mut resources, span.resource.as_ref());
            let scope = place_of(&mut scopes, span.scope.as_ref());
            self.body.resources.push(resource);
            self.body.scopes.push(scope);
        }
        for resource in resources {
            self.body.resource_digests.push(resource.digest);
            let count = self.attributes(&resource.attributes);
            self.body.resource_counts.push(count);
        }
        for scope in scopes {
            let name = self.texts.code(&scope.name);
            self.body.scope_names.push(name);
        }
    }

    fn span(&mut self, span: &'a Span) {
        let start = span.start.0;
        let name = self.texts.code(&span.name);
        let count = self.attributes(&span.attributes);
        let body = &mut self.body;
        body.span_ids.push(u64::from_be_bytes(*span.span_id.as_bytes()));
        body.names.push(name);
        body.traits.push(traits(span));
        body.starts.push(start.wrapping_sub(self.last_start.unwrap_or(start)));
        body.durations.push(span.end.map_or(0, |end| end.0.wrapping_sub(start) as u64));
        body.attribute_counts.push(count);
        body.event_counts.push(span.events.len() as u32);
        self.last_start = Some(start);
        for event in &span.events {
            let event_name = self.texts.code(&event.name);
            let event_count = self.attributes(&event.attributes);
            self.body.event_names.push(event_name);
            self.body.event_times.push(event.at.0.wrapping_sub(start));
            self.body.event_attribute_counts.push(event_count);
        }
    }

    fn parents(&mut self, spans: &[Span]) {
        let places: HashMap<SpanId, u32> = spans.iter().zip(0..).map(|(span, place)| (span.span_id, place)).collect();
        for span in spans {
            let code = match span.parent {
                None => 0,
                Some(parent) => match places.get(&parent) {
                    Some(place) => 1 + place,
                    None => {
                        let id = u64::from_be_bytes(*parent.as_bytes());
                        1 + spans.len() as u32 + place_of(&mut self.body.foreign_parents, id)
                    }
                },
            };
            self.body.parents.push(code);
        }
    }

    fn attributes(&mut self, attributes: &'a Attributes) -> u32 {
        for (key, value) in attributes.iter() {
            let code = self.texts.code(key);
            let value = self.value(value);
            self.body.keys.push(code);
            self.body.values.push(value);
        }
        attributes.len() as u32
    }

    fn value(&mut self, value: &'a Value) -> u64 {
        match value {
            Value::Str(text) => u64::from(self.texts.code(text)) << 2 | TEXT,
            Value::Bool(value) => u64::from(*value) << 2 | OTHER,
            Value::Int(number) => self.integer(*number),
            Value::Double(number) => {
                let place = self.body.wide.len() as u64;
                self.body.wide.push(number.to_bits());
                (WIDE_DOUBLE + place) << 2 | OTHER
            }
            Value::List(texts) => {
                let members = texts.iter().map(|text| self.texts.code(text)).collect();
                self.body.lists.push(List { members });
                (self.body.lists.len() as u64 - 1) << 2 | LIST
            }
        }
    }

    fn integer(&mut self, number: i64) -> u64 {
        let zigzag = (number << 1 ^ number >> 63) as u64;
        if zigzag < 1 << 62 {
            return zigzag << 2 | INTEGER;
        }
        let place = self.body.wide.len() as u64;
        self.body.wide.push(number as u64);
        (2 + place) << 2 | OTHER
    }
}

/// Few distinct members are expected: a trace's spans come from a handful of processes.
fn place_of<T: PartialEq>(members: &mut Vec<T>, member: T) -> u32 {
    let place = members.iter().rposition(|known| *known == member).unwrap_or_else(|| {
        members.push(member);
        members.len() - 1
    });
    place as u32
}

fn traits(span: &Span) -> u32 {
    let mut traits = span.kind as u32;
    for (set, bit) in [(span.end.is_none(), OPEN), (span.error, ERROR), (span.repaired, REPAIRED)] {
        if set {
            traits |= bit;
        }
    }
    traits
}

/// Reads what [`encode_fragment`] wrote.
pub(in crate::store) fn decode_fragment(body: &[u8]) -> Result<Fragment, DecodeError> {
    let body: Body = open(body)?;
    Reader::new(&body).fragment()
}

struct Reader<'a> {
    body: &'a Body,
    next_attribute: usize,
    next_event: usize,
}

impl<'a> Reader<'a> {
    fn new(body: &'a Body) -> Self {
        Self { body, next_attribute: 0, next_event: 0 }
    }

    fn fragment(mut self) -> Result<Fragment, DecodeError> {
        let resources = self.resources()?;
        let scopes = self.scopes()?;
        let mut spans = Vec::with_capacity(self.body.span_ids.len());
        let mut start = self.body.base as i64;
        for place in 0..self.body.span_ids.len() {
            start = start.wrapping_add(at(&self.body.starts, place)?);
            let scope = at(&scopes, at_or_zero(&self.body.scopes, place)? as usize)?;
            let resource = at(&resources, at_or_zero(&self.body.resources, place)? as usize)?;
            spans.push(self.span(place, start, scope, resource)?);
        }
        Ok(Fragment { spans, dropped: self.body.dropped })
    }

    fn resources(&mut self) -> Result<Vec<Arc<Resource>>, DecodeError> {
        let mut resources = Vec::with_capacity(self.body.resource_digests.len());
        for (place, digest) in self.body.resource_digests.iter().enumerate() {
            let count = at(&self.body.resource_counts, place)?;
            let attributes = self.attributes(count)?;
            resources.push(Arc::new(Resource { attributes, digest: *digest }));
        }
        Ok(resources)
    }

    fn scopes(&self) -> Result<Vec<Arc<Scope>>, DecodeError> {
        let names = &self.body.scope_names;
        names.iter().map(|code| Ok(Arc::new(Scope { name: self.text(*code)? }))).collect()
    }

    fn span(
        &mut self,
        place: usize,
        start: i64,
        scope: Arc<Scope>,
        resource: Arc<Resource>,
    ) -> Result<Span, DecodeError> {
        let body = self.body;
        let traits = at(&body.traits, place)?;
        let duration = at(&body.durations, place)?;
        let attributes = self.attributes(at_or_zero(&body.attribute_counts, place)?)?;
        Ok(Span {
            span_id: span_id(at(&body.span_ids, place)?)?,
            parent: self.parent(at(&body.parents, place)?)?,
            name: self.text(at(&body.names, place)?)?,
            kind: SpanKind::from_number((traits & 7) as i32),
            start: UnixNanos(start),
            end: (traits & OPEN == 0).then(|| UnixNanos(start.wrapping_add_unsigned(duration))),
            attributes,
            events: self.events(at_or_zero(&body.event_counts, place)?, start)?,
            error: traits & ERROR != 0,
            repaired: traits & REPAIRED != 0,
            scope,
            resource,
        })
    }

    fn parent(&self, code: u32) -> Result<Option<SpanId>, DecodeError> {
        let Some(place) = (code as usize).checked_sub(1) else {
            return Ok(None);
        };
        let id = match place.checked_sub(self.body.span_ids.len()) {
            None => at(&self.body.span_ids, place)?,
            Some(foreign) => at(&self.body.foreign_parents, foreign)?,
        };
        span_id(id).map(Some)
    }

    fn events(&mut self, count: u32, start: i64) -> Result<Vec<SpanEvent>, DecodeError> {
        let mut events = Vec::new();
        for _ in 0..count {
            let place = self.next_event;
            self.next_event += 1;
            events.push(SpanEvent {
                name: self.text(at(&self.body.event_names, place)?)?,
                at: UnixNanos(start.wrapping_add(at(&self.body.event_times, place)?)),
                attributes: self.attributes(at_or_zero(&self.body.event_attribute_counts, place)?)?,
            });
        }
        Ok(events)
    }

    fn attributes(&mut self, count: u32) -> Result<Attributes, DecodeError> {
        let left = self.body.keys.len().saturating_sub(self.next_attribute);
        let mut pairs = Vec::with_capacity(left.min(count as usize));
        for _ in 0..count {
            let place = self.next_attribute;
            self.next_attribute += 1;
            let key = read_text(&self.body.texts, at(&self.body.keys, place)?)?;
            pairs.push((key, self.value(at(&self.body.values, place)?)?));
        }
        Ok(Attributes::new(pairs))
    }

    fn value(&self, code: u64) -> Result<Value, DecodeError> {
        let payload = code >> 2;
        match code & 3 {
            TEXT => Ok(Value::Str(self.text(payload as u32)?)),
            INTEGER => Ok(Value::Int((payload >> 1) as i64 ^ -((payload & 1) as i64))),
            LIST => {
                let list =
                    self.body.lists.get(payload as usize).ok_or_else(|| DecodeError::damaged("a list is gone"))?;
                let members = list.members.iter().map(|member| self.text(*member)).collect::<Result<_, _>>()?;
                Ok(Value::List(members))
            }
            _ if payload < 2 => Ok(Value::Bool(payload == 1)),
            _ if payload < WIDE_DOUBLE => Ok(Value::Int(at(&self.body.wide, payload as usize - 2)? as i64)),
            _ => Ok(Value::Double(f64::from_bits(at(&self.body.wide, (payload - WIDE_DOUBLE) as usize)?))),
        }
    }

    fn text(&self, code: u32) -> Result<String, DecodeError> {
        read_text(&self.body.texts, code).map(Cow::into_owned)
    }
}

fn at<T: Clone>(column: &[T], place: usize) -> Result<T, DecodeError> {
    column.get(place).cloned().ok_or_else(|| DecodeError::damaged("a column is too short"))
}

/// A column that was left out holds zeros.
fn at_or_zero(column: &[u32], place: usize) -> Result<u32, DecodeError> {
    if column.is_empty() { Ok(0) } else { at(column, place) }
}

fn span_id(id: u64) -> Result<SpanId, DecodeError> {
    SpanId::from_bytes(id.to_be_bytes()).map_err(|_| DecodeError::damaged("a span id is zero"))
}

#[cfg(test)]
#[path = "fragment_tests.rs"]
mod tests;
