//! One request, explained.

use std::io::Write;
use std::process::ExitCode;

use super::args::Plan;
use super::delivery::Delivery;
use super::figures::Figures;
use super::record::record;
use crate::cli::api::Api;
use crate::probe::Observation;
use crate::serve::trace::text;
use api::TraceAnswer;
use model::ResultClass;

/// Left with where the request itself did not end well.
const INCONCLUSIVE: u8 = 3;

/// Sends one request, prints what was measured, and what the server makes of it.
pub async fn run(plan: &Plan) -> anyhow::Result<ExitCode> {
    let observation = plan.client.measure(&plan.request()).await;
    let record = record(&observation, &plan.labels, None);
    let figures = Figures::new(&observation, &record);
    if !plan.json {
        print(&figures.text())?;
    }
    let mut answer = None;
    let mut delivered = true;
    if let Some(api) = &plan.api {
        let mut delivery = Delivery::start(api, plan.retry_for)?;
        delivery.add(&record)?;
        let outcome = delivery.finish().await?;
        delivered = outcome.taken == 1;
        match outcome.reason {
            Some(reason) => eprintln!("tracejoin: the record was not delivered: {reason}"),
            None => answer = explained(plan, api, &observation).await,
        }
    }
    if plan.json {
        let mut shown = figures.json();
        shown["explained"] = serde_json::to_value(&answer)?;
        print(&format!("{shown}\n"))?;
    } else if let Some(answer) = &answer {
        print(without_id(&text(answer)))?;
    }
    Ok(match (observation.result() == ResultClass::Ok, delivered) {
        (false, _) => ExitCode::from(INCONCLUSIVE),
        (true, false) => ExitCode::FAILURE,
        (true, true) => ExitCode::SUCCESS,
    })
}

/// What the server says once the request is joined; its failure to say is told, and loses nothing.
async fn explained(plan: &Plan, api: &Api, observation: &Observation) -> Option<TraceAnswer> {
    if !plan.json {
        eprintln!("waiting for its spans (--wait {})", humantime::format_duration(plan.wait));
    }
    match api.wait_until_joined(&observation.trace_id, plan.wait).await {
        Ok(answer) => {
            let states: Vec<&str> = answer.requests().iter().map(|request| request.state.name()).collect();
            eprintln!("state {}", states.join(", "));
            Some(answer)
        }
        Err(error) => {
            eprintln!("tracejoin: the request cannot be explained: {error:#}");
            None
        }
    }
}

/// The report of one request goes on where the figures end, which have its trace id already.
fn without_id(report: &str) -> &str {
    match report.split_once('\n') {
        Some((first, rest)) if first.starts_with("trace_id=") => rest,
        _ => report,
    }
}

fn print(text: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}
