//! `tracejoin check URL`: one request through the user's gateway, before a load test sends thousands.

mod finding;
mod probe;

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, ensure};
use bytes::Bytes;
use serde_json::Value;

use self::finding::{Finding, findings};
use self::probe::Probe;
use super::api::{Api, ServerArgs};
use super::import::upload::Uploader;
use api::RequestAnswer;

const RETRY_FOR: Duration = Duration::from_secs(30);
/// Left with where the request itself failed, so that nothing can be said of the traces.
const INCONCLUSIVE: u8 = 3;

/// Sends one request with a traceparent and says which parts of its trace arrive.
#[derive(Debug, clap::Args)]
pub struct CheckArgs {
    #[command(flatten)]
    probe: probe::ProbeArgs,
    /// How long the spans may take to arrive and be joined
    #[arg(long, value_name = "DURATION", default_value = "90s", value_parser = humantime::parse_duration)]
    wait: Duration,
    /// Print the findings as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: ServerArgs,
}

/// Checks, and leaves with 0 where everything arrived, 1 where something did not, 3 where the request failed.
pub async fn run(args: CheckArgs) -> anyhow::Result<ExitCode> {
    let api = Api::new(&args.server)?;
    let probe = Probe::send(&args.probe).await?;
    upload(&api, &probe).await?;
    if !args.json {
        eprintln!("{}; waiting for its spans (--wait {})", probe.summary(), humantime::format_duration(args.wait));
    }
    let answer = api.wait_until_joined(&probe.trace, args.wait).await?;
    let request = answer.requests().first().context("the server explains no request of this trace")?.clone();
    let findings = findings(&request, &probe.span.to_string());
    print(&probe, &request, &findings, args.json)?;
    let code = match (probe.succeeded(), findings.iter().all(|finding| finding.ok)) {
        (false, _) => INCONCLUSIVE,
        (true, false) => 1,
        (true, true) => 0,
    };
    Ok(ExitCode::from(code))
}

async fn upload(api: &Api, probe: &Probe) -> anyhow::Result<()> {
    let uploader = Uploader::new(api.url(&["api", "v1", "records"])?, "application/json", RETRY_FOR)?;
    let response = uploader.send(Bytes::from(probe.record().to_string())).await?;
    let answer: Value = response.json().await.context("the server did not answer as expected")?;
    ensure!(answer["accepted"] == 1, "the server did not take the client record: {answer}");
    Ok(())
}

fn print(probe: &Probe, request: &RequestAnswer, findings: &[Finding], json: bool) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    if json {
        let answer = serde_json::json!({
            "trace_id": probe.trace.to_string(), "status": probe.status, "state": request.state,
            "flags": request.flags, "findings": findings,
        });
        writeln!(out, "{answer}")?;
        return Ok(());
    }
    writeln!(out, "trace {}: {}", probe.trace, request.state.name())?;
    for finding in findings {
        let mark = if finding.ok { "ok     " } else { "missing" };
        writeln!(out, "{mark} {}: {}", finding.part, finding.detail)?;
    }
    if !probe.succeeded() {
        writeln!(out, "the request itself failed ({}): correct that first", probe.summary())?;
    }
    Ok(())
}
