//! `tracejoin phases`.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Context, bail};
use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, Table};
use serde_json::{Map, Value};
use url::Url;

use super::api::{Api, ServerArgs};
use crate::model::{Metric, Section};

/// Shows percentiles of every phase.
#[derive(Debug, clap::Args)]
pub struct PhasesArgs {
    /// Start of the window: RFC 3339, or relative to now such as -15m
    #[arg(long, default_value = "-1h", allow_hyphen_values = true)]
    from: String,
    /// End of the window: RFC 3339, relative, or now
    #[arg(long, default_value = "now", allow_hyphen_values = true)]
    to: String,
    /// Only requests with this label, such as model=m-7b; repeat it for more labels, or for more values of one
    #[arg(long = "where", value_name = "LABEL=VALUE", value_parser = label)]
    filters: Vec<(String, String)>,
    /// Class of result: ok, error, timeout, cancelled, truncated, a list of them, or all
    #[arg(long, default_value = "ok")]
    result: String,
    /// Labels to group by, separated by commas
    #[arg(long, value_name = "LABELS")]
    group_by: Option<String>,
    /// Quantiles, separated by commas
    #[arg(long, default_value = "0.5,0.95,0.99")]
    quantiles: String,
    /// Print the server's JSON
    #[arg(long)]
    json: bool,
    /// Also show every other metric that a request tells, such as the split of the time to the first token
    #[arg(long, conflicts_with = "json")]
    all: bool,
    #[command(flatten)]
    server: ServerArgs,
}

fn label(text: &str) -> anyhow::Result<(String, String)> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => bail!("write it as LABEL=VALUE, such as model=m-7b"),
    }
}

impl PhasesArgs {
    fn url(&self, api: &Api) -> anyhow::Result<Url> {
        let mut url = api.url(&["api", "v1", "phases"])?;
        let mut query = url.query_pairs_mut();
        query.append_pair("from", &self.from).append_pair("to", &self.to).append_pair("result", &self.result);
        query.append_pair("quantiles", &self.quantiles).extend_pairs(&self.filters);
        if let Some(keys) = &self.group_by {
            query.append_pair("group_by", keys);
        }
        drop(query);
        Ok(url)
    }
}

/// Prints the percentiles.
pub async fn run(args: PhasesArgs) -> anyhow::Result<ExitCode> {
    let api = Api::new(&args.server)?;
    let answer: Value = api.get_json(args.url(&api)?).await?;
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{answer}")?;
    } else {
        write!(out, "{}", report(&answer, args.all)?)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The answer of `/api/v1/phases` for people: a table a group, then the coverage.
/// Without `all` it has the phases and what the client measured as a whole.
pub fn report(answer: &Value, all: bool) -> anyhow::Result<String> {
    let groups = answer["groups"].as_array().context("the server's answer has no groups")?;
    let mut text = String::new();
    let told = |group: &&Value| group["n"] != 0;
    for group in groups.iter().filter(told) {
        let labels = labels(&group["dimensions"]);
        let n = &group["n"];
        let heading = if labels.is_empty() { format!("n = {n}") } else { format!("{labels}: n = {n}") };
        text.push_str(&format!("{heading}\n{}\n\n", table(group, all)));
    }
    if !groups.iter().any(|group| told(&group)) {
        text.push_str("no requests of this result in this window; --result all counts failed and cut-off ones too\n\n");
    }
    text.push_str(&coverage(&answer["coverage"]));
    if let Some(unsettled @ 1..) = answer["unsettled_records"].as_u64() {
        text.push_str(&format!("{unsettled} records have come but are not joined yet: ask again in some seconds\n"));
    }
    Ok(text)
}

fn labels(dimensions: &Value) -> String {
    let pairs = dimensions.as_object().into_iter().flatten();
    let shown = pairs.map(|(name, value)| format!("{name} {}", value.as_str().unwrap_or("unknown")));
    shown.collect::<Vec<_>>().join(", ")
}

/// One row a metric, in the order of a request's way: its quantiles, each with its 95 % interval.
fn table(group: &Value, all: bool) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED);
    let mut header = vec!["ms".to_owned(), "n".to_owned()];
    let mut rows = Vec::new();
    for metric in Metric::ALL.iter().filter(|metric| metric.unit().suffix() == "_ms") {
        if !all && !is_main(*metric) {
            continue;
        }
        let Some(summary) = group[metric.section().name()][metric.key()].as_object() else { continue };
        if summary.get("n").and_then(Value::as_u64).unwrap_or(0) == 0 {
            continue;
        }
        let quantiles = quantile_keys(summary);
        if header.len() == 2 {
            header.extend(quantiles.iter().map(|key| format!("{} [95 % interval]", key.trim_end_matches("_ms"))));
            header.extend(["mean".to_owned(), "max".to_owned(), "known".to_owned()]);
        }
        rows.push(row(metric.column(), summary, &quantiles));
    }
    table.set_header(header).add_rows(rows);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// The phases, and what the client measured as a whole.
