//! Reading an HTTP body within its limits, before and after decompression.

use std::io::{self, Read};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, StatusCode, header};
use bytes::{Bytes, BytesMut};
use flate2::bufread::MultiGzDecoder;
use futures::StreamExt;
use thiserror::Error;

use super::budget::Reservation;
use super::intake::Refusal;
use super::limits::{ByteLimit, Limits};

/// The largest window a zstd frame may ask for, as a power of two (8 MiB, which RFC 8878 tells decoders to support):
/// the window is allocated before any output is counted.
const ZSTD_WINDOW_LOG: u32 = 23;
/// Output is decompressed and accounted for in steps of this many bytes.
const INFLATE_STEP: usize = 64 * 1024;

/// Why a body could not be read.
#[derive(Debug, Error)]
pub enum BodyError {
    /// Larger than allowed, as sent or after decompression.
    #[error("{0}")]
    TooLarge(String),
    /// A `Content-Encoding` that is not understood.
    #[error("content encoding {0:?} is not understood: send gzip, zstd or no compression")]
    UnknownEncoding(String),
    /// The compressed data is broken or cut off.
    #[error("the body is not valid {encoding}: {cause}; send it whole, or without Content-Encoding")]
    Corrupt {
        /// The encoding that was declared.
        encoding: &'static str,
        /// What the decoder found.
        cause: io::Error,
    },
    /// The sender stopped sending. It may well succeed later, so it is asked to try again.
    #[error("the body did not arrive within {limit:?}: try again, in smaller batches if that repeats")]
    TooSlow {
        /// How long it had.
        limit: Duration,
        /// When to try again.
        retry_after: Duration,
    },
    /// The connection broke.
    #[error("the body broke off: {0}")]
    Broken(axum::Error),
    /// The listeners hold as much as they may.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

impl BodyError {
    /// The HTTP status that answers it.
    pub const fn status(&self) -> StatusCode {
        match self {
            Self::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::UnknownEncoding(_) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Corrupt { .. } | Self::Broken(_) => StatusCode::BAD_REQUEST,
            Self::Refused(Refusal::Invalid { .. }) => StatusCode::BAD_REQUEST,
            Self::TooSlow { .. } | Self::Refused(_) => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// When to try again, where that helps.
    pub const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::TooSlow { retry_after, .. }
            | Self::Refused(Refusal::Overloaded { retry_after, .. } | Refusal::Unavailable { retry_after, .. }) => {
                Some(*retry_after)
            }
            _ => None,
        }
    }

    /// Its name in the listeners' counters.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::TooLarge(_) => "too_large",
            Self::UnknownEncoding(_) => "unknown_encoding",
            Self::Corrupt { .. } => "corrupt",
            Self::TooSlow { .. } => "too_slow",
            Self::Broken(_) => "broken_off",
            Self::Refused(refusal) => refusal.reason(),
        }
    }
}

/// How a body is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// Not at all.
    Identity,
    /// RFC 1952, of one or several members.
    Gzip,
    /// RFC 8878.
    Zstd,
}

impl Encoding {
    /// Reads `Content-Encoding`.
    ///
    /// # Errors
    /// Any other encoding, and a chain of several.
    pub fn of(headers: &HeaderMap) -> Result<Self, BodyError> {
        let Some(value) = headers.get(header::CONTENT_ENCODING) else {
            return Ok(Self::Identity);
        };
        let name = String::from_utf8_lossy(value.as_bytes()).trim().to_ascii_lowercase();
        match name.as_str() {
            "" | "identity" => Ok(Self::Identity),
            "gzip" | "x-gzip" => Ok(Self::Gzip),
            "zstd" => Ok(Self::Zstd),
            _ => Err(BodyError::UnknownEncoding(name)),
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Identity => "plain data",
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        }
    }
}

/// A body as it was sent, still compressed, with the memory it holds.
#[derive(Debug)]
pub struct ReceivedBody {
    bytes: Bytes,
    encoding: Encoding,
    limit: ByteLimit,
    reservation: Arc<Reservation>,
}

