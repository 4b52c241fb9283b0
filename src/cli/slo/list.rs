//! `tracejoin slo list`.

use std::collections::BTreeSet;
use std::io::Write;
use std::process::ExitCode;

use anyhow::Context;
use comfy_table::Table;
use comfy_table::presets::UTF8_FULL_CONDENSED;

use crate::cli::api::{Api, ServerArgs};
use crate::serve::slos::{ObjectiveAnswer, SlosAnswer};
use model::Unit;
use slo::objective::Goal;
use slo::{Objective, document};

/// Which server's objectives.
#[derive(Debug, clap::Args)]
pub struct ListArgs {
    /// Print the server's JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: ServerArgs,
}

/// Lists every objective.
pub async fn run(args: ListArgs) -> anyhow::Result<ExitCode> {
    let api = Api::new(&args.server)?;
    let known: SlosAnswer = api.get_json(api.url(&["api", "v1", "slos"])?).await?;
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{}", serde_json::to_string(&known)?)?;
    } else {
        write!(out, "{}", report(&known.slos)?)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A row for each objective.
fn report(slos: &[ObjectiveAnswer]) -> anyhow::Result<String> {
    if slos.is_empty() {
        return Ok("no objectives; write one and run `tracejoin slo apply FILE`\n".to_owned());
    }
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED);
    table.set_header(["objective", "goal", "where", "window", "version", "since", "by"]);
    for slo in slos {
        let objective = read(slo)?;
        table.add_row([
            slo.id.clone(),
            goal(&objective),
            conditions(&objective),
            slo.document["spec"]["window"].as_str().unwrap_or_default().to_owned(),
            slo.version.to_string(),
            slo.since.clone(),
            slo.changed_by.clone(),
        ]);
    }
    Ok(format!("{table}\n"))
}

fn read(slo: &ObjectiveAnswer) -> anyhow::Result<Objective> {
    let read = document::read(&slo.document.to_string()).ok();
    read.and_then(|mut set| set.pop())
        .with_context(|| format!("cannot read the objective `{}`; is the server of the same version?", slo.id))
}

/// What an objective limits, in a line: `p95 of gpu_queue ≤ 250 ms`.
fn goal(objective: &Objective) -> String {
    let indicator = objective.indicator;
    let sign = indicator.direction().sign();
    let shown = indicator.unit().shown(objective.threshold);
    let threshold = match indicator.unit() {
        Unit::Nanos | Unit::Millis => format!("{shown} ms"),
        Unit::TokensPerSecond => format!("{shown} tokens/s"),
        Unit::Share => shown.to_string(),
    };
    match objective.goal {
        Goal::Quantile { target } => {
            format!("{} of {indicator} {sign} {threshold}", target.field().replace('_', "."))
        }
        Goal::Ratio { target } => format!("{target} of requests: {indicator} {sign} {threshold}"),
        Goal::Share { .. } | Goal::Pooled => format!("{indicator} {sign} {threshold}"),
    }
}

fn conditions(objective: &Objective) -> String {
    let shown = |values: &BTreeSet<String>| values.iter().map(String::as_str).collect::<Vec<_>>().join(" or ");
    let labels = objective.conditions.labels.iter();
    labels.map(|(label, values)| format!("{} {}", label.name(), shown(values))).collect::<Vec<_>>().join(", ")
}
