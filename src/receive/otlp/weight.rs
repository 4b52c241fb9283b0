//! How much memory a request takes once decoded, estimated without decoding it. A span of two bytes on the wire
//! becomes a structure of hundreds, so the size of a body says little about what a hostile one costs.

use std::mem::size_of;

use opentelemetry_proto::tonic::common::v1::{AnyValue, EntityRef, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::trace::v1::span::{Event, Link};
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};

use super::NESTING;
use super::wire::{Part, next_field};

/// Charged for each object in JSON, whatever it turns out to be.
const JSON_OBJECT: usize = 128;
/// Charged for each comma in JSON: a member of a list or an object.
const JSON_MEMBER: usize = 32;

/// Bytes that the decoded form of `message` takes. What cannot be read counts up to the fault, where the decoder stops.
pub fn of_protobuf(message: &[u8]) -> usize {
    message.len() + walk(Part::Request, message, NESTING)
}

/// Bytes that the decoded form of a JSON document takes: coarse, from its length, its objects and its commas.
pub fn of_json(document: &[u8]) -> usize {
    let count = |wanted: u8| document.iter().filter(|byte| **byte == wanted).count();
    document.len() + count(b'{') * JSON_OBJECT + count(b',') * JSON_MEMBER
}

fn walk(part: Part, message: &[u8], depth: usize) -> usize {
    let mut total = 0;
    let mut offset = 0;
    while let Some((tag, field)) = next_field(message, offset) {
        offset = field.end;
        if depth > 0
            && let Some(child) = part.child(tag)
        {
            total += structure(child) + walk(child, &message[field], depth - 1);
        }
    }
    total
}

/// Bytes of the decoded structure, where it does not lie inside its parent's.
const fn structure(part: Part) -> usize {
    match part {
        Part::ResourceSpans => size_of::<ResourceSpans>(),
        Part::EntityRef => size_of::<EntityRef>(),
        Part::ScopeSpans => size_of::<ScopeSpans>(),
        Part::Scope => size_of::<InstrumentationScope>(),
        Part::Span => size_of::<Span>(),
        Part::Event => size_of::<Event>(),
        Part::Link => size_of::<Link>(),
        Part::KeyValue => size_of::<KeyValue>(),
        Part::AnyValue => size_of::<AnyValue>(),
        Part::Request | Part::Resource | Part::Status | Part::Values | Part::KeyValues => 0,
    }
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
    fn json_weighs_by_its_objects_and_members() {
        assert_eq!(of_json(b"[{},{}]"), 7 + 2 * JSON_OBJECT + JSON_MEMBER);
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_walk_panic(bytes in prop::collection::vec(any::<u8>(), 0..512)) {
            prop_assert!(of_protobuf(&bytes) >= bytes.len());
        }
    }
}
