//! One request, measured as a client measures it.

use std::time::Duration;

use anyhow::{Context, bail};
use chrono::SecondsFormat;
use futures::StreamExt;
use reqwest::Method;
use reqwest::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use serde_json::{Value, json};
use tokio::time::Instant;
use url::Url;

use crate::cli::api::http_client;
use crate::probe::identity;
use model::{SpanId, TraceId, UnixNanos};

/// The request to send.
#[derive(Debug, clap::Args)]
pub struct ProbeArgs {
    /// Where to send it, through your gateway
    url: Url,
    /// Its method [default: POST with a body, GET without]
    #[arg(long, short = 'X', value_name = "METHOD")]
    method: Option<Method>,
    /// A header, as NAME: VALUE; repeat it for more
    #[arg(long = "header", short = 'H', value_name = "HEADER", value_parser = header)]
    headers: Vec<(HeaderName, HeaderValue)>,
    /// Its body; @FILE reads it from a file. It is sent as JSON unless a header says otherwise
    #[arg(long, short, value_name = "BODY")]
    data: Option<String>,
    /// How long the answer may take
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = humantime::parse_duration)]
    timeout: Duration,
}

fn header(text: &str) -> anyhow::Result<(HeaderName, HeaderValue)> {
    let Some((name, value)) = text.split_once(':') else { bail!("write it as NAME: VALUE") };
    let mut value = HeaderValue::from_str(value.trim()).context("the value is not one of a header")?;
    // Often a key: it must not show in a debug print.
    value.set_sensitive(true);
    Ok((name.trim().parse().context("the name is not one of a header")?, value))
}

/// A request that was sent.
#[derive(Debug)]
pub struct Probe {
    pub trace: TraceId,
    /// The client's own span id, the parent that its traceparent names.
    pub span: SpanId,
    /// The HTTP status; 0 without an answer.
    pub status: u16,
    started: UnixNanos,
    wall: Duration,
    headers: Duration,
    streaming: bool,
    failure: Option<&'static str>,
}

/// What came of sending it.
struct Outcome {
    status: u16,
    headers: Duration,
    streaming: bool,
    failure: Option<&'static str>,
}

impl Probe {
    /// Sends it and reads the answer to its end.
    ///
    /// # Errors
    /// Where the request cannot be made; a request that fails is a probe that failed.
    pub async fn send(args: &ProbeArgs) -> anyhow::Result<Self> {
        let (trace, span) = identity();
        let body = args.data.as_deref().map(body).transpose()?;
        let method = args.method.clone().unwrap_or(if body.is_some() { Method::POST } else { Method::GET });
        let mut request = http_client()?.request(method, args.url.clone());
        if let Some(body) = body {
            request = request.header(CONTENT_TYPE, "application/json").body(body);
        }
        // These take the place of what is set already.
        request = request.headers(args.headers.iter().cloned().collect());
        request = request.header("traceparent", format!("00-{trace}-{span}-01"));
        let request = request.build().context("the request cannot be made")?;

        let (started, clock) = (UnixNanos::now(), Instant::now());
        let outcome = match tokio::time::timeout(args.timeout, exchange(request, clock)).await {
            Ok(outcome) => outcome,
            Err(_) => Outcome { status: 0, headers: clock.elapsed(), streaming: false, failure: Some("timeout") },
        };
        let Outcome { status, headers, streaming, failure } = outcome;
        Ok(Self { trace, span, status, started, wall: clock.elapsed(), headers, streaming, failure })
    }

    /// Whether it was answered as its sender wanted.
    pub fn succeeded(&self) -> bool {
        self.failure.is_none() && (200..400).contains(&self.status)
    }

    /// In one line for a person.
    pub fn summary(&self) -> String {
        let millis = self.wall.as_millis();
        match self.failure {
            Some(failure) => format!("{failure} after {millis} ms"),
            None => format!("answered with {} in {millis} ms", self.status),
        }
    }

    /// The client record. This client cannot tell connection setup apart, so it tells the time with it.
    pub fn record(&self) -> Value {
        let millis = |time: Duration| time.as_secs_f64() * 1e3;
        let mut record = json!({
            "trace_id": self.trace.to_string(),
            "span_id": self.span.to_string(),
            "started_at": self.started.to_datetime().to_rfc3339_opts(SecondsFormat::Micros, true),
            "wall_ms": millis(self.wall),
            "streaming": self.streaming,
            "status": self.status,
            "scenario": "check",
        });
        if self.status != 0 {
            record["headers_ms"] = millis(self.headers).into();
        }
        if let Some(failure) = self.failure {
            record["result"] = if failure == "timeout" { "timeout" } else { "error" }.into();
            record["error"] = failure.into();
        }
        record
    }
}

async fn exchange(request: reqwest::Request, clock: Instant) -> Outcome {
    let sent = match http_client() {
        Ok(client) => client.execute(request).await,
        Err(_) => return Outcome { status: 0, headers: clock.elapsed(), streaming: false, failure: Some("no client") },
    };
    let response = match sent {
        Ok(response) => response,
        Err(error) => {
            let failure = if error.is_connect() { "cannot connect" } else { "broken off" };
            return Outcome { status: 0, headers: clock.elapsed(), streaming: false, failure: Some(failure) };
        }
    };
    let form = response.headers().get(CONTENT_TYPE).and_then(|form| form.to_str().ok()).unwrap_or_default();
    let streaming = form.starts_with("text/event-stream");
    let (status, headers) = (response.status().as_u16(), clock.elapsed());
    let mut parts = response.bytes_stream();
    while let Some(part) = parts.next().await {
        if part.is_err() {
            return Outcome { status, headers, streaming, failure: Some("broken off") };
        }
    }
    Outcome { status, headers, streaming, failure: None }
}

fn body(text: &str) -> anyhow::Result<Vec<u8>> {
    match text.strip_prefix('@') {
        Some(file) => std::fs::read(file).with_context(|| format!("cannot read {file}")),
        None => Ok(text.as_bytes().to_vec()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probe() -> Probe {
        let (trace, span) = identity();
        let second = Duration::from_secs(1);
        let started = UnixNanos(1_767_323_045_678_000_000);
        Probe { trace, span, status: 200, started, wall: second, headers: second, streaming: false, failure: None }
    }

    #[test]
    fn its_record_is_one_that_the_server_takes() {
        for failure in [None, Some("timeout"), Some("broken off")] {
            let text = Probe { failure, ..probe() }.record().to_string();
            let raw = serde_json::value::RawValue::from_string(text).expect("JSON");
            let parsed = normalise::record(&raw).expect("a record");
            assert_eq!(parsed.ignored_fields, 0);
            assert_eq!(parsed.record.wall.map(|wall| wall.as_millis()), Some(1000.0));
        }
    }

    #[test]
    fn headers_are_a_name_and_a_value_that_is_not_shown() {
        let (name, value) = header("Authorization: Bearer abc").expect("a header");
        assert_eq!((name.as_str(), value.to_str().expect("ASCII")), ("authorization", "Bearer abc"));
        assert!(!format!("{value:?}").contains("abc"));
        assert!(header("nothing").is_err() && header("a b: c").is_err());
    }
}
