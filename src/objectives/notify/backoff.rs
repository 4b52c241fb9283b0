//! How long to wait before a receiver is tried again.

use std::time::Duration;

/// The wait after the first failure.
const FIRST: Duration = Duration::from_secs(1);

/// The longest wait of our own choice.
const LONGEST: Duration = Duration::from_secs(300);

/// The longest wait that a receiver may ask for.
const LONGEST_ASKED: Duration = Duration::from_secs(3600);

/// The wait after so many failures: twice as long each time, of which `chance` in [0, 1) takes away up to half, so that
/// many senders do not come back at once. Never shorter than the receiver asked for.
pub(super) fn backoff(failures: i32, asked: Option<Duration>, chance: f64) -> Duration {
    let doublings = u32::try_from(failures.saturating_sub(1)).unwrap_or(0).min(16);
    let wait = (FIRST * (1 << doublings)).min(LONGEST).mul_f64(1.0 - chance.clamp(0.0, 1.0) / 2.0);
    asked.map_or(wait, |asked| wait.max(asked.min(LONGEST_ASKED)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_five_minutes() {
        let seconds: Vec<f64> = (1..=12).map(|failures| backoff(failures, None, 0.0).as_secs_f64()).collect();
        assert_eq!(seconds, [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 300.0, 300.0, 300.0]);
        assert_eq!(backoff(3, None, 0.5), Duration::from_secs(3));
        assert_eq!(backoff(i32::MAX, None, 1.0), Duration::from_secs(150));
        assert_eq!(backoff(0, None, 0.0), FIRST);
    }

    #[test]
    fn a_receiver_may_ask_for_more_but_not_for_less() {
        assert_eq!(backoff(1, Some(Duration::from_secs(90)), 0.0), Duration::from_secs(90));
        assert_eq!(backoff(9, Some(Duration::from_secs(1)), 0.0), Duration::from_secs(256));
        assert_eq!(backoff(1, Some(Duration::from_secs(999_999)), 0.0), LONGEST_ASKED);
    }
}
