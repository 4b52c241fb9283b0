//! How much memory a request takes once decoded, estimated without decoding it. A span of two bytes on the wire
//! becomes a structure of hundreds, so the size of a body says little about what a hostile one costs.

use std::mem::size_of;

use bytes::Buf;
use opentelemetry_proto::tonic::common::v1::{AnyValue, EntityRef, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::trace::v1::span::{Event, Link};
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use prost::encoding::{WireType, decode_key, decode_varint};

/// As deep as the decoder goes.
const DEPTH: usize = 100;
/// Charged for each object in JSON, whatever it turns out to be.
const JSON_OBJECT: usize = 128;

/// A message of the protocol that may hold others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Request,
    ResourceSpans,
    Resource,
    EntityRef,
    ScopeSpans,
    Scope,
    Span,
    Event,
    Link,
    KeyValue,
    AnyValue,
    Values,
    KeyValues,
}

impl Part {
    /// The message in field `tag` of this one, by the numbers of the protocol's definition.
    const fn child(self, tag: u32) -> Option<Self> {
        Some(match (self, tag) {
            (Self::Request, 1) => Self::ResourceSpans,
            (Self::ResourceSpans, 1) => Self::Resource,
            (Self::ResourceSpans, 2) => Self::ScopeSpans,
            (Self::Resource, 3) => Self::EntityRef,
            (Self::ScopeSpans, 1) => Self::Scope,
            (Self::ScopeSpans, 2) => Self::Span,
            (Self::Span, 11) => Self::Event,
            (Self::Span, 13) => Self::Link,
            (Self::Resource | Self::KeyValues, 1)
            | (Self::Scope | Self::Event, 3)
            | (Self::Link, 4)
            | (Self::Span, 9) => Self::KeyValue,
            (Self::KeyValue, 2) | (Self::Values, 1) => Self::AnyValue,
            (Self::AnyValue, 5) => Self::Values,
            (Self::AnyValue, 6) => Self::KeyValues,
            _ => return None,
        })
    }

    /// Bytes of the decoded structure, where it lies in a list of its own.
    const fn size(self) -> usize {
        match self {
            Self::ResourceSpans => size_of::<ResourceSpans>(),
            Self::EntityRef => size_of::<EntityRef>(),
            Self::ScopeSpans => size_of::<ScopeSpans>(),
            Self::Scope => size_of::<InstrumentationScope>(),
            Self::Span => size_of::<Span>(),
            Self::Event => size_of::<Event>(),
            Self::Link => size_of::<Link>(),
            Self::KeyValue => size_of::<KeyValue>(),
            Self::AnyValue => size_of::<AnyValue>(),
            Self::Request | Self::Resource | Self::Values | Self::KeyValues => 0,
        }
    }
}

/// Bytes that the decoded form of `message` takes. What cannot be read counts up to the fault, where the decoder stops.
pub fn of_protobuf(message: &[u8]) -> usize {
    message.len() + walk(Part::Request, message, DEPTH)
}

/// Bytes that the decoded form of a JSON document takes: coarse, from its length and its number of objects.
pub fn of_json(document: &[u8]) -> usize {
    let objects = document.iter().filter(|byte| **byte == b'{').count();
    document.len() + objects * JSON_OBJECT
}

fn walk(part: Part, mut message: &[u8], depth: usize) -> usize {
    let mut total = 0;
    while message.has_remaining() {
        let Ok((tag, wire_type)) = decode_key(&mut message) else { break };
        let length = match wire_type {
            WireType::Varint => {
                if decode_varint(&mut message).is_err() {
                    break;
                }
                continue;
            }
            WireType::SixtyFourBit => 8,
            WireType::ThirtyTwoBit => 4,
            WireType::LengthDelimited => match decode_varint(&mut message).map(usize::try_from) {
                Ok(Ok(length)) => length,
                _ => break,
            },
            WireType::StartGroup | WireType::EndGroup => continue,
        };
        if length > message.len() {
            break;
        }
        let (field, rest) = message.split_at(length);
        message = rest;
        if wire_type == WireType::LengthDelimited
            && depth > 0
            && let Some(child) = part.child(tag)
        {
            total += child.size() + walk(child, field, depth - 1);
        }
    }
    total
}

#[cfg(test)]
mod tests {
    use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
    use proptest::prelude::*;
    use prost::Message;

    use super::*;

    fn request(spans: Vec<Span>) -> Vec<u8> {
        let scope = ScopeSpans { spans, ..ScopeSpans::default() };
        let resource = ResourceSpans { scope_spans: vec![scope], ..ResourceSpans::default() };
        ExportTraceServiceRequest { resource_spans: vec![resource] }.encode_to_vec()
    }

    #[test]
    fn empty_spans_weigh_what_they_become() {
        let bytes = request(vec![Span::default(); 1000]);
        assert!(bytes.len() < 2100, "{}", bytes.len());
        assert!(of_protobuf(&bytes) >= 1000 * size_of::<Span>());
    }

    #[test]
    fn every_list_of_the_protocol_counts() {
        let attributes = vec![KeyValue::default(); 10];
        let event = Event { attributes: attributes.clone(), ..Event::default() };
        let link = Link { attributes: attributes.clone(), ..Link::default() };
        let span = Span { attributes, events: vec![event], links: vec![link], ..Span::default() };
        let bytes = request(vec![span]);
        let structures = 30 * size_of::<KeyValue>() + size_of::<Event>() + size_of::<Link>() + size_of::<Span>();
        let envelopes = size_of::<ResourceSpans>() + size_of::<ScopeSpans>();
        assert_eq!(of_protobuf(&bytes), bytes.len() + structures + envelopes);
    }

    #[test]
    fn json_weighs_by_its_objects() {
        assert_eq!(of_json(b"{}{}"), 4 + 2 * JSON_OBJECT);
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_walk_panic(bytes in prop::collection::vec(any::<u8>(), 0..512)) {
            prop_assert!(of_protobuf(&bytes) >= bytes.len());
        }
    }
}
