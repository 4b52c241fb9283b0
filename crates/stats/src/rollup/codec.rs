//! Bytes of counts and of digests, little-endian.

use std::collections::BTreeMap;

use bytes::{Buf, BufMut};

use crate::cell::{Cell, Counts, Series};
use crate::digest::{self, Digest};
use crate::sample::Values;
use model::{Completeness, Flag};

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

/// These stand where a flag's number would, each before a count that most cells do not have. Rollups that were written
/// before a count was known lack it.
const BY_REQUEST_ID: u8 = 255;
const JUDGED: u8 = 254;
const SUSPECTED_BUFFERING: u8 = 253;
const WITH_OUTPUT_TOKENS: u8 = 252;
const OUTPUT_TOKENS: u8 = 251;
/// The last of those of completeness: one each, downwards.
const COMPLETENESS: u8 = 250;

const fn completeness_tag(completeness: Completeness) -> u8 {
    COMPLETENESS - completeness as u8
}

/// The counts that have tags.
fn tagged(counts: &Counts) -> impl Iterator<Item = (u8, u64)> {
    let single = [
        (BY_REQUEST_ID, counts.by_request_id),
        (JUDGED, counts.judged),
        (SUSPECTED_BUFFERING, counts.suspected_buffering),
        (WITH_OUTPUT_TOKENS, counts.with_output_tokens),
        (OUTPUT_TOKENS, counts.output_tokens),
    ];
    let completeness = counts.completeness.iter().map(|(class, n)| (completeness_tag(*class), *n));
    single.into_iter().chain(completeness).filter(|(_, n)| *n > 0)
}

/// Where a tagged count belongs.
fn place_of(tag: u8, counts: &mut Counts) -> Option<&mut u64> {
    match tag {
        BY_REQUEST_ID => Some(&mut counts.by_request_id),
        JUDGED => Some(&mut counts.judged),
        SUSPECTED_BUFFERING => Some(&mut counts.suspected_buffering),
        WITH_OUTPUT_TOKENS => Some(&mut counts.with_output_tokens),
        OUTPUT_TOKENS => Some(&mut counts.output_tokens),
        _ => {
            let class = Completeness::ALL.into_iter().find(|class| completeness_tag(*class) == tag)?;
            Some(counts.completeness.entry(class).or_default())
        }
    }
}

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
    for (tag, count) in tagged(&cell.counts) {
        counts.put_u8(tag);
        counts.put_u64_le(count);
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
pub fn decode_counts(mut bytes: &[u8]) -> Result<Counts, DecodeError> {
    let version = check_version(&mut bytes)?;
    let mut number = || bytes.try_get_u64_le().map_err(|_| DecodeError::Length);
    let [requests, client, server, sampled_out] = [number()?, number()?, number()?, number()?];
    let from_spans = if version == WITHOUT_SPANS { 0 } else { number()? };
    let mut counts = Counts { requests, client, server, sampled_out, from_spans, ..Counts::default() };
    while bytes.has_remaining() {
        let tag = bytes.get_u8();
        let count = bytes.try_get_u64_le().map_err(|_| DecodeError::Length)?;
        if let Some(place) = place_of(tag, &mut counts) {
            *place = count;
            continue;
        }
        let flag = Flag::ALL.iter().copied().find(|known| *known as u8 == tag).ok_or(DecodeError::Unknown("a flag"))?;
        if counts.excluded.insert(flag, count).is_some() {
            return Err(DecodeError::Unknown("a flag twice"));
        }
    }
    Ok(counts)
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
