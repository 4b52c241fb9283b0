//! Client records as the protobuf messages of `proto/tracejoin/v1/client_record.proto`. Each is read into the same body
//! as one over HTTP, so that one validation judges both and finds the same faults in the same words.

mod convert;
mod descriptors;
mod unknown;

use bytes::{Buf, Bytes};
use normalise::ClientRecordBody;
use prost::Message as _;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

pub use self::descriptors::DESCRIPTORS;
use self::unknown::unknown_fields;
use super::super::budget::Reservation;
use super::super::intake::{ReceivedRecord, Refusal, SentRecord};
use super::super::limits::ByteLimit;
use super::{MEMBER_BYTES, RejectedMember, UploadAnswer};

/// The protocol's messages.
pub mod proto {
    include!(concat!(env!("OUT_DIR"), "/tracejoin.v1.rs"));
}

/// The service that takes them.
pub const SERVICE: &str = "tracejoin.v1.ClientRecordService";

/// The tag of the records in their request.
const RECORDS: u32 = 1;

/// No valid record is shorter on the wire: a trace id takes as much.
const SHORTEST_RECORD: usize = 36;
/// The longest record, in bytes: it holds numbers and labels, never an answer.
const MAX_RECORD: usize = 64 * 1024;

/// The records of a request.
#[derive(Debug, Default)]
pub struct Message {
    /// As they are handed on, in their order.
    pub records: Vec<ReceivedRecord>,
    /// Fields that this version of the protocol does not have.
    pub unknown_fields: u64,
}

/// A record that can be decoded. It stays encoded until it is normalised, since decoded it is ten times as large, and a
/// message holds hundreds of thousands.
#[derive(Debug, Clone, PartialEq)]
pub struct EncodedRecord(Bytes);

impl EncodedRecord {
    /// The record's body.
    ///
    /// # Errors
    /// A record that cannot be decoded, which [`read`] hands on as its fault instead.
    pub fn body(&self) -> Result<ClientRecordBody, String> {
        decode(self.0.clone())
    }
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
            checked(record, &mut message.unknown_fields)
        };
        reservation.grow(MEMBER_BYTES + record.as_ref().map_or(0, |record| record.0.len()))?;
        message.records.push(record.map(SentRecord::Message));
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

fn checked(record: Bytes, unknown: &mut u64) -> Result<EncodedRecord, String> {
    decode(record.clone())?;
    *unknown += unknown_fields(&record);
    Ok(EncodedRecord(record))
}

fn decode(record: Bytes) -> Result<ClientRecordBody, String> {
    let record = proto::ClientRecord::decode(record)
        .map_err(|fault| format!("is no ClientRecord: {fault}; check that it is sent whole"))?;
    convert::body(record).map_err(|fault| format!("cannot be read: {fault}"))
}

/// The answer as a message.
pub fn write(answer: UploadAnswer) -> Bytes {
    let UploadAnswer { accepted, duplicates, rejected, ignored_fields } = answer;
    let rejected = rejected.into_iter().map(proto::RejectedRecord::from).collect();
    let answer = proto::ExportClientRecordsResponse { accepted, duplicates, rejected, ignored_fields };
    Bytes::from(answer.encode_to_vec())
}

impl From<RejectedMember> for proto::RejectedRecord {
    fn from(RejectedMember { index, field, reason }: RejectedMember) -> Self {
        Self { index: index as u64, field, reason }
    }
}
