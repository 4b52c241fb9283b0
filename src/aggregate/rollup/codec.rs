//! Bytes of counts and of digests, little-endian.

use std::collections::BTreeMap;

use bytes::{Buf, BufMut};

use crate::aggregate::cell::{Cell, Counts, Series};
use crate::aggregate::digest::{self, Digest};
use crate::aggregate::sample::Values;
use crate::model::Flag;

const VERSION: u8 = 2;
/// Before callers' spans were taken as client records: there were none to count.
const WITHOUT_SPANS: u8 = 1;

/// Why bytes are no rollup. It has to be built again from its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The bytes end too early, or too late.
    #[error("the rollup has the wrong length: rebuild it")]
    Length,
    /// Written by a version that this one does not know.
    #[error("the rollup has form {0}, this program reads form {VERSION}: rebuild it")]
    Version(u8),
    /// It names a flag or a metric that there is not, or one twice.
    #[error("the rollup names {0}: rebuild it")]
    Unknown(&'static str),
    /// A digest is corrupt.
    #[error(transparent)]
    Digest(#[from] digest::DecodeError),
}

/// Stands where a flag's number would, before the count of requests that were joined by a request id.
const BY_REQUEST_ID: u8 = 255;

/// A digested cell as the bytes of its counts and those of its digests. Values that are not digested are left out.
pub fn encode(cell: &Cell) -> (Vec<u8>, Vec<u8>) {
    let mut counts = vec![VERSION];
    let Counts { requests, client, server, sampled_out, from_spans, .. } = cell.counts;
    for count in [requests, client, server, sampled_out, from_spans] {
        counts.put_u64_le(count);
    }
    for (flag, count) in &cell.counts.excluded {
        counts.put_u8(*flag as u8);
        counts.put_u64_le(*count);
    }
    if cell.counts.by_request_id > 0 {
        counts.put_u8(BY_REQUEST_ID);
        counts.put_u64_le(cell.counts.by_request_id);
    }
    let mut digests = vec![VERSION];
    for (series, values) in &cell.series {
        if let Values::Digest(digest) = values {
            digests.put_u8(series.number());
            digest.encode(&mut digests);
        }
    }
    (counts, digests)
}

/// The counts alone.
///
/// # Errors
/// All of [`DecodeError`].
pub fn decode_counts(mut counts: &[u8]) -> Result<Counts, DecodeError> {
    let version = check_version(&mut counts)?;
    let mut number = || counts.try_get_u64_le().map_err(|_| DecodeError::Length);
    let [requests, client, server, sampled_out] = [number()?, number()?, number()?, number()?];
    let from_spans = if version == WITHOUT_SPANS { 0 } else { number()? };
    let (mut excluded, mut by_request_id) = (BTreeMap::new(), 0);
    while counts.has_remaining() {
        let flag = counts.get_u8();
        let count = counts.try_get_u64_le().map_err(|_| DecodeError::Length)?;
        if flag == BY_REQUEST_ID {
            by_request_id = count;
            continue;
        }
        let flag =
            Flag::ALL.iter().copied().find(|known| *known as u8 == flag).ok_or(DecodeError::Unknown("a flag"))?;
        if excluded.insert(flag, count).is_some() {
            return Err(DecodeError::Unknown("a flag twice"));
        }
    }
    Ok(Counts { requests, client, server, sampled_out, from_spans, by_request_id, excluded })
}

/// A whole cell.
///
/// # Errors
/// All of [`DecodeError`].
pub fn decode(counts: &[u8], mut digests: &[u8]) -> Result<Cell, DecodeError> {
    let counts = decode_counts(counts)?;
    check_version(&mut digests)?;
    let mut series = BTreeMap::new();
    while digests.has_remaining() {
        let number = digests.get_u8();
        let known = Series::from_number(number).ok_or(DecodeError::Unknown("a metric"))?;
        if series.insert(known, Values::Digest(Digest::decode(&mut digests)?)).is_some() {
            return Err(DecodeError::Unknown("a metric twice"));
        }
    }
    Ok(Cell { counts, series })
}

fn check_version(bytes: &mut &[u8]) -> Result<u8, DecodeError> {
    match bytes.try_get_u8() {
        Ok(version @ (VERSION | WITHOUT_SPANS)) => Ok(version),
        Ok(other) => Err(DecodeError::Version(other)),
        Err(_) => Err(DecodeError::Length),
    }
}
