//! `tracejoin trace ID`.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Context;
use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};

use super::api::{Api, ServerArgs};
use crate::serve::trace::text;
use api::{RequestAnswer, TraceAnswer};
use model::TraceId;

/// Explains one request.
#[derive(Debug, clap::Args)]
pub struct TraceArgs {
    /// The trace id: 32 hexadecimal digits
    id: TraceId,
    /// Print the server's JSON
    #[arg(long)]
    json: bool,
    /// Also list the spans, each with its phase and the rule that decided
    #[arg(long, conflicts_with = "json")]
    spans: bool,
    #[command(flatten)]
    server: ServerArgs,
}

/// Prints the report of a trace.
pub async fn run(args: TraceArgs) -> anyhow::Result<ExitCode> {
    let api = Api::new(&args.server)?;
    let url = api.url(&["api", "v1", "traces", &args.id.to_string()])?;
    let Some(response) = api.get(url, "application/json").await? else {
        eprintln!("tracejoin: nothing is stored of trace {}; check the id, or wait for the exporter", args.id);
        return Ok(ExitCode::FAILURE);
    };
    let body = response.text().await.context("the server broke off its answer")?;
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{body}")?;
        return Ok(ExitCode::SUCCESS);
    }
    let answer: TraceAnswer = serde_json::from_str(&body).context("the server did not answer as expected")?;
    write!(out, "{}", text(&answer))?;
    if args.spans {
        for request in answer.requests() {
            writeln!(out, "\n{}", spans(request))?;
        }
    }
    for request in answer.requests() {
        if !request.flags.is_empty() {
            eprintln!("state {}, flags {}", request.state.name(), request.flags.join(", "));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The spans of a request as a table, in milliseconds.
pub fn spans(request: &RequestAnswer) -> Table {
    let mut table = Table::new();
    table.load_style(NOTHING).set_header(["start", "length", "phase", "span", "service", "rule"]);
    for span in &request.spans {
        let length = span.duration_ms.map_or_else(|| "invalid".to_owned(), |length| format!("{length:.3}"));
        let phase = span.phase.map_or("", |phase| phase.name());
        let start = span.start_offset_ms.map_or_else(|| "detached".to_owned(), |start| format!("{start:.3}"));
        table.add_row([&start, &length, phase, &span.name, &span.service, &span.rule]);
    }
    for at in [0, 1] {
        if let Some(column) = table.column_mut(at) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}
