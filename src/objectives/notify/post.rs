//! One POST, and what may be told of its failure.

use std::error::Error;
use std::time::Duration;

use chrono::{DateTime, Utc};
use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::{Client, RequestBuilder, redirect};

use model::UnixNanos;

/// How long a receiver may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why a receiver was not told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    /// For people; holds no address.
    pub(super) reason: String,
    /// How long the receiver asks us to wait.
    pub(super) retry_after: Option<Duration>,
}

/// A client that follows nobody elsewhere: what is signed and authorised is for one address.
pub(super) fn client() -> reqwest::Result<Client> {
    // Fails only where a provider is installed already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let agent = concat!("tracejoin/", env!("CARGO_PKG_VERSION"));
    Client::builder().redirect(redirect::Policy::none()).timeout(PATIENCE).user_agent(agent).build()
}

/// Sends, and takes any answer of success for one.
pub(super) async fn send(request: RequestBuilder, now: UnixNanos) -> Result<(), Failure> {
    let answer = request.send().await.map_err(|error| Failure { reason: told(error), retry_after: None })?;
    if answer.status().is_success() {
        return Ok(());
    }
    let retry_after = retry_after(answer.headers(), now.to_datetime());
    Err(Failure { reason: format!("it answered {}", answer.status()), retry_after })
}

/// A failure without the address, which may hold a password or a token.
fn told(error: reqwest::Error) -> String {
    if error.is_timeout() {
        return format!("it did not answer within {} s", PATIENCE.as_secs());
    }
    let connecting = error.is_connect();
    let error = error.without_url();
    let mut cause: &dyn Error = &error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    if connecting { format!("it cannot be reached: {cause}") } else { format!("it could not be told: {cause}") }
}

/// Reads `Retry-After`: seconds, or a date.
fn retry_after(headers: &HeaderMap, now: DateTime<Utc>) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = DateTime::parse_from_rfc2822(text).ok()?;
    (date.to_utc() - now).to_std().ok()
}

#[cfg(test)]
mod tests {
    use chrono::TimeZone;

    use super::*;

    #[test]
    fn a_wait_is_seconds_or_a_date() {
        let now = Utc.with_ymd_and_hms(2026, 1, 2, 3, 4, 5).single().expect("a time");
        let read = |text: &str| {
            let headers = HeaderMap::from_iter([(RETRY_AFTER, text.parse().expect("a header"))]);
            retry_after(&headers, now)
        };
        assert_eq!(read("120"), Some(Duration::from_secs(120)));
        assert_eq!(read("Fri, 02 Jan 2026 03:05:05 GMT"), Some(Duration::from_secs(60)));
        assert_eq!(read("Fri, 02 Jan 2026 03:00:00 GMT"), None, "in the past");
        assert_eq!(read("soon"), None);
    }
}