fn is_main(metric: Metric) -> bool {
    metric.section() == Section::Phases || matches!(metric, Metric::Duration | Metric::Ttft)
}

/// `p50_ms`, `p95_ms`, … in ascending order.
fn quantile_keys(summary: &Map<String, Value>) -> Vec<String> {
    let rank = |key: &str| key.strip_prefix('p')?.strip_suffix("_ms")?.replace('_', ".").parse::<f64>().ok();
    let mut keys: Vec<(f64, &String)> = summary.keys().filter_map(|key| Some((rank(key)?, key))).collect();
    keys.sort_by(|a, b| a.0.total_cmp(&b.0));
    keys.into_iter().map(|(_, key)| key.clone()).collect()
}

fn row(name: &str, summary: &Map<String, Value>, quantiles: &[String]) -> Vec<String> {
    let show = |value: Option<&Value>| value.and_then(Value::as_f64).map_or_else(|| "–".to_owned(), short);
    let mut cells = vec![name.to_owned(), summary.get("n").map_or_else(String::new, Value::to_string)];
    for key in quantiles {
        let interval = summary.get(&key.replace("_ms", "_ci_ms"));
        let end = |at: usize| show(interval.and_then(|ends| ends.get(at)));
        cells.push(format!("{} [{}, {}]", show(summary.get(key)), end(0), end(1)));
    }
    cells.push(show(summary.get("mean_ms")));
    cells.push(show(summary.get("max_ms")));
    let known = summary.get("phase_coverage").and_then(Value::as_f64);
    cells.push(known.map_or_else(|| "–".to_owned(), |share| format!("{:.1} %", 100.0 * share)));
    cells
}

/// Three significant digits and no more than three decimals: enough for a person, `--json` has the rest.
fn short(millis: f64) -> String {
    let decimals = match millis.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        _ => 3,
    };
    format!("{millis:.decimals$}")
}

/// How much of the window the percentiles speak for, and what was left out for which reason.
fn coverage(coverage: &Value) -> String {
    let count = |key: &str| coverage[key].as_u64().unwrap_or(0);
    let share = coverage["join_coverage"].as_f64();
    let share = share.map_or_else(String::new, |share| format!(" ({:.1} %)", 100.0 * share));
    let mut text = format!("joined {} of {} client records{share}", count("matched"), count("client_records"));
    for key in ["client_only", "server_only", "pending", "sampled_out", "client_from_spans"] {
        if count(key) > 0 {
            text.push_str(&format!("; {key} {}", count(key)));
        }
    }
    for (reason, n) in coverage["excluded"].as_object().into_iter().flatten() {
        text.push_str(&format!("; excluded for {reason} {n}"));
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_report_shows_intervals_coverage_and_reasons() {
        let answer = json!({
            "coverage": {"client_records": 428, "matched": 400, "client_only": 25, "pending": 0,
                         "join_coverage": 0.934_579, "excluded": {"negative_envelope": 3}},
            "groups": [{
                "dimensions": {"model": "m-7b"}, "n": 400,
                "phases": {
                    "gpu_queue": {"n": 400, "p50_ms": 200.0, "p95_ms": 380.25, "p50_ci_ms": [180.0, 220.0],
                                  "p95_ci_ms": [371.0, null], "mean_ms": 200.5, "max_ms": 400.0,
                                  "phase_coverage": 0.934_579},
                    "generation": {"n": 0},
                },
            }],
        });
        insta::assert_snapshot!(report(&answer, false).expect("a report"));
    }

    #[test]
    fn an_empty_window_says_so() {
        for groups in [json!([]), json!([{"dimensions": {}, "n": 0}])] {
            let answer = json!({"groups": groups, "coverage": {"client_records": 0}, "unsettled_records": 3});
            assert_eq!(
                report(&answer, false).expect("a report"),
                "no requests of this result in this window; --result all counts failed and cut-off ones too\n\n\
                 joined 0 of 0 client records\n\
                 3 records have come but are not joined yet: ask again in some seconds\n"
            );
        }
    }

    #[test]
    fn labels_need_a_name_and_a_value() {
        assert_eq!(label("model=a=b").expect("a label"), ("model".to_owned(), "a=b".to_owned()));
        assert!(label("model").is_err() && label("=a").is_err() && label("model=").is_err());
    }
}
