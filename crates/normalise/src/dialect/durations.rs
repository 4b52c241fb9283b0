//! Durations that a system tells as attributes, and the check of their unit.

use super::{Anchor, Laid, Reading, SubPhase};
use model::{Flag, Nanos, ServerPhase, Span, Value};

/// How many times its span's length a duration must be before its unit is in doubt. Clocks of one machine differ by
/// far less; milliseconds taken for seconds by far more.
const SUSPECT_FACTOR: i64 = 20;

/// How many times shorter than its span the duration of the whole must be before its unit is in doubt.
const WHOLE_FACTOR: i64 = 200;

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
    /// The whole request, as long as its span: bears witness to the unit.
    pub whole: Option<Nanos>,
    /// Another that only bears witness to the unit.
    pub witness: Option<Nanos>,
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
        let told = [self.queue, self.prefill, self.decode, self.inference, self.whole, self.witness];
        let longest = told.into_iter().flatten().max();
        longest.is_some_and(|longest| far_beyond(longest, span))
            || self.whole.is_some_and(|whole| far_below(whole, span))
    }
}

/// Reads a duration that is a part of its span. Where its unit is in doubt it is flagged and not used.
pub fn part(span: &Span, key: &str, read: fn(&Value) -> Option<Nanos>, reading: &mut Reading) -> Option<Nanos> {
    let told = span.attributes.get(key).and_then(read)?;
    if far_beyond(told, span) {
        reading.flags.set(Flag::UnitSuspect);
        return None;
    }
    Some(told)
}

/// Whether a duration is so much longer than its span that its unit must be another one.
pub fn far_beyond(duration: Nanos, span: &Span) -> bool {
    length(span).is_some_and(|length| duration.0 / SUSPECT_FACTOR > length.0)
}

/// Whether the duration of the whole span is so much shorter than it that its unit must be another one.
fn far_below(whole: Nanos, span: &Span) -> bool {
    whole > Nanos::ZERO && length(span).is_some_and(|length| length.0 / WHOLE_FACTOR > whole.0)
}

fn length(span: &Span) -> Option<Nanos> {
    span.interval().map(|interval| interval.length()).filter(|length| *length > Nanos::ZERO)
}
