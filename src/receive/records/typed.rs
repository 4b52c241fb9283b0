//! Client records as the protobuf messages of `proto/tracejoin/v1/client_record.proto`. Each is written as the JSON that
//! an upload over HTTP has, so that one validation judges both and finds the same faults in the same words.

use std::sync::LazyLock;

use bytes::{Buf, Bytes};
use prost::Message as _;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor, SerializeOptions, Value};
use serde_json::value::RawValue;

use super::super::budget::Reservation;
use super::super::intake::{RawRecord, Refusal};
use super::super::limits::ByteLimit;
use super::{MEMBER_BYTES, UploadAnswer};

/// The service that takes them.
pub const SERVICE: &str = "tracejoin.v1.ClientRecordService";

/// The protocol's description, an encoded `FileDescriptorSet`.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/client_record.bin"));

/// The tag of the records in their request.
const RECORDS: u32 = 1;

/// No valid record is shorter on the wire: a trace id takes as much.
const SHORTEST_RECORD: usize = 36;
/// The longest record, in bytes: it holds numbers and labels, never an answer.
const MAX_RECORD: usize = 64 * 1024;

struct Schema {
    record: MessageDescriptor,
    answer: MessageDescriptor,
}

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    // The build wrote the description, and a test reads it.
    let pool = DescriptorPool::decode(DESCRIPTORS).expect("the description of the protocol is valid");
    let message = |name| pool.get_message_by_name(name).expect("the protocol has this message");
    Schema { record: message("tracejoin.v1.ClientRecord"), answer: message("tracejoin.v1.ExportClientRecordsResponse") }
});

/// The records of a request.
#[derive(Debug, Default)]
pub struct Message {
    /// As they are handed on, in their order.
    pub records: Vec<RawRecord>,
    /// Fields that this version of the protocol does not have.
    pub unknown_fields: u64,
}

/// Takes a request apart. A record that cannot be read is refused alone.
///
/// # Errors
/// A request whose records cannot be told apart, more records than fit into `limit`, and more memory than `reservation`
/// may hold.
pub fn read(request: Bytes, limit: &ByteLimit, reservation: &Reservation) -> Result<Message, Refusal> {
    let mut message = Message::default();
    for record in split(request, limit, &mut message.unknown_fields)? {
        let record = if record.len() > MAX_RECORD {
            Err(format!("has {} bytes, at most {MAX_RECORD} are taken: send numbers and labels only", record.len()))
        } else {
            json(record, &mut message.unknown_fields)
        };
        reservation.grow(MEMBER_BYTES + record.as_ref().map_or(0, |json| json.get().len()))?;
        message.records.push(record);
    }
    Ok(message)
}

/// The records of a request, still encoded. They are told apart before any is read: a hostile message holds millions.
fn split(mut request: Bytes, limit: &ByteLimit, unknown_fields: &mut u64) -> Result<Vec<Bytes>, Refusal> {
    let most = limit.bytes / SHORTEST_RECORD;
    let mut records = Vec::new();
    while request.has_remaining() {
        let Some(record) = next_record(&mut request, unknown_fields).map_err(unreadable)? else { continue };
        if records.len() == most {
            let ByteLimit { bytes, setting, .. } = limit;
            let message = format!(
                "the message holds more than the {most} records that its limit of {bytes} bytes allows: send smaller \
                 batches or raise {setting}"
            );
            return Err(Refusal::Invalid { message });
        }
        records.push(record);
    }
    Ok(records)
}

/// The next field of a request: a record, or `None` for a field that requests do not have.
fn next_record(request: &mut Bytes, unknown_fields: &mut u64) -> Result<Option<Bytes>, String> {
    let cut_off = || "a record is longer than the message".to_owned();
    let (tag, wire_type) = decode_key(request).map_err(|fault| fault.to_string())?;
    if (tag, wire_type) != (RECORDS, WireType::LengthDelimited) {
        *unknown_fields += 1;
        skip_field(wire_type, tag, request, DecodeContext::default()).map_err(|fault| fault.to_string())?;
        return Ok(None);
    }
    let length = decode_varint(request).map_err(|fault| fault.to_string())?;
    let length = usize::try_from(length).ok().filter(|length| *length <= request.remaining());
    Ok(Some(request.split_to(length.ok_or_else(cut_off)?)))
}

fn unreadable(fault: String) -> Refusal {
    let message = format!("the message is no ExportClientRecordsRequest: {fault}; check that it is sent whole");
    Refusal::Invalid { message }
}

/// One record as JSON. Numbers that are not finite become texts, which the validation refuses by name.
fn json(record: Bytes, unknown_fields: &mut u64) -> RawRecord {
    let record = DynamicMessage::decode(SCHEMA.record.clone(), record)
        .map_err(|fault| format!("is no ClientRecord: {fault}; check that it is sent whole"))?;
    *unknown_fields += unknown(&record);
    let options = SerializeOptions::new().use_proto_field_name(true).stringify_64_bit_integers(false);
    let mut text = Vec::new();
    let written = record.serialize_with_options(&mut serde_json::Serializer::new(&mut text), &options);
    let raw = written.and_then(|()| serde_json::from_slice::<Box<RawValue>>(&text));
    raw.map_err(|fault| format!("cannot be read: {fault}"))
}

/// The fields that no record has, those of its parts included.
fn unknown(message: &DynamicMessage) -> u64 {
    let parts = message.fields().map(|(_, value)| match value {
        Value::Message(part) => unknown(part),
        _ => 0,
    });
    message.unknown_fields().count() as u64 + parts.sum::<u64>()
}

/// The answer as a message.
///
/// # Errors
/// None where the protocol has the answer's fields, which a test makes sure of.
pub fn write(answer: &UploadAnswer) -> Result<Bytes, Refusal> {
    let written = serde_json::to_value(answer)
        .and_then(|answer| DynamicMessage::deserialize(SCHEMA.answer.clone(), answer))
        .map_err(|fault| Refusal::Invalid { message: format!("the answer cannot be written: {fault}") })?;
    Ok(Bytes::from(written.encode_to_vec()))
}
