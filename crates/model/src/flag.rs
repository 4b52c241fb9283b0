//! What a reader must know of a request beside its numbers.

use std::fmt;

use serde::{Serialize, Serializer};

macro_rules! flags {
    ($($(#[$doc:meta])* $variant:ident = $bit:literal, $name:literal;)*) => {
        /// A remark on a request (design, section 6). The number is the bit under which it is stored: never reuse one.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Flag {
            $($(#[$doc])* $variant = $bit,)*
        }

        impl Flag {
            /// All of them, in the order of their bits.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The name in the API, the database and the docs.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}

flags! {
    /// The client's duration is shorter than the server's total. Excluded.
    NegativeEnvelope = 0, "negative_envelope";
    /// Two records claim one request. Excluded.
    TraceIdCollision = 1, "trace_id_collision";
    /// Several server spans that neither nest nor yield. Excluded.
    AmbiguousEntry = 2, "ambiguous_entry";
    /// The client cannot tell its setup apart: no network envelope.
    SetupUnknown = 3, "setup_unknown";
    /// The client's record ends at the answer's headers: no network envelope.
    HeadersOnly = 4, "headers_only";
    /// Streaming, and a side does not tell its first token.
    NoFirstToken = 5, "no_first_token";
    /// The client's first token came before the server's: no `ttft` pair.
    NegativeTtftEnvelope = 6, "negative_ttft_envelope";
    /// A span ends before its start, or not at all.
    ClockInvalid = 7, "clock_invalid";
    /// A child on another clock is longer than its parent.
    NegativeUpstream = 8, "negative_upstream";
    /// Durations told as attributes are longer than their span.
    AttributesExceedSpan = 9, "attributes_exceed_span";
    /// The entry span ended before the answer did.
    EntryEndedEarly = 10, "entry_ended_early";
    /// Two ended copies of a span differ.
    ConflictingDuplicate = 11, "conflicting_duplicate";
    /// New content changed a row that had been joined.
    Late = 12, "late";
    /// The client's traceparent asked for no sampling.
    SampledOut = 13, "sampled_out";
    /// The server's first token is known from an inner span only.
    TtftFromInner = 14, "ttft_from_inner";
    /// A proxy's attempt with nothing inside it.
    UpstreamOpaque = 15, "upstream_opaque";
    /// Server spans that have no place in the request.
    DetachedSpans = 16, "detached_spans";
    /// Spans, but none of them a server's entry.
    NoEntrySpan = 17, "no_entry_span";
    /// The answer's own timing has no one call to be laid into.
    ResponseMetricsUnplaced = 18, "response_metrics_unplaced";
    /// A duration told as an attribute looks like another unit.
    UnitSuspect = 19, "unit_suspect";
    /// Two sources of one phase disagree.
    SourceDisagreement = 20, "source_disagreement";
    /// The trace has more spans than are kept.
    TraceTooLarge = 21, "trace_too_large";
    /// Nothing tells the gateway's time.
    GatewayUnknown = 22, "gateway_unknown";
    /// Nothing tells the time in the inference queue.
    QueueUnknown = 23, "queue_unknown";
    /// Nothing tells the time of inference.
    GenerationUnknown = 24, "generation_unknown";
    /// A text held U+0000, which was replaced.
    TextRepaired = 25, "text_repaired";
    /// The client measured neither duration nor wall time, as when it gave up: no envelope.
    DurationUnknown = 26, "duration_unknown";
    /// No client record came: a CLIENT span of the caller stands in its place.
    ClientFromSpan = 27, "client_from_span";
    /// The client told no trace id: the id shown is a digest of its request id.
    TraceIdUnknown = 28, "trace_id_unknown";
    /// Several client records or several server traces carry the request id: no one is joined by it.
    RequestIdAmbiguous = 29, "request_id_ambiguous";
    /// The events of the stream were held back on the way, and came in bursts.
    SuspectedBuffering = 30, "suspected_buffering";
    /// The stream paused for so long that it may hang, or may have hung.
    SuspectedHang = 31, "suspected_hang";
    /// The entry span went on after the answer had ended: the server's time ends where a span inside shows it.
    EntryEndedLate = 32, "entry_ended_late";
    /// The client left before the server ended: the server's time is cut at the client's duration.
    ServerOutlivedClient = 33, "server_outlived_client";
}

impl fmt::Display for Flag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for Flag {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// A set of flags, stored as one integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Flags(i64);

impl Flags {
    /// None set.
    pub const NONE: Self = Self(0);

    /// From the stored integer; bits that no flag has are dropped.
    pub fn from_bits(bits: i64) -> Self {
        Flag::ALL.iter().copied().filter(|flag| bits & flag.bit() != 0).collect()
    }

    /// The integer to store.
    pub const fn bits(self) -> i64 {
        self.0
    }

    /// Adds one.
    pub fn set(&mut self, flag: Flag) {
        self.0 |= flag.bit();
    }

    /// Adds one where `when` holds.
    pub fn set_if(&mut self, when: bool, flag: Flag) {
        if when {
            self.set(flag);
        }
    }

    /// Adds all of another set.
    pub fn extend(&mut self, other: Self) {
        self.0 |= other.0;
    }

    /// Whether it is set.
    pub const fn has(self, flag: Flag) -> bool {
        self.0 & flag.bit() != 0
    }

    /// The same set without one.
    #[must_use]
    pub const fn without(self, flag: Flag) -> Self {
        Self(self.0 & !flag.bit())
    }

    /// Those set, in the order of their bits.
    pub fn iter(self) -> impl Iterator<Item = Flag> {
        Flag::ALL.iter().copied().filter(move |flag| self.has(*flag))
    }

    /// Why an excluded request is excluded. A request may carry `clock_invalid` without being excluded; that flag is
    /// the reason only where no other is.
    pub fn exclusion(self) -> Option<Flag> {
        let reasons = [Flag::TraceIdCollision, Flag::AmbiguousEntry, Flag::NegativeEnvelope, Flag::ClockInvalid];
        reasons.into_iter().find(|flag| self.has(*flag))
    }
}

impl Flag {
    const fn bit(self) -> i64 {
        1 << self as u8
    }
}

impl FromIterator<Flag> for Flags {
    fn from_iter<I: IntoIterator<Item = Flag>>(flags: I) -> Self {
        let mut set = Self::NONE;
        for flag in flags {
            set.set(flag);
        }
        set
    }
}

impl Serialize for Flags {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}
