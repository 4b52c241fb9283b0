//! What the server says of the play.

use std::fmt::Write as _;
use std::io::Write as _;

use anyhow::{Context, ensure};
use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, Table};
use url::Url;

use super::gateway::{LENGTH, SLOW_MINUTE};
use super::send::Sent;
use super::{MINUTE, minute};
use crate::cli::api::Api;
use crate::cli::{phases, trace};
use crate::serve::trace::text;
use ::api::{PercentilesAnswer, RequestsAnswer, SeriesAnswer, TraceAnswer};
use model::{Metric, UnixNanos};

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
    let whole: PercentilesAnswer = api.get_json(question(api, &["phases"], run, &window)?).await?;
    writeln!(text, "{}", phases::report(&whole, false))?;

    let (from, _) = minute(start, SLOW_MINUTE);
    writeln!(text, "Minute by minute, p95 in ms. In the minute from {from} half of the GPUs were away:\n")?;
    let mut url = question(api, &["phases", "series"], run, &window)?;
    url.query_pairs_mut().append_pair("step", "1m");
    let series: SeriesAnswer = api.get_json(url).await?;
    writeln!(text, "{}\n", minutes(&series))?;

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
fn minutes(series: &SeriesAnswer) -> Table {
    let shown = [
        Metric::Duration,
        Metric::NetworkEnvelope,
        Metric::Gateway,
        Metric::GpuQueue,
        Metric::Generation,
        Metric::Provider,
    ];
    let mut table = Table::new();
    let heading = ["minute", "n"].into_iter().chain(shown.map(Metric::key));
    table.load_style(UTF8_FULL_CONDENSED).set_header(heading);
    for step in &series.steps {
        let from = step.from.get(11..16).unwrap_or(&step.from);
        let group = step.groups.first();
        let n = group.map_or(0, |group| group.n);
        let mut row = vec![from.to_owned(), n.to_string()];
        row.extend(shown.map(|metric| {
            let p95 = group.and_then(|group| group.metric(metric)).and_then(|summary| summary.quantile("p95"));
            p95.map_or_else(|| "–".to_owned(), |p95| format!("{p95:.0}"))
        }));
        table.add_row(row);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

async fn most_expensive(api: &Api, run: &str, window: &(String, String)) -> anyhow::Result<String> {
    let mut url = question(api, &["requests"], run, window)?;
    url.query_pairs_mut().append_pair("order", "-duration_ms").append_pair("limit", "1");
    let found: RequestsAnswer = api.get_json(url).await?;
    let id = &found.requests.first().context("the server lists no request")?.trace_id;
    let answer: TraceAnswer = api.get_json(api.url(&["api", "v1", "traces", id])?).await?;
    let requests = answer.requests();
    ensure!(!requests.is_empty(), "the server explains no request of trace {id}");
    let mut shown = text(&answer);
    for request in requests {
        write!(shown, "\n{}\n", trace::spans(request))?;
    }
    Ok(shown)
}
