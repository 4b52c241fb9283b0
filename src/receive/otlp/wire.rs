//! The layout of an OTLP trace request in protobuf, as far as it is read without decoding: which fields hold messages,
//! and which hold text. The numbers are those of the protocol's definition.

use prost::bytes::Buf;
use prost::encoding::{WireType, decode_key, decode_varint};

/// A message of the protocol that may hold others, or text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Request,
    ResourceSpans,
    Resource,
    EntityRef,
    ScopeSpans,
    Scope,
    Span,
    Status,
    Event,
    Link,
    KeyValue,
    AnyValue,
    Values,
    KeyValues,
}

impl Part {
    /// The message in field `tag` of this one.
    pub(super) const fn child(self, tag: u32) -> Option<Self> {
        Some(match (self, tag) {
            (Self::Request, 1) => Self::ResourceSpans,
            (Self::ResourceSpans, 1) => Self::Resource,
            (Self::ResourceSpans, 2) => Self::ScopeSpans,
            (Self::Resource, 3) => Self::EntityRef,
            (Self::ScopeSpans, 1) => Self::Scope,
            (Self::ScopeSpans, 2) => Self::Span,
            (Self::Span, 11) => Self::Event,
            (Self::Span, 13) => Self::Link,
            (Self::Span, 15) => Self::Status,
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

    /// True where field `tag` of this message is text.
    pub(super) const fn is_text(self, tag: u32) -> bool {
        matches!(
            (self, tag),
            (Self::ResourceSpans | Self::ScopeSpans | Self::Link, 3)
                | (Self::Scope | Self::EntityRef, 1 | 2)
                | (Self::EntityRef, 3 | 4)
                | (Self::Span, 3 | 5)
                | (Self::Status | Self::Event, 2)
                | (Self::KeyValue | Self::AnyValue, 1)
        )
    }
}

/// The next field of `message` from `offset` on that has a length: its tag and where it lies. `None` at the end, and
/// where the message is broken.
pub(super) fn next_field(message: &[u8], offset: usize) -> Option<(u32, std::ops::Range<usize>)> {
    let mut rest = message.get(offset..)?;
    while rest.has_remaining() {
        let (tag, wire_type) = decode_key(&mut rest).ok()?;
        let length = match wire_type {
            WireType::Varint => {
                decode_varint(&mut rest).ok()?;
                0
            }
            WireType::SixtyFourBit => 8,
            WireType::ThirtyTwoBit => 4,
            WireType::LengthDelimited => usize::try_from(decode_varint(&mut rest).ok()?).ok()?,
            WireType::StartGroup | WireType::EndGroup => 0,
        };
        if length > rest.len() {
            return None;
        }
        let start = message.len() - rest.len();
        if wire_type == WireType::LengthDelimited {
            return Some((tag, start..start + length));
        }
        rest.advance(length);
    }
    None
}
