//! The stored form of an alias: under the digest of a request id, the trace that one side of the request has.

use prost::Message;

use super::{DecodeError, open, seal};
use model::{Alias, Side, TraceId};

#[derive(Message)]
struct Body {
    /// `Side` as a number.
    #[prost(uint32, tag = "1")]
    side: u32,
    #[prost(bytes = "vec", tag = "2")]
    trace_id: Vec<u8>,
}

/// Writes an alias.
pub(in crate::store) fn encode_alias(alias: Alias) -> Vec<u8> {
    seal(&Body { side: alias.side as u32, trace_id: alias.trace_id.as_bytes().to_vec() })
}

/// Reads what [`encode_alias`] wrote.
pub(in crate::store) fn decode_alias(body: &[u8]) -> Result<Alias, DecodeError> {
    let body: Body = open(body)?;
    let side = Side::from_number(body.side).ok_or_else(|| DecodeError::damaged("its side is unknown"))?;
    let trace_id = TraceId::from_slice(&body.trace_id).map_err(|error| DecodeError::Damaged(error.to_string()))?;
    Ok(Alias { side, trace_id })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alias_comes_back() {
        for side in [Side::Client, Side::Server] {
            let alias = Alias { side, trace_id: TraceId::of_request_id("r") };
            assert_eq!(decode_alias(&encode_alias(alias)), Ok(alias));
        }
        assert!(decode_alias(&[1]).is_err());
    }
}
