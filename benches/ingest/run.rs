//! One run: a new database, a new server, some seconds of load, then counting what is there.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

use super::bare_copy;
use super::cpu::{self, Used};
use super::database::{Postgres, Stored};
use super::sender::{self, Plan, Sent};
use super::server::{Addresses, Server};

/// Quiet time before a trace is joined: as short as tests have it, since it adds to every run.
pub const SETTLE: Duration = Duration::from_secs(1);

/// Requests that are asked for by their id.
const LOOKUPS: usize = 200;

/// What a run has shown.
pub struct Measured {
    pub plan: Plan,
    pub sent: Sent,
    pub stored: Stored,
    /// Until the last acknowledgement.
    pub acknowledging: Duration,
    /// Until the last trace was joined, without the time that a trace has to settle.
    pub joining: Duration,
    pub used: Used,
    pub load_average: f64,
    pub bare: Bare,
    /// Times of requests asked for by id over HTTP.
    pub lookups: Vec<Duration>,
}

/// What COPY alone takes for the rows of one request.
pub struct Bare {
    pub arrivals: Duration,
    pub requests: Duration,
}

/// Runs a plan. Fails where a request that was acknowledged is not found joined, or is there twice.
pub async fn run(postgres: &Postgres, plan: Plan, name: &str) -> anyhow::Result<Measured> {
    let load_average = cpu::load_average()?;
    let mut database = postgres.database(name).await?;
    let server = Server::start(&database.url, SETTLE)?;
    let postmaster = database.postmaster().await?;

    let before = Used::now(server.pid(), postmaster)?;
    let (sent, begun) = sender::send(&server.addresses, plan).await?;
    let acknowledging = begun.elapsed();
    let joined = database.joined(SETTLE).await?;
    let used = Used::now(server.pid(), postmaster)?.since(before);

    let stored = database.stored().await?;
    check(&sent, &stored)?;
    let lookups = look_up(&server.addresses, &sent.samples).await?;
    server.stop()?;
    let bare = Bare {
        arrivals: bare_copy::time_per_row(&mut database, "arrival")
            .await?
            .mul_f64(stored.arrivals as f64 / stored.rows as f64),
        requests: bare_copy::time_per_row(&mut database, "request").await?,
    };
    database.drop().await?;
    let joining = (joined - begun).saturating_sub(SETTLE);
    Ok(Measured { plan, sent, stored, acknowledging, joining, used, load_average, bare, lookups })
}

/// Every acknowledged request is there, once, with both sides.
fn check(sent: &Sent, stored: &Stored) -> anyhow::Result<()> {
    let expected = Stored { rows: sent.requests, traces: sent.requests, matched: sent.requests, ..*stored };
    ensure!(*stored == expected, "{} requests were acknowledged, but the database holds {stored:?}", sent.requests);
    Ok(())
}

async fn look_up(addresses: &Addresses, samples: &[String]) -> anyhow::Result<Vec<Duration>> {
    let client = reqwest::Client::new();
    let mut times = Vec::new();
    for trace_id in samples.iter().cycle().take(LOOKUPS) {
        let begun = Instant::now();
        let answer = client.get(format!("http://{}/api/v1/traces/{trace_id}", addresses.http)).send().await?;
        let request: serde_json::Value = answer.error_for_status()?.json().await?;
        times.push(begun.elapsed());
        let spans = request["spans"].as_array().context("an answer with spans")?;
        let whole = request["state"] == "matched" && spans.len() == super::load::SPANS_PER_TRACE;
        ensure!(whole, "trace {trace_id} is not what was sent: {request}");
    }
    Ok(times)
}
