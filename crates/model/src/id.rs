//! Trace and span identifiers of W3C Trace Context.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest, Sha256};
use thiserror::Error;

/// Why a text or a byte string is not an identifier.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum IdError {
    /// Not the fixed number of bytes that W3C Trace Context gives the identifier.
    #[error("has {got} bytes, must have exactly {want}")]
    Length { got: usize, want: usize },
    /// All zeros is the invalid identifier.
    #[error("is all zeros, which W3C Trace Context reserves as invalid")]
    Zero,
    /// Holds something other than hexadecimal digits.
    #[error("is not hexadecimal")]
    NotHex,
}

macro_rules! identifier {
    ($(#[$doc:meta])* $name:ident, $bytes:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name([u8; $bytes]);

        impl $name {
            /// From the raw bytes of the wire.
            ///
            /// # Errors
            /// [`IdError::Length`] and [`IdError::Zero`].
            pub fn from_slice(bytes: &[u8]) -> Result<Self, IdError> {
                let array: [u8; $bytes] =
                    bytes.try_into().map_err(|_| IdError::Length { got: bytes.len(), want: $bytes })?;
                Self::from_bytes(array)
            }

            /// From an array of the right length.
            ///
            /// # Errors
            /// [`IdError::Zero`].
            pub fn from_bytes(bytes: [u8; $bytes]) -> Result<Self, IdError> {
                if bytes == [0; $bytes] { Err(IdError::Zero) } else { Ok(Self(bytes)) }
            }

            /// The raw bytes, in network order.
            pub const fn as_bytes(&self) -> &[u8; $bytes] {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            /// Reads hexadecimal of either case.
            fn from_str(text: &str) -> Result<Self, IdError> {
                if text.len() != 2 * $bytes {
                    return Err(IdError::Length { got: text.len() / 2, want: $bytes });
                }
                let mut bytes = [0; $bytes];
                hex::decode_to_slice(text, &mut bytes).map_err(|_| IdError::NotHex)?;
                Self::from_bytes(bytes)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&hex::encode(self.0))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{self}")
            }
        }
    };
}

identifier!(
    /// A trace id: 16 bytes, not all zero, shown as 32 lower-case hexadecimal digits.
    TraceId,
    16
);
identifier!(
    /// A span id: 8 bytes, not all zero, shown as 16 lower-case hexadecimal digits.
    SpanId,
    8
);

/// Keeps the digests of request ids apart from digests of the same texts for other ends.
const REQUEST_ID_DOMAIN: &[u8] = b"tracejoin request id\0";

impl TraceId {
    /// The id under which something is kept that is known by its request id only.
    pub fn of_request_id(request_id: &str) -> Self {
        let digest = Sha256::new().chain_update(REQUEST_ID_DOMAIN).chain_update(request_id).finalize();
        let mut head = [0; 16];
        head.copy_from_slice(&digest[..16]);
        // An all-zero digest is as likely as finding one on purpose is feasible: not at all.
        Self(if head == [0; 16] { [1; 16] } else { head })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_either_case_and_shows_lower() {
        let id: TraceId = "0AF7651916CD43DD8448EB211C80319C".parse().expect("valid");
        assert_eq!(id.to_string(), "0af7651916cd43dd8448eb211c80319c");
    }

    #[test]
    fn a_request_id_has_one_id_of_its_own() {
        assert_eq!(TraceId::of_request_id("req_0001"), TraceId::of_request_id("req_0001"));
        assert_ne!(TraceId::of_request_id("req_0001"), TraceId::of_request_id("req_0002"));
        // Stored: must never change.
        assert_eq!(TraceId::of_request_id("req_0001").to_string(), "f781a921391ee987cc7edce773554f06");
    }

    #[test]
    fn refuses_zero_length_and_letters() {
        assert_eq!("0000000000000000".parse::<SpanId>(), Err(IdError::Zero));
        assert_eq!("00f067".parse::<SpanId>(), Err(IdError::Length { got: 3, want: 8 }));
        assert_eq!("00f067aa0ba902zz".parse::<SpanId>(), Err(IdError::NotHex));
        assert_eq!(TraceId::from_slice(&[1; 8]), Err(IdError::Length { got: 8, want: 16 }));
    }
}
