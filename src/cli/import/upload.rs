//! Sending one batch until it is taken or refused for good.

use std::time::Duration;

use anyhow::{Context, bail};
use bytes::Bytes;
use reqwest::header::{CONTENT_TYPE, RETRY_AFTER};
use reqwest::{Client, Response, StatusCode};
use tokio::time::Instant;
use url::Url;

use crate::cli::api::{http_client, refusal};

const FIRST_WAIT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// Sends batches to one endpoint.
#[derive(Debug, Clone)]
pub struct Uploader {
    http: Client,
    url: Url,
    form: &'static str,
    retry_for: Duration,
}

impl Uploader {
    /// For one endpoint, in one form. `retry_for` is how long one batch is tried while the server is busy or unavailable.
    ///
    /// # Errors
    /// Where no HTTP client can be made.
    pub fn new(url: Url, form: &'static str, retry_for: Duration) -> anyhow::Result<Self> {
        Ok(Self { http: http_client()?, url, form, retry_for })
    }

    /// Sends one batch until the answer is final. A busy server is given the time that it asks for.
    ///
    /// # Errors
    /// Where the server stayed busy or away for longer than allowed.
    pub async fn send(&self, body: Bytes) -> anyhow::Result<Response> {
        let started = Instant::now();
        let mut wait = FIRST_WAIT;
        loop {
            let sent = self.http.post(self.url.clone()).header(CONTENT_TYPE, self.form).body(body.clone()).send().await;
            let asked = match sent {
                Ok(response) if !is_busy(response.status()) => return Ok(response),
                Ok(ref response) => retry_after(response),
                Err(_) => None,
            };
            let pause = asked.unwrap_or(wait);
            if started.elapsed() + pause > self.retry_for {
                return self.give_up(sent).await;
            }
            tokio::time::sleep(pause).await;
            wait = (wait * 2).min(LONGEST_WAIT);
        }
    }

    async fn give_up(&self, sent: reqwest::Result<Response>) -> anyhow::Result<Response> {
        let response =
            sent.with_context(|| format!("cannot reach {}; is `tracejoin serve` running there?", self.url))?;
        let tried = humantime::format_duration(self.retry_for);
        bail!("{} was busy for {tried}: {}; try again with a longer --retry-for", self.url, refusal(response).await)
    }
}

/// The statuses after which OTLP lets a sender try again; the records' endpoint gives the same.
fn is_busy(status: StatusCode) -> bool {
    matches!(status.as_u16(), 429 | 502 | 503 | 504)
}

fn retry_after(response: &Response) -> Option<Duration> {
    let seconds = response.headers().get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use axum::Router;
    use axum::extract::State;
    use axum::routing::post;
    use tokio::net::TcpListener;

    use super::*;

    /// An endpoint that is busy twice, then takes the batch.
    async fn busy_twice(State(calls): State<Arc<AtomicUsize>>) -> (StatusCode, [(&'static str, &'static str); 1]) {
        match calls.fetch_add(1, Ordering::SeqCst) {
            0 | 1 => (StatusCode::SERVICE_UNAVAILABLE, [("retry-after", "0")]),
            _ => (StatusCode::OK, [("retry-after", "0")]),
        }
    }

    async fn endpoint(calls: Arc<AtomicUsize>) -> Url {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let router = Router::new().route("/", post(busy_twice)).with_state(calls);
        tokio::spawn(async move { axum::serve(listener, router).await });
        format!("http://{address}/").parse().expect("a URL")
    }

    #[tokio::test]
    async fn a_busy_server_is_asked_again() {
        let calls = Arc::new(AtomicUsize::new(0));
        let uploader = Uploader::new(endpoint(calls.clone()).await, "text/plain", Duration::from_secs(60));
        let response = uploader.expect("a client").send(Bytes::from_static(b"x")).await.expect("taken");
        assert_eq!((response.status(), calls.load(Ordering::SeqCst)), (StatusCode::OK, 3));
    }

    #[tokio::test]
    async fn a_server_that_stays_away_is_an_error_that_names_it() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url: Url = format!("http://{}/", listener.local_addr().expect("bound")).parse().expect("a URL");
        drop(listener);
        let uploader = Uploader::new(url.clone(), "text/plain", Duration::ZERO).expect("a client");
        let error = uploader.send(Bytes::new()).await.expect_err("nobody is there");
        assert!(error.to_string().contains(url.as_str()), "{error:#}");
    }
}
