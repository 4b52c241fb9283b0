//! `tracejoin slo status`.

use std::collections::BTreeSet;
use std::io::Write;
use std::process::ExitCode;

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, Table};
use serde::{Deserialize, Serialize};

use crate::cli::api::{Api, ServerArgs};
use crate::cli::gate::table::{COLUMNS, row};
use crate::cli::phases::short;
use crate::serve::slos::{BurnAnswer, SlosAnswer, StatusAnswer};

const UNKNOWN: &str = "–";

/// Which objectives.
#[derive(Debug, clap::Args)]
pub struct StatusArgs {
    /// One objective, with how its budget burns; without it all
    id: Option<String>,
    /// Print the server's JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: ServerArgs,
}

/// How all objectives stand.
#[derive(Debug, Serialize, Deserialize)]
struct Statuses {
    slos: Vec<StatusAnswer>,
}

/// Shows whether objectives hold.
pub async fn run(args: StatusArgs) -> anyhow::Result<ExitCode> {
    let api = Api::new(&args.server)?;
    let mut out = std::io::stdout().lock();
    if let Some(id) = &args.id {
        let status = ask(&api, id).await?;
        if args.json {
            writeln!(out, "{}", serde_json::to_string(&status)?)?;
        } else {
            write!(out, "{}{}", report(std::slice::from_ref(&status)), burn(&status))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let known: SlosAnswer = api.get_json(api.url(&["api", "v1", "slos"])?).await?;
    let mut all = Statuses { slos: Vec::new() };
    for slo in known.slos {
        all.slos.push(ask(&api, &slo.id).await?);
    }
    if args.json {
        writeln!(out, "{}", serde_json::to_string(&all)?)?;
    } else {
        write!(out, "{}", report(&all.slos))?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn ask(api: &Api, id: &str) -> anyhow::Result<StatusAnswer> {
    api.get_known(api.url(&["api", "v1", "slos", id, "status"])?).await
}

/// A row for each objective, and below it why some have no verdict.
fn report(statuses: &[StatusAnswer]) -> String {
    if statuses.is_empty() {
        return "no objectives; write one and run `tracejoin slo apply FILE`\n".to_owned();
    }
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED);
    table.set_header(COLUMNS.into_iter().chain(["budget left", "alerts"]));
    for status in statuses {
        let left = status.error_budget.as_ref().and_then(|budget| budget.left);
        let left = left.map_or_else(|| UNKNOWN.to_owned(), |left| format!("{:.1} %", 100.0 * left));
        table.add_row(row(&status.verdict).into_iter().chain([left, alerts(status)]));
    }
    let mut text = format!("{table}\n");
    for status in statuses {
        for reason in &status.verdict.reasons {
            text.push_str(&format!("{}: {}: {}\n", status.id, reason.reason, reason.detail));
        }
    }
    text
}

/// The names of the alerts that fire, each once.
fn alerts(status: &StatusAnswer) -> String {
    let names: BTreeSet<&str> =
        status.alerts.iter().filter_map(|alert| alert.labels.get("alertname")).map(String::as_str).collect();
    names.into_iter().collect::<Vec<_>>().join("\n")
}

/// How the budget of one objective burns.
fn burn(status: &StatusAnswer) -> String {
    if let Some(reason) = &status.no_budget {
        return format!("no budget: {reason}\n");
    }
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED);
    table.set_header(["windows", "fires at", "long", "short", "n", "bad", ""]);
    for pair in &status.burn {
        table.add_row(burn_row(pair));
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    format!("{table}\n")
}

fn burn_row(pair: &BurnAnswer) -> [String; 7] {
    let rate = |rate: Option<f64>, filled: f64| match rate {
        None => UNKNOWN.to_owned(),
        Some(rate) if filled < 1.0 => format!("{} ({:.0} % there)", short(rate), 100.0 * filled),
        Some(rate) => short(rate),
    };
    [
        format!("{} / {}", pair.long, pair.short),
        pair.factor.to_string(),
        rate(pair.long_rate, pair.filled_long),
        rate(pair.short_rate, pair.filled_short),
        pair.n.to_string(),
        pair.bad.to_string(),
        if pair.fires { "fires".to_owned() } else { String::new() },
    ]
}
