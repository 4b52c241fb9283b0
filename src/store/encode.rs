//! The stored form of what arrived: one version byte, then a protobuf message of our own.
//!
//! Fields of many spans are kept as columns (all span ids, then all names …), since a tag and a length for every field
//! of every span would take a third of the space. Readers accept every version that was ever written.

mod alias;
mod event;
mod fragment;
mod record;
mod text;

use prost::Message;
use sha2::{Digest, Sha256};
use thiserror::Error;

pub(super) use alias::{decode_alias, encode_alias};
pub(super) use event::{decode_events, encode_events};
pub(super) use fragment::{decode_fragment, encode_fragment};
pub(super) use record::{decode_record, encode_record, record_identity};

/// Why a stored body cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// Written by a newer program, or not written by this one.
    #[error("has version {0}, which this program cannot read; a newer one wrote it")]
    Version(u8),
    /// No bytes at all.
    #[error("is empty")]
    Empty,
    /// Not the message that the version promises.
    #[error("is damaged: {0}")]
    Damaged(String),
}

impl DecodeError {
    fn damaged(what: &str) -> Self {
        Self::Damaged(what.to_owned())
    }
}

const VERSION: u8 = 1;

/// A digest of a body, for what is the same where its bytes are.
pub(super) fn digest(body: &[u8]) -> i64 {
    let digest = Sha256::digest(body);
    let mut head = [0; 8];
    head.copy_from_slice(&digest[..8]);
    i64::from_be_bytes(head)
}

fn seal(message: &impl Message) -> Vec<u8> {
    let mut body = Vec::with_capacity(1 + message.encoded_len());
    body.push(VERSION);
    body.extend_from_slice(&message.encode_to_vec());
    body
}

fn open<M: Message + Default>(body: &[u8]) -> Result<M, DecodeError> {
    let (version, message) = body.split_first().ok_or(DecodeError::Empty)?;
    if *version != VERSION {
        return Err(DecodeError::Version(*version));
    }
    M::decode(message).map_err(|error| DecodeError::Damaged(error.to_string()))
}