impl ReceivedBody {
    /// Reads `body` to its end.
    ///
    /// # Errors
    /// An unknown encoding, more than `limit`, more than the listeners may hold, or a body that does not arrive in time.
    pub async fn read(
        headers: &HeaderMap,
        body: Body,
        limit: ByteLimit,
        limits: &Limits,
        reservation: Arc<Reservation>,
    ) -> Result<Self, BodyError> {
        let encoding = Encoding::of(headers)?;
        let declared = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
        if declared.is_some_and(|length| length > limit.bytes) {
            return Err(BodyError::TooLarge(limit.exceeded()));
        }
        let collecting = tokio::time::timeout(limits.body_timeout, collect(body, declared, limit, &reservation));
        let Ok(collected) = collecting.await else {
            return Err(BodyError::TooSlow { limit: limits.body_timeout, retry_after: limits.retry_after });
        };
        let bytes = collected?;
        Ok(Self { bytes, encoding, limit, reservation })
    }

    /// The memory it holds.
    pub fn reservation(&self) -> Arc<Reservation> {
        Arc::clone(&self.reservation)
    }

    /// The limit it was read under.
    pub fn limit(&self) -> ByteLimit {
        self.limit
    }

    /// True where decompression or decoding takes long enough to be moved off the threads that serve sockets.
    pub fn is_heavy(&self) -> bool {
        match self.encoding {
            Encoding::Identity => self.bytes.len() > super::otlp::HEAVY_BYTES,
            Encoding::Gzip | Encoding::Zstd => self.bytes.len() > super::otlp::HEAVY_BYTES / 8,
        }
    }

    /// The decompressed bytes; not copied where they were sent plain.
    ///
    /// # Errors
    /// Broken compression, or more than the limit after it.
    pub fn decompress(self) -> Result<Bytes, BodyError> {
        match self.encoding {
            Encoding::Identity => Ok(self.bytes),
            Encoding::Gzip => self.inflate(MultiGzDecoder::new(&*self.bytes)),
            Encoding::Zstd => {
                let mut decoder =
                    zstd::stream::read::Decoder::with_buffer(&*self.bytes).map_err(|e| self.corrupt(e))?;
                decoder.window_log_max(ZSTD_WINDOW_LOG).map_err(|e| self.corrupt(e))?;
                self.inflate(decoder)
            }
        }
    }

    fn inflate(&self, mut decoder: impl Read) -> Result<Bytes, BodyError> {
        let mut output = Vec::new();
        loop {
            let read = decoder.by_ref().take(INFLATE_STEP as u64).read_to_end(&mut output);
            let step = read.map_err(|cause| self.corrupt(cause))?;
            if step == 0 {
                return Ok(Bytes::from(output));
            }
            if output.len() > self.limit.bytes {
                return Err(BodyError::TooLarge(self.limit.exceeded()));
            }
            self.reservation.grow(step)?;
        }
    }

    fn corrupt(&self, cause: io::Error) -> BodyError {
        BodyError::Corrupt { encoding: self.encoding.name(), cause }
    }
}

async fn collect(
    body: Body,
    declared: Option<usize>,
    limit: ByteLimit,
    reservation: &Reservation,
) -> Result<Bytes, BodyError> {
    let mut chunks = body.into_data_stream();
    let mut first = Bytes::new();
    let mut joined = BytesMut::new();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(BodyError::Broken)?;
        if first.len() + joined.len() + chunk.len() > limit.bytes {
            return Err(BodyError::TooLarge(limit.exceeded()));
        }
        reservation.grow(chunk.len())?;
        if first.is_empty() && joined.is_empty() {
            first = chunk;
            continue;
        }
        if joined.is_empty() {
            joined.reserve(declared.unwrap_or_default().max(first.len() + chunk.len()));
            joined.extend_from_slice(&first);
            first = Bytes::new();
        }
        joined.extend_from_slice(&chunk);
    }
    if joined.is_empty() { Ok(first) } else { Ok(joined.freeze()) }
}
