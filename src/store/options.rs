//! What the store is told to do and to bound.

use std::time::Duration;

/// Times and limits of the store.
#[derive(Debug, Clone)]
pub struct StoreOptions {
    /// Quiet time after the last arrival of a trace before it is joined.
    pub settle: Duration,
    /// Whether a server that does not write through to disk is accepted.
    pub allow_fsync_off: bool,
    /// How long arrivals and requests are kept, by the time of their arrival.
    pub retention: Duration,
    /// How long rollups are kept: label tuples are kept as long.
    pub rollup_retention: Duration,
    /// Connections for reading and joining; the writers have two of their own.
    pub max_connections: u32,
    /// How many bytes may wait for their commit.
    pub queue_bytes: usize,
    /// How many label tuples are told apart; what comes beyond shares one overflow bucket.
    pub max_dimension_tuples: u32,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            settle: Duration::from_secs(15),
            allow_fsync_off: false,
            retention: Duration::from_secs(7 * 86_400),
            rollup_retention: Duration::from_secs(90 * 86_400),
            max_connections: 8,
            queue_bytes: 64 << 20,
            max_dimension_tuples: 10_000,
        }
    }
}
