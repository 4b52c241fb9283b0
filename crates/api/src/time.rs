use chrono::SecondsFormat;

use model::UnixNanos;

/// A time as the API shows it, with as many decimals of a second as it needs.
pub fn rfc3339(at: UnixNanos) -> String {
    at.to_datetime().to_rfc3339_opts(SecondsFormat::AutoSi, true)
}
