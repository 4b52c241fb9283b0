//! A request as distributions see it: its numbers and what decides where they count.

use super::dimension::Dimensions;
use super::flag::Flags;
use super::metric::Metric;
use super::record::ResultClass;
use super::request::{Request, State};
use super::time::UnixNanos;

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

/// One request, as distributions and coverage see it.
#[derive(Debug, Clone, PartialEq)]
pub struct Observation {
    /// The stored id of its labels.
    pub labels: i64,
    /// The time that decides its window.
    pub window_at: UnixNanos,
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
    /// Its numbers.
    pub readings: Readings,
}

impl Observation {
    /// Of a request whose labels are stored under the id `labels`.
    pub fn of(request: &Request, labels: i64) -> Self {
        Self {
            labels,
            window_at: request.window_at,
            state: request.state,
            result: request.result,
            flags: request.flags,
            has_client: request.client.is_some(),
            has_server: request.server.is_some(),
            readings: Readings::of(request),
        }
    }
}

/// The labels of a request, as they are stored together.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Labels {
    /// What the client told.
    pub client: Dimensions,
    /// All: the client's, completed by the server's.
    pub all: Dimensions,
}
