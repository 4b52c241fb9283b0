//! Durations that an engine tells as attributes of its request span.

use super::{Anchor, Laid, Reading, SubPhase};
use crate::model::{Flag, Nanos, ServerPhase, Span};

/// How many times its span's length a duration must be before its unit is in doubt. Clocks of one machine differ by
/// far less; milliseconds taken for seconds by far more.
const SUSPECT_FACTOR: i64 = 20;

/// What an engine tells of its inside.
#[derive(Debug, Clone, Copy, Default)]
pub struct EngineDurations {
    /// Accepted, no slot yet.
    pub queue: Option<Nanos>,
    /// Slot to first token.
    pub prefill: Option<Nanos>,
    /// First token to last.
    pub decode: Option<Nanos>,
    /// Slot to last token.
    pub inference: Option<Nanos>,
    /// Others, which only bear witness to the unit.
    pub witnesses: [Option<Nanos>; 2],
}

impl EngineDurations {
    /// Lays them against the span's end; where their unit is in doubt, flags that instead.
    pub fn lay(&self, span: &Span, reading: &mut Reading) {
        if self.unit_suspect(span) {
            reading.flags.set(Flag::UnitSuspect);
            return;
        }
        let (prefill, decode) = self.halves();
        let mut lay = |phase, sub, length: Option<Nanos>| {
            if let Some(length) = length {
                reading.laid.push(Laid { phase, sub, length, anchor: Anchor::End });
            }
        };
        if prefill.is_none() && decode.is_none() {
            lay(ServerPhase::Generation, None, self.inference);
        }
        lay(ServerPhase::Generation, Some(SubPhase::Decode), decode);
        lay(ServerPhase::Generation, Some(SubPhase::Prefill), prefill);
        lay(ServerPhase::GpuQueue, None, self.queue);
    }

    /// Prefill and decode; where only one is told, inference tells the other.
    fn halves(&self) -> (Option<Nanos>, Option<Nanos>) {
        let rest = |known: Nanos| self.inference.map(|inference| (inference - known).max(Nanos::ZERO));
        match (self.prefill, self.decode) {
            (Some(prefill), None) => (Some(prefill), rest(prefill)),
            (None, Some(decode)) => (rest(decode), Some(decode)),
            both => both,
        }
    }

    fn unit_suspect(&self, span: &Span) -> bool {
        let told = [self.queue, self.prefill, self.decode, self.inference];
        let longest = told.into_iter().chain(self.witnesses).flatten().max();
        longest.is_some_and(|longest| far_beyond(longest, span))
    }
}

/// Whether a duration is so much longer than its span that its unit must be another one.
pub fn far_beyond(duration: Nanos, span: &Span) -> bool {
    let Some(interval) = span.interval() else { return false };
    let length = interval.length();
    length > Nanos::ZERO && duration.0 / SUSPECT_FACTOR > length.0
}
