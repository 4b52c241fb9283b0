//! A request as distributions see it: its numbers and what decides where they count.

use super::dimension::Dimensions;
use super::flag::Flags;
use super::metric::Metric;
use super::record::{Completeness, ResultClass};
use super::request::{JoinMethod, Request, State};
use super::time::{Interval, Nanos, UnixNanos};

/// The values of all metrics of one request; unknown ones are absent.
#[derive(Debug, Clone, PartialEq)]
pub struct Readings([Option<f64>; Metric::ALL.len()]);

impl Readings {
    /// None known.
    pub const NONE: Self = Self([None; Metric::ALL.len()]);

    /// All that a request tells.
    pub fn of(request: &Request) -> Self {
        let mut readings = Self::NONE;
        for metric in Metric::ALL {
            readings.set(*metric, metric.of(request).map(super::metric::Reading::as_f64));
        }
        readings
    }

    /// One value, in the unit in which it is stored.
    pub fn get(&self, metric: Metric) -> Option<f64> {
        self.0[metric as usize]
    }

    /// Sets one value; one that is not finite becomes unknown.
    pub fn set(&mut self, metric: Metric, value: Option<f64>) {
        self.0[metric as usize] = value.filter(|value| value.is_finite());
    }
}

/// The part of the requests that one rollup is a function of: those that arrived on one day and began in one minute.
///
/// Requests leave the store by the day of their arrival, so that a slice is there as a whole or not at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slice {
    /// Start of the day, in UTC, of the first arrival.
    pub day: UnixNanos,
    /// Start of the minute of the time that decides the window.
    pub minute: UnixNanos,
}

impl Slice {
    /// The length of a slice's minute.
    pub const MINUTE: Nanos = Nanos(60_000_000_000);
    /// The length of a slice's day.
    pub const DAY: Nanos = Nanos(86_400_000_000_000);

    /// The slice of a request.
    pub fn of(arrived_at: UnixNanos, window_at: UnixNanos) -> Self {
        Self { day: floor(arrived_at, Self::DAY), minute: Self::minute_of(window_at) }
    }

    /// The start of the minute of a time.
    pub fn minute_of(at: UnixNanos) -> UnixNanos {
        floor(at, Self::MINUTE)
    }

    /// The smallest window of whole minutes around a window.
    pub fn whole_minutes(window: Interval) -> Interval {
        let start = Self::minute_of(window.start);
        let end = Self::minute_of(window.end);
        Interval { start, end: if end < window.end { end + Self::MINUTE } else { end } }
    }
}

fn floor(at: UnixNanos, to: Nanos) -> UnixNanos {
    UnixNanos(at.0.div_euclid(to.0).saturating_mul(to.0))
}

/// One request, as distributions and coverage see it.
#[derive(Debug, Clone, PartialEq)]
pub struct Observation {
    /// The stored id of its labels.
    pub labels: i64,
    /// The part of the requests to which it belongs.
    pub slice: Slice,
    /// What became of it.
    pub state: State,
    /// How it ended.
    pub result: Option<ResultClass>,
    /// Remarks.
    pub flags: Flags,
    /// Whether a client record came.
    pub has_client: bool,
    /// Whether a server's entry span came.
    pub has_server: bool,
    /// What tied the sides together.
    pub join_method: JoinMethod,
    /// Whether all of its stream arrived.
    pub completeness: Option<Completeness>,
    /// Whether the rhythm of its stream could be judged.
    pub tells_rhythm: bool,
    /// Tokens of the answer.
    pub output_tokens: Option<i64>,
    /// Its numbers.
    pub readings: Readings,
}

impl Observation {
    /// Of a request that arrived at `arrived_at` and whose labels are stored under the id `labels`.
    pub fn of(request: &Request, arrived_at: UnixNanos, labels: i64) -> Self {
        Self {
            labels,
            slice: Slice::of(arrived_at, request.window_at),
            state: request.state,
            result: request.result,
            flags: request.flags,
            has_client: request.client.is_some(),
            has_server: request.server.is_some(),
            join_method: request.join_method,
            completeness: request.completeness,
            tells_rhythm: request.tells_rhythm(),
            output_tokens: request.output_tokens,
            readings: Readings::of(request),
        }
    }
}

/// The labels of a request, as they are stored together.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Labels {
    pub client: Dimensions,
    /// All: the client's, completed by the server's.
    pub all: Dimensions,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_widened_to_whole_minutes() {
        let minute = Slice::MINUTE.0;
        let widened = |start, end| {
            let window = Slice::whole_minutes(Interval { start: UnixNanos(start), end: UnixNanos(end) });
            (window.start.0 / minute, window.end.0 / minute)
        };
        assert_eq!(widened(0, minute), (0, 1));
        assert_eq!(widened(minute - 1, minute + 1), (0, 2));
        assert_eq!(widened(-1, 1), (-1, 1));
    }

    #[test]
    fn a_slice_is_a_day_and_a_minute() {
        let slice = Slice::of(UnixNanos(Slice::DAY.0 + 5), UnixNanos(-1));
        assert_eq!((slice.day.0, slice.minute.0), (Slice::DAY.0, -Slice::MINUTE.0));
    }
}
