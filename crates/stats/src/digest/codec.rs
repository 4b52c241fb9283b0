//! The stored form of a digest, which is ours: little-endian, versioned, and checked on the way back.
//!
//! | bytes | what |
//! | --- | --- |
//! | 1 | version |
//! | 2 | most centroids |
//! | 8, 8, 8 | sum, smallest, largest (f64) |
//! | 2 | centroids |
//! | 8 + 1 to 10 each | mean (f64), weight (a varint, since most weigh little) |
//!
//! The count is the sum of the weights. An empty digest has a sum and ends of zero and no centroids.

use bytes::{Buf, BufMut};
use prost::encoding::{decode_varint, encode_varint};
use tdigest::{Centroid, TDigest};

use super::{Digest, SIZE};

const VERSION: u8 = 1;

/// Why bytes are no digest. The rollup they come from has to be built again from its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The bytes end too early.
    #[error("the digest ends too early: rebuild its rollup")]
    Truncated,
    /// Written by a version that this one does not know.
    #[error("the digest has form {0}, this program reads form {VERSION}: rebuild its rollup")]
    Version(u8),
    /// Its numbers contradict one another.
    #[error("the digest contradicts itself ({0}): rebuild its rollup")]
    Inconsistent(&'static str),
}

impl Digest {
    /// Appends the stored form to a buffer.
    pub fn encode(&self, into: &mut Vec<u8>) {
        let centroids = self.0.centroids();
        into.put_u8(VERSION);
        into.put_u16_le(SIZE as u16);
        into.put_f64_le(self.0.sum());
        into.put_f64_le(self.0.min().unwrap_or(0.0));
        into.put_f64_le(self.0.max().unwrap_or(0.0));
        into.put_u16_le(centroids.len() as u16);
        for centroid in centroids {
            into.put_f64_le(centroid.mean());
            // Weights count values: always whole.
            encode_varint(centroid.weight() as u64, into);
        }
    }

    /// Reads one stored form off the front of `from`.
    pub fn decode(from: &mut &[u8]) -> Result<Self, DecodeError> {
        let version = from.try_get_u8().map_err(|_| DecodeError::Truncated)?;
        if version != VERSION {
            return Err(DecodeError::Version(version));
        }
        let size = from.try_get_u16_le().map_err(|_| DecodeError::Truncated)?;
        if usize::from(size) != SIZE {
            return Err(DecodeError::Inconsistent("another size"));
        }
        let [sum, min, max] = [float(from)?, float(from)?, float(from)?];
        let length = usize::from(from.try_get_u16_le().map_err(|_| DecodeError::Truncated)?);
        if length > SIZE {
            return Err(DecodeError::Inconsistent("more centroids than its size"));
        }
        let mut centroids = Vec::with_capacity(length);
        for _ in 0..length {
            let mean = float(from)?;
            let weight = decode_varint(from).map_err(|_| DecodeError::Truncated)?;
            centroids.push((mean, weight as f64));
        }
        check(sum, min, max, &centroids)?;
        Ok(Self(build(sum, min, max, &centroids)))
    }
}

fn float(from: &mut &[u8]) -> Result<f64, DecodeError> {
    from.try_get_f64_le().map_err(|_| DecodeError::Truncated)
}

fn check(sum: f64, min: f64, max: f64, centroids: &[(f64, f64)]) -> Result<(), DecodeError> {
    let refuse = |why| Err(DecodeError::Inconsistent(why));
    if !(sum.is_finite() && min.is_finite() && max.is_finite() && min <= max) {
        return refuse("sum or ends");
    }
    if centroids.is_empty() {
        return if [sum, min, max] == [0.0; 3] { Ok(()) } else { refuse("a sum of nothing") };
    }
    // Beyond this a float does not count by one.
    let counts = |weight: f64| (1.0..=9e15).contains(&weight);
    if !centroids.iter().all(|(_, weight)| counts(*weight)) {
        return refuse("weights");
    }
    let total: f64 = centroids.iter().map(|(_, weight)| weight).sum();
    if !counts(total) {
        return refuse("count");
    }
    // A mean of equal values can lie a rounding error outside them.
    let slack = (max.abs().max(min.abs())) * 1e-12;
    if !centroids.iter().all(|(mean, _)| (min - slack..=max + slack).contains(mean)) {
        return refuse("means");
    }
    if !centroids.is_sorted_by(|left, right| left.0 <= right.0) {
        return refuse("order");
    }
    let weighted: f64 = centroids.iter().map(|(mean, weight)| mean * weight).sum();
    let scale = max.abs().max(min.abs()) * total;
    if (weighted - sum).abs() > scale * 1e-6 { refuse("sum") } else { Ok(()) }
}

fn build(sum: f64, min: f64, max: f64, centroids: &[(f64, f64)]) -> TDigest {
    if centroids.is_empty() {
        return TDigest::new_with_size(SIZE);
    }
    let count = centroids.iter().map(|(_, weight)| weight).sum();
    let centroids = centroids.iter().map(|(mean, weight)| Centroid::new(*mean, *weight)).collect();
    TDigest::new(centroids, sum, count, Some(max), Some(min), SIZE)
}
