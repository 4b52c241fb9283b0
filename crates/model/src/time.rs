//! Durations, clock readings and intervals, in integer nanoseconds.
//!
//! A [`Nanos`] may cross clocks, a [`UnixNanos`] may not: two clock readings are only ever subtracted when both come
//! from one clock domain.

use std::iter::Sum;
use std::ops::{Add, AddAssign, Neg, Sub};
use std::time::Duration;

use chrono::{DateTime, TimeZone, Utc};

const NANOS_PER_MILLI: f64 = 1_000_000.0;

/// A signed duration in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Nanos(pub i64);

impl Nanos {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// From milliseconds, rounded to the nearest nanosecond; `None` where the value is not finite or does not fit.
    pub fn from_millis(millis: f64) -> Option<Self> {
        Self::from_f64(millis * NANOS_PER_MILLI)
    }

    /// From seconds, rounded to the nearest nanosecond; `None` where the value is not finite or does not fit.
    pub fn from_secs(seconds: f64) -> Option<Self> {
        Self::from_f64(seconds * 1e9)
    }

    fn from_f64(nanos: f64) -> Option<Self> {
        // 2^62 ns are 146 years: far beyond any duration, far from overflow in sums.
        (nanos.abs() < (1_i64 << 62) as f64).then(|| Self(nanos.round() as i64))
    }

    /// In milliseconds, for the edges.
    pub fn as_millis(self) -> f64 {
        self.0 as f64 / NANOS_PER_MILLI
    }

    /// As people write it: `10m`, `1h 30m`. Of what is negative the size.
    pub fn in_words(self) -> String {
        humantime::format_duration(Duration::from_nanos(self.0.unsigned_abs())).to_string()
    }

    /// In seconds, for rates.
    pub fn as_secs(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl From<Duration> for Nanos {
    /// One too long to be told, beyond 292 years, becomes the longest that can be.
    fn from(duration: Duration) -> Self {
        Self(i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX))
    }
}

impl Add for Nanos {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Nanos {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Neg for Nanos {
    type Output = Self;
    fn neg(self) -> Self {
        Self(self.0.saturating_neg())
    }
}

impl Sum for Nanos {
    fn sum<I: Iterator<Item = Self>>(values: I) -> Self {
        values.fold(Self::ZERO, Add::add)
    }
}

/// A reading of one machine's wall clock: nanoseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnixNanos(pub i64);

impl UnixNanos {
    /// Now, by this machine's clock.
    pub fn now() -> Self {
        Self::from_datetime(Utc::now())
    }

    /// From a calendar time; one outside 1677 to 2262 becomes the nearest end of that range.
    pub fn from_datetime(at: DateTime<Utc>) -> Self {
        let outside = if at.timestamp() < 0 { i64::MIN } else { i64::MAX };
        Self(at.timestamp_nanos_opt().unwrap_or(outside))
    }

    /// As a calendar time.
    pub fn to_datetime(self) -> DateTime<Utc> {
        Utc.timestamp_nanos(self.0)
    }
}

impl Add<Nanos> for UnixNanos {
    type Output = Self;
    fn add(self, by: Nanos) -> Self {
        Self(self.0.saturating_add(by.0))
    }
}

impl Sub<Nanos> for UnixNanos {
    type Output = Self;
    fn sub(self, by: Nanos) -> Self {
        Self(self.0.saturating_sub(by.0))
    }
}

impl Sub for UnixNanos {
    type Output = Nanos;
    fn sub(self, other: Self) -> Nanos {
        Nanos(self.0.saturating_sub(other.0))
    }
}

/// A half-open stretch of one clock, `start <= end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Interval {
    /// First instant.
    pub start: UnixNanos,
    /// First instant that is outside again.
    pub end: UnixNanos,
}

impl Interval {
    /// `None` where the end lies before the start.
    pub fn new(start: UnixNanos, end: UnixNanos) -> Option<Self> {
        (start <= end).then_some(Self { start, end })
    }

    pub fn length(self) -> Nanos {
        self.end - self.start
    }

    /// Whether `other` lies inside, ends included.
    pub fn contains(self, other: Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }

    /// The common part, which may be empty; `None` where the two do not even touch.
    pub fn intersection(self, other: Self) -> Option<Self> {
        Self::new(self.start.max(other.start), self.end.min(other.end))
    }

    /// The same length, moved by a duration.
    pub fn shifted(self, by: Nanos) -> Self {
        Self { start: self.start + by, end: self.end + by }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_round_to_the_nearest_nanosecond() {
        assert_eq!(Nanos::from_millis(0.1), Some(Nanos(100_000)));
        assert_eq!(Nanos::from_millis(1842.0), Some(Nanos(1_842_000_000)));
        assert_eq!(Nanos::from_millis(f64::NAN), None);
        assert_eq!(Nanos::from_secs(1e12), None);
    }

    #[test]
    fn touching_intervals_share_an_empty_part() {
        let left = Interval { start: UnixNanos(0), end: UnixNanos(5) };
        let right = Interval { start: UnixNanos(5), end: UnixNanos(9) };
        assert_eq!(left.intersection(right).map(Interval::length), Some(Nanos::ZERO));
        assert_eq!(Interval::new(UnixNanos(2), UnixNanos(1)), None);
    }
}
