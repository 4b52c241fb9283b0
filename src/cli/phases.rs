//! `tracejoin phases`.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Context, bail};
use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, Table};
use serde_json::{Map, Value};
use url::Url;

use super::api::{Api, ServerArgs};
use model::{Metric, Section};

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
    /// Also show every other metric that a request tells, such as what servers measured, and speeds
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
/// Without `all` it has the phases of both pairs, what the client measured as a whole, and the rhythm of streams.
pub fn report(answer: &Value, all: bool) -> anyhow::Result<String> {
    let groups = answer["groups"].as_array().context("the server's answer has no groups")?;
    let mut text = String::new();
    let told = |group: &&Value| group["n"] != 0;
    for group in groups.iter().filter(told) {
        let labels = labels(&group["dimensions"]);
        let n = &group["n"];
        let heading = if labels.is_empty() { format!("n = {n}") } else { format!("{labels}: n = {n}") };
        text.push_str(&format!("{heading}\n{}\n", table(group, "_ms", all)));
        if all {
            text.push_str(&format!("{}\n", table(group, "", all)));
        }
        text.push_str(&streams(group));
        text.push('\n');
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

/// What gaps and rates may hide, whether streamed answers were whole, and their output together; nothing where nothing
/// was streamed or counted.
fn streams(group: &Value) -> String {
    let count = |part: &str, key: &str| group[part][key].as_u64().unwrap_or(0);
    let mut text = String::new();
    let (judged, not_judged) = (count("buffering", "n"), count("buffering", "not_judged"));
    if judged + not_judged > 0 {
        let share = group["buffering"]["share"].as_f64();
        let share = share.map_or_else(String::new, |share| format!(" ({:.1} %)", 100.0 * share));
        let suspected = count("buffering", "suspected");
        text.push_str(&format!("suspected_buffering {suspected} of {judged}{share}; not judged {not_judged}\n"));
    }
    let (told, not_told) = (count("completeness", "n"), count("completeness", "not_told"));
    if told + not_told > 0 {
        let classes = ["ok", "no_end", "missing", "both"].map(|key| format!("{key} {}", count("completeness", key)));
        text.push_str(&format!("completeness of {told}: {}; not told {not_told}\n", classes.join(", ")));
    }
    if let Some(rate) = group["throughput"]["output_tokens_per_second_window"].as_f64() {
        let (n, not_counted) = (count("throughput", "n"), count("throughput", "not_counted"));
        text.push_str(&format!(
            "output_tokens_per_second_window {}: {n} requests; not counted {not_counted}\n",
            short(rate)
        ));
    }
    text
}

/// One row a metric, in the order of a request's way: its quantiles, each with its 95 % interval. `suffix` is what the
/// names of its fields end in: those in milliseconds, or speeds and shares.
fn table(group: &Value, suffix: &str, all: bool) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED);
    let unit = if suffix == "_ms" { "ms" } else { "tokens/s, share" };
    let mut header = vec![unit.to_owned(), "n".to_owned()];
    let mut rows = Vec::new();
    for metric in Metric::ALL.iter().filter(|metric| metric.unit().suffix() == suffix) {
        if !all && !is_main(*metric) {
            continue;
        }
        let Some(summary) = group[metric.section().name()][metric.key()].as_object() else { continue };
        if summary.get("n").and_then(Value::as_u64).unwrap_or(0) == 0 {
            continue;
        }
        let quantiles = quantile_keys(summary, suffix);
        if header.len() == 2 {
            header.extend(quantiles.iter().map(|key| format!("{} [95 % interval]", key.trim_end_matches(suffix))));
            header.extend(["mean".to_owned(), "max".to_owned(), "known".to_owned()]);
        }
        rows.push(row(metric.column(), summary, &quantiles, suffix));
    }
    table.set_header(header).add_rows(rows);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// The phases of both pairs, what the client measured as a whole, and the rhythm of its streams.
fn is_main(metric: Metric) -> bool {
    matches!(metric.section(), Section::Phases | Section::Ttft | Section::Stream)
        || matches!(metric, Metric::Duration | Metric::Ttft)
}

/// `p50_ms`, `p95_ms`, … in ascending order.
fn quantile_keys(summary: &Map<String, Value>, suffix: &str) -> Vec<String> {
    let rank = |key: &str| key.strip_prefix('p')?.strip_suffix(suffix)?.replace('_', ".").parse::<f64>().ok();
    let mut keys: Vec<(f64, &String)> = summary.keys().filter_map(|key| Some((rank(key)?, key))).collect();
    keys.sort_by(|a, b| a.0.total_cmp(&b.0));
    keys.into_iter().map(|(_, key)| key.clone()).collect()
}

fn row(name: &str, summary: &Map<String, Value>, quantiles: &[String], suffix: &str) -> Vec<String> {
    let show = |value: Option<&Value>| value.and_then(Value::as_f64).map_or_else(|| "–".to_owned(), short);
    let mut cells = vec![name.to_owned(), summary.get("n").map_or_else(String::new, Value::to_string)];
    for key in quantiles {
        let interval = summary.get(&format!("{}_ci{suffix}", key.trim_end_matches(suffix)));
        let end = |at: usize| show(interval.and_then(|ends| ends.get(at)));
        cells.push(format!("{} [{}, {}]", show(summary.get(key)), end(0), end(1)));
    }
    cells.push(show(summary.get(&format!("mean{suffix}"))));
    cells.push(show(summary.get(&format!("max{suffix}"))));
    let known = summary.get("phase_coverage").and_then(Value::as_f64);
    cells.push(known.map_or_else(|| "–".to_owned(), |share| format!("{:.1} %", 100.0 * share)));
    cells
}

/// Three significant digits and no more than three decimals: enough for a person, `--json` has the rest.
pub(super) fn short(millis: f64) -> String {
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
                "ttft": {"gpu_queue": {"n": 390, "p50_ms": 199.0, "p95_ms": 379.0, "p50_ci_ms": [180.0, 219.0],
                                       "p95_ci_ms": [370.0, null], "mean_ms": 199.5, "max_ms": 399.0,
                                       "phase_coverage": 0.911_215}},
                "stream": {
                    "max_gap": {"n": 395, "p50_ms": 40.0, "p95_ms": 410.5, "p50_ci_ms": [38.0, 43.0],
                                "p95_ci_ms": [400.0, 420.0], "mean_ms": 61.0, "max_ms": 2100.0,
                                "phase_coverage": 0.922_897},
                    "stall_rate": {"n": 395, "p50": 0.0, "p95": 0.0125, "p50_ci": [0.0, 0.0],
                                   "p95_ci": [0.0, 0.025], "mean": 0.0016, "max": 0.05, "phase_coverage": 0.922_897},
                },
                "buffering": {"n": 390, "suspected": 3, "share": 0.007_692_3, "not_judged": 5},
                "completeness": {"n": 398, "ok": 390, "no_end": 5, "missing": 2, "both": 1, "not_told": 2},
                "throughput": {"output_tokens_per_second_window": 41.25, "output_tokens": 148_500, "n": 397,
                               "not_counted": 6, "window_seconds": 3600.0},
            }],
        });
        insta::assert_snapshot!(report(&answer, false).expect("a report"));
        insta::assert_snapshot!("all_of_a_report", report(&answer, true).expect("a report"));
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
