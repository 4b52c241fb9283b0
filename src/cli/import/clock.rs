//! Wall clocks as load tools write them.

use model::UnixNanos;

/// From seconds of the Unix epoch as a float. It resolves 0.2 µs, so what is below a microsecond is noise.
pub fn unix(seconds: f64) -> Option<UnixNanos> {
    let micros = (seconds * 1e6).round();
    // Whole numbers up to there are exact, and a thousand times as many nanoseconds still fit.
    (micros.abs() < (1_i64 << 53) as f64).then(|| UnixNanos(micros as i64 * 1_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn microseconds_survive_the_float() {
        assert_eq!(unix(1_795_980_792.950_042), Some(UnixNanos(1_795_980_792_950_042_000)));
        assert_eq!(unix(1_795_980_795.0), Some(UnixNanos(1_795_980_795_000_000_000)));
        assert_eq!(unix(f64::NAN), None);
    }
}
