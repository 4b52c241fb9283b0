//! Who emitted spans: the trimmed resource, and a digest of the whole one.

use std::borrow::Cow;

use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::resource::v1::Resource as WireResource;
use prost::Message;
use sha2::{Digest, Sha256};

use super::allow::AllowList;
use super::span::{Trimmed, trim};
use super::text::REDACTED;
use model::{Attributes, Resource, Value};

/// A resource, how many of its attributes were dropped, and whether one that was kept held U+0000.
pub fn resource(wire: Option<WireResource>, allowed: &AllowList) -> (Resource, u64, bool) {
    let attributes = wire.map(|resource| resource.attributes).unwrap_or_default();
    let digest = digest(&attributes);
    let Trimmed { attributes, dropped, repaired } = trim(attributes, |key| allowed.resource_key(key));
    (Resource { attributes: without_scrubbed(attributes), digest }, dropped, repaired)
}

/// What is left of a scrubbed id is no id: two processes would share it, and with it a clock. Without it the clock is
/// told by other attributes, in the end by the digest.
fn without_scrubbed(attributes: Attributes) -> Attributes {
    let scrubbed = |value: &Value| matches!(value, Value::Str(text) if text.contains(REDACTED));
    if !attributes.iter().any(|(_, value)| scrubbed(value)) {
        return attributes;
    }
    let kept = attributes.iter().filter(|(_, value)| !scrubbed(value));
    Attributes::new(kept.map(|(key, value)| (Cow::Owned(key.to_owned()), value.clone())).collect())
}

/// The first 8 bytes of a SHA-256 over all attributes in wire form, sorted, each with its length before it. It does not
/// depend on the order in which an exporter writes them.
fn digest(attributes: &[KeyValue]) -> u64 {
    let mut encoded: Vec<Vec<u8>> = attributes.iter().map(Message::encode_to_vec).collect();
    encoded.sort_unstable();
    let mut hash = Sha256::new();
    for attribute in &encoded {
        hash.update((attribute.len() as u64).to_be_bytes());
        hash.update(attribute);
    }
    let mut first = [0; 8];
    first.copy_from_slice(&hash.finalize()[..8]);
    u64::from_be_bytes(first)
}

#[cfg(test)]
mod tests {
    use opentelemetry_proto::tonic::common::v1::AnyValue;
    use opentelemetry_proto::tonic::common::v1::any_value::Value;

    use super::*;

    fn pair(key: &str, value: &str) -> KeyValue {
        let value = AnyValue { value: Some(Value::StringValue(value.to_owned())) };
        KeyValue { key: key.to_owned(), value: Some(value), ..Default::default() }
    }

    fn of(attributes: Vec<KeyValue>) -> Resource {
        resource(Some(WireResource { attributes, ..Default::default() }), &AllowList::default()).0
    }

    #[test]
    fn the_digest_covers_all_attributes_in_any_order() {
        let forth = of(vec![pair("service.name", "a"), pair("unlisted", "x")]);
        let back = of(vec![pair("unlisted", "x"), pair("service.name", "a")]);
        let other = of(vec![pair("service.name", "a"), pair("unlisted", "y")]);
        assert_eq!(forth, back);
        assert_ne!(forth.digest, other.digest);
        assert!(!forth.attributes.has("unlisted"));
    }

    #[test]
    fn processes_named_like_mail_addresses_keep_clocks_of_their_own() {
        let process = |at: &str| of(vec![pair("service.name", "a"), pair("service.instance.id", at)]);
        let (one, two) = (process("worker@one.example.com"), process("worker@two.example.com"));
        assert_ne!(one.clock_domain(), two.clock_domain());
        assert!(!one.attributes.has("service.instance.id"));
    }

    #[test]
    fn the_digest_is_stable_across_versions() {
        assert_eq!(of(vec![pair("service.name", "a")]).digest, 12_358_809_283_760_292_177);
    }
}
