//! How far two clocks may disagree before a difference between their times means something (design, section 6).

use model::Nanos;

/// max(1 ms, 0.02 % of the client's time).
pub fn tolerance(client: Nanos) -> Nanos {
    const MILLISECOND: i64 = 1_000_000;
    Nanos(MILLISECOND.max(client.0 / 5_000))
}
