//! What the server says of the play.

use std::fmt::Write as _;
use std::io::Write as _;

use anyhow::{Context, ensure};
use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, Table};
use serde_json::Value;
use url::Url;

use super::gateway::{LENGTH, SLOW_MINUTE};
use super::send::Sent;
use super::{MINUTE, minute};
use crate::cli::api::Api;
use crate::cli::{phases, trace};
use crate::serve::trace::text;
use api::TraceAnswer;
use model::UnixNanos;

/// Prints the whole, the minutes, and the most expensive request.
pub async fn print(api: &Api, run: &str, start: UnixNanos, sent: &Sent) -> anyhow::Result<()> {
    let text = compose(api, run, start, sent).await?;
    std::io::stdout().lock().write_all(text.as_bytes())?;
    Ok(())
}

async fn compose(api: &Api, run: &str, start: UnixNanos, sent: &Sent) -> anyhow::Result<String> {
    let last = LENGTH.0 / MINUTE - 1;
    let window = (minute(start, 0).0, minute(start, last).1);
    let mut text = String::new();
    let (spans, records, seconds) = (sent.spans, sent.records, sent.took.as_secs_f64());
    writeln!(
        text,
        "{spans} spans and {records} client records were committed in {seconds:.1} s. All whole answers:\n"
    )?;
    let whole: Value = api.get_json(question(api, &["phases"], run, &window)?).await?;
    writeln!(text, "{}", phases::report(&whole, false)?)?;

    let (from, _) = minute(start, SLOW_MINUTE);
    writeln!(text, "Minute by minute, p95 in ms. In the minute from {from} half of the GPUs were away:\n")?;
    let mut url = question(api, &["phases", "series"], run, &window)?;
    url.query_pairs_mut().append_pair("step", "1m");
    let series: Value = api.get_json(url).await?;
    writeln!(text, "{}\n", minutes(&series)?)?;

    writeln!(text, "The most expensive request:\n")?;
    text.push_str(&most_expensive(api, run, &window).await?);
    Ok(text)
}

fn question(api: &Api, resource: &[&str], run: &str, window: &(String, String)) -> anyhow::Result<Url> {
    let mut url = api.url(&[&["api", "v1"], resource].concat())?;
    url.query_pairs_mut().append_pair("from", &window.0).append_pair("to", &window.1).append_pair("run", run);
    Ok(url)
}

/// One row a minute.
fn minutes(series: &Value) -> anyhow::Result<Table> {
    let shown = [
        ("duration", "client", "duration"),
        ("network_envelope", "phases", "network_envelope"),
        ("gateway", "phases", "gateway"),
        ("gpu_queue", "phases", "gpu_queue"),
        ("generation", "phases", "generation"),
        ("provider", "phases", "provider"),
    ];
    let mut table = Table::new();
    let heading = ["minute", "n"].into_iter().chain(shown.map(|(name, ..)| name));
    table.load_style(UTF8_FULL_CONDENSED).set_header(heading);
    for step in series["steps"].as_array().context("the server's answer has no steps")? {
        let from = step["from"].as_str().and_then(|from| from.get(11..16)).unwrap_or("?");
        let group = &step["groups"][0];
        let mut row = vec![from.to_owned(), group["n"].as_u64().unwrap_or(0).to_string()];
        row.extend(shown.map(|(_, section, key)| match group[section][key]["p95_ms"].as_f64() {
            Some(p95) => format!("{p95:.0}"),
            None => "–".to_owned(),
        }));
        table.add_row(row);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    Ok(table)
}

async fn most_expensive(api: &Api, run: &str, window: &(String, String)) -> anyhow::Result<String> {
    let mut url = question(api, &["requests"], run, window)?;
    url.query_pairs_mut().append_pair("order", "-duration_ms").append_pair("limit", "1");
    let found: Value = api.get_json(url).await?;
    let id = found["requests"][0]["trace_id"].as_str().context("the server lists no request")?;
    let answer: TraceAnswer = api.get_json(api.url(&["api", "v1", "traces", id])?).await?;
    let requests = answer.requests();
    ensure!(!requests.is_empty(), "the server explains no request of trace {id}");
    let mut shown = text(&answer);
    for request in requests {
        write!(shown, "\n{}\n", trace::spans(request))?;
    }
    Ok(shown)
}
