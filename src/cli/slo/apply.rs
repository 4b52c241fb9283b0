//! `tracejoin slo apply PATH…`.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use comfy_table::Table;
use comfy_table::presets::UTF8_FULL_CONDENSED;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::files;
use crate::cli::api::{Api, ServerArgs};
use crate::serve::slos::{ChangeAnswer, ChangedAnswer, FieldChangeAnswer, SlosAnswer};
use slo::{Objective, ObjectiveId, document};

/// Files with objectives, for a server.
#[derive(Debug, clap::Args)]
pub struct ApplyArgs {
    /// Files, or folders whose .yaml, .yml and .json files are read
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Also delete the objectives of the server that no file tells
    #[arg(long)]
    prune: bool,
    /// Print what became of each as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: ServerArgs,
}

/// What became of all.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Applied {
    slos: Vec<ChangedAnswer>,
}

/// Checks all files, and then puts every objective. Nothing is sent where anything is wrong with a file.
pub async fn run(args: ApplyArgs) -> anyhow::Result<ExitCode> {
    let sets = match files::read(&args.paths) {
        Ok(objectives) => sets(objectives),
        Err(error) => {
            eprintln!("{error}");
            return Ok(ExitCode::from(2));
        }
    };
    let api = Api::new(&args.server)?;
    let mut applied = Applied::default();
    let mut outcome = Ok(());
    for (id, set) in &sets {
        let url = api.url(&["api", "v1", "slos", id.as_str()])?;
        match api.put_document(url, written(set)).await.with_context(|| format!("`{id}` was not applied")) {
            Ok(changed) => applied.slos.push(changed),
            Err(error) => {
                outcome = Err(error);
                break;
            }
        }
    }
    if args.prune && outcome.is_ok() {
        let kept = |id: &str| sets.keys().any(|known| known.as_str() == id);
        outcome = prune(&api, kept, &mut applied).await;
    }
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{}", serde_json::to_string(&applied)?)?;
    } else {
        write!(out, "{}", report(&applied.slos))?;
    }
    outcome.map(|()| ExitCode::SUCCESS)
}

/// Objectives by what is put at once: each that stands alone, and each budget's whole with its parts.
fn sets(objectives: Vec<Objective>) -> BTreeMap<ObjectiveId, Vec<Objective>> {
    let mut sets: BTreeMap<ObjectiveId, Vec<Objective>> = BTreeMap::new();
    for objective in objectives {
        let whole = objective.budget.clone().unwrap_or_else(|| objective.id.clone());
        sets.entry(whole).or_default().push(objective);
    }
    sets
}

/// Deletes what is on the server and not kept. Parts go with their wholes.
async fn prune(api: &Api, kept: impl Fn(&str) -> bool, applied: &mut Applied) -> anyhow::Result<()> {
    let known: SlosAnswer = api.get_json(api.url(&["api", "v1", "slos"])?).await?;
    for slo in known.slos {
        let is_part = slo.budget.as_ref().is_some_and(|budget| *budget != slo.id);
        if is_part || kept(&slo.id) {
            continue;
        }
        let url = api.url(&["api", "v1", "slos", &slo.id])?;
        applied.slos.push(api.delete(url).await.with_context(|| format!("`{}` was not deleted", slo.id))?);
    }
    Ok(())
}

/// A set as one body: a document for each objective, all defaults written out, so that the server takes what was checked.
fn written(set: &[Objective]) -> String {
    set.iter().map(|objective| format!("---\n{}\n", document::to_json(objective))).collect()
}

/// What became of objectives, a row for each, and then what their authors should know.
pub fn report(changes: &[ChangedAnswer]) -> String {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED);
    table.set_header(["objective", "", "version", "what differs"]);
    for change in changes.iter().flat_map(|changed| [&changed.whole].into_iter().chain(&changed.parts)) {
        table.add_row([change.id.clone(), change.action.clone(), change.version.to_string(), differences(change)]);
    }
    let mut text = format!("{table}\n");
    for note in changes.iter().flat_map(|changed| &changed.notes) {
        text.push_str(&format!("note: {note}\n"));
    }
    text
}

fn differences(change: &ChangeAnswer) -> String {
    let line =
        |field: &FieldChangeAnswer| format!("{}: {} → {}", field.field, shown(&field.before), shown(&field.after));
    change.changed.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn shown(value: &Value) -> String {
    if value.is_null() { "–".to_owned() } else { value.to_string() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_report_shows_what_differs_and_what_to_know() {
        let change = |id: &str, action: &str, version, changed| ChangeAnswer {
            id: id.to_owned(),
            action: action.to_owned(),
            version,
            since: "2026-01-02T03:04:05Z".to_owned(),
            changed_by: "local".to_owned(),
            changed,
        };
        let field = |field: &str, before, after| FieldChangeAnswer { field: field.to_owned(), before, after };
        let fields = vec![
            field("spec.threshold_ms", json!(250.0), json!(300.0)),
            field("spec.where.pool", Value::Null, json!(["a100"])),
        ];
        let changes = [
            ChangedAnswer {
                whole: change("queue-p95", "changed", 2, fields),
                parts: Vec::new(),
                notes: vec!["the fastest burn window is left out".to_owned()],
            },
            ChangedAnswer {
                whole: change("user-ttft", "created", 1, Vec::new()),
                parts: vec![change("user-ttft.ttft_gateway", "created", 1, Vec::new())],
                notes: Vec::new(),
            },
        ];
        insta::assert_snapshot!(report(&changes));
    }
}
