//! Fields that this version of the protocol does not have: decoding drops them, and senders are told how many.

use std::collections::HashMap;
use std::sync::LazyLock;

use bytes::{Buf, Bytes};
use prost::Message;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, FieldDescriptorProto, FileDescriptorSet};

use super::descriptors::DESCRIPTORS;

/// The message that is counted in.
const RECORD: &str = ".tracejoin.v1.ClientRecord";

/// The fields of each message, by its full name and their tags: the name of the message that a single field holds.
type Known = HashMap<String, HashMap<u32, Option<String>>>;

static KNOWN: LazyLock<Known> = LazyLock::new(|| {
    // The build wrote the description, and a test reads it.
    let description = FileDescriptorSet::decode(DESCRIPTORS).expect("the description of the protocol is valid");
    let messages = description.file.into_iter().flat_map(|file| {
        let package = file.package().to_owned();
        file.message_type.into_iter().map(move |message| (format!(".{package}.{}", message.name()), fields(&message)))
    });
    messages.collect()
});

fn fields(message: &DescriptorProto) -> HashMap<u32, Option<String>> {
    let held = |field: &FieldDescriptorProto| {
        let is_single = field.r#type() == Type::Message && field.label() != Label::Repeated;
        is_single.then(|| field.type_name().to_owned())
    };
    message.field.iter().map(|field| (field.number() as u32, held(field))).collect()
}

/// The unknown fields of a record that can be decoded, those of its parts included.
pub(super) fn unknown_fields(record: &Bytes) -> u64 {
    // A record that was decoded has no fault left.
    count(RECORD, record.clone()).unwrap_or_default()
}

fn count(message: &str, mut encoded: Bytes) -> Option<u64> {
    let known = KNOWN.get(message)?;
    let mut unknown = 0;
    while encoded.has_remaining() {
        let (tag, wire_type) = decode_key(&mut encoded).ok()?;
        match known.get(&tag) {
            Some(Some(part)) if wire_type == WireType::LengthDelimited => {
                let length = usize::try_from(decode_varint(&mut encoded).ok()?).ok()?;
                let within = length <= encoded.remaining();
                unknown += within.then(|| count(part, encoded.split_to(length))).flatten()?;
            }
            field => {
                unknown += u64::from(field.is_none());
                skip_field(wire_type, tag, &mut encoded, DecodeContext::default()).ok()?;
            }
        }
    }
    Some(unknown)
}
