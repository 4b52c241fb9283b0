//! Times and durations as a reader writes them.

use chrono::{DateTime, Utc};

use crate::serve::error::ApiError;
use model::{Nanos, UnixNanos};

/// A time: `now`, relative to now such as `-1h` or `-1h30m`, or RFC 3339.
///
/// # Errors
/// [`ApiError::Parameter`] where it is none of these.
pub fn parse_time(name: &str, text: &str, now: UnixNanos) -> Result<UnixNanos, ApiError> {
    if text == "now" {
        return Ok(now);
    }
    if let Some(ago) = text.strip_prefix('-').and_then(|ago| humantime::parse_duration(ago).ok()) {
        return Ok(now - Nanos::from(ago));
    }
    // A plus sign that the sender did not escape reaches us as a space.
    match DateTime::parse_from_rfc3339(&text.replace(' ', "+")) {
        Ok(at) => Ok(UnixNanos::from_datetime(at.with_timezone(&Utc))),
        Err(_) => {
            let detail = format!(
                "{name} is {text:?}; give \"now\", a time before now such as -15m or -1h, or RFC 3339 such as \
                 2026-01-02T03:04:05Z"
            );
            Err(ApiError::parameter(name, detail))
        }
    }
}

/// A duration in humantime's form, such as `30s` or `1m`; never zero.
///
/// # Errors
/// [`ApiError::Parameter`] where it is not one.
pub fn parse_duration(name: &str, text: &str) -> Result<Nanos, ApiError> {
    match humantime::parse_duration(text) {
        Ok(duration) if !duration.is_zero() => Ok(Nanos::from(duration)),
        _ => Err(ApiError::parameter(name, format!("{name} is {text:?}; give a duration such as 30s, 1m or 1h"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: UnixNanos = UnixNanos(1_800_000_000_000_000_000);

    #[test]
    fn times_are_relative_or_of_the_calendar() {
        let time = |text| parse_time("from", text, NOW);
        assert_eq!(time("now").expect("now"), NOW);
        assert_eq!(time("-1h30m").expect("relative"), NOW - Nanos(5_400_000_000_000));
        let noon = UnixNanos(1_767_355_200_000_000_000);
        assert_eq!(time("2026-01-02T12:00:00Z").expect("RFC 3339"), noon);
        assert_eq!(time("2026-01-02T14:00:00 02:00").expect("an unescaped plus"), noon);
        for bad in ["1h", "yesterday", "-", "-1parsec", "2026-01-02"] {
            assert!(time(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn durations_are_never_zero() {
        assert_eq!(parse_duration("step", "1m").expect("a minute"), Nanos(60_000_000_000));
        assert!(parse_duration("step", "0s").is_err());
        assert!(parse_duration("step", "60").is_err());
    }
}
