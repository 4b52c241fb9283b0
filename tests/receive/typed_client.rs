//! A typed client of client records, made from the protocol's description alone.

use std::net::SocketAddr;

use bytes::Bytes;
use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor, SerializeOptions};
use serde_json::{Value, json};
use tonic::Status;
use tracejoin::receive::records::typed::DESCRIPTORS;

use super::raw_grpc::{answered, frame};

pub const EXPORT: &str = "/tracejoin.v1.ClientRecordService/Export";

pub fn descriptor(name: &str) -> MessageDescriptor {
    let pool = DescriptorPool::decode(DESCRIPTORS).expect("a valid description");
    pool.get_message_by_name(&format!("tracejoin.v1.{name}")).expect("a message of the protocol")
}

/// An encoded request, from the records' JSON form.
pub fn request(records: &Value) -> Vec<u8> {
    let request = json!({ "records": records });
    let message = DynamicMessage::deserialize(descriptor("ExportClientRecordsRequest"), request);
    message.expect("fields of the protocol").encode_to_vec()
}

/// Sends an encoded request and returns the answer's JSON form, fields of value 0 included.
pub async fn export(addr: SocketAddr, request: &[u8]) -> Result<Value, Status> {
    answered(addr, EXPORT, None, frame(false, request)).await.map(read)
}

/// The same for a compressed request.
pub async fn export_compressed(addr: SocketAddr, encoding: &str, request: &[u8]) -> Result<Value, Status> {
    answered(addr, EXPORT, Some(encoding), frame(true, request)).await.map(read)
}

fn read(reply: Bytes) -> Value {
    let answer = DynamicMessage::decode(descriptor("ExportClientRecordsResponse"), reply).expect("an answer");
    let options =
        SerializeOptions::new().use_proto_field_name(true).stringify_64_bit_integers(false).skip_default_fields(false);
    answer.serialize_with_options(serde_json::value::Serializer, &options).expect("JSON")
}
