//! `tracejoin phases`.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Context, bail};
use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, Table};
use serde_json::value::RawValue;
use url::Url;

use super::api::{Api, ServerArgs};
use ::api::{CoverageAnswer, GroupAnswer, MetricAnswer, PercentilesAnswer};
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
    let body: Box<RawValue> = api.get_json(args.url(&api)?).await?;
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{body}")?;
    } else {
        let answer: PercentilesAnswer = serde_json::from_str(body.get()).context("read the server's answer")?;
        write!(out, "{}", report(&answer, args.all))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The answer of `/api/v1/phases` for people: a table a group, then the coverage.
/// Without `all` it has the phases of both pairs, what the client measured as a whole, and the rhythm of streams.
pub fn report(answer: &PercentilesAnswer, all: bool) -> String {
    let mut text = String::new();
    let counted: Vec<&GroupAnswer> = answer.groups.iter().filter(|group| group.n > 0).collect();
    for group in &counted {
        let labels = labels(group);
        let n = group.n;
        let heading = if labels.is_empty() { format!("n = {n}") } else { format!("{labels}: n = {n}") };
        text.push_str(&format!("{heading}\n{}\n", table(group, "_ms", all)));
        if all {
            text.push_str(&format!("{}\n", table(group, "", all)));
        }
        text.push_str(&streams(group));
        text.push('\n');
    }
    if counted.is_empty() {
        text.push_str("no requests of this result in this window; --result all counts failed and cut-off ones too\n\n");
    }
    text.push_str(&coverage(&answer.coverage));
    if let unsettled @ 1.. = answer.unsettled_records {
        text.push_str(&format!("{unsettled} records have come but are not joined yet: ask again in some seconds\n"));
    }
    text
}

fn labels(group: &GroupAnswer) -> String {
    let pairs = group.dimensions.iter();
    let shown = pairs.map(|(name, value)| format!("{name} {}", value.as_deref().unwrap_or("unknown")));
    shown.collect::<Vec<_>>().join(", ")
}

/// What gaps and rates may hide, whether streamed answers were whole, and their output together; nothing where nothing
/// was streamed or counted.
fn streams(group: &GroupAnswer) -> String {
    let GroupAnswer { buffering, completeness, throughput, .. } = group;
    let mut text = String::new();
    if buffering.n + buffering.not_judged > 0 {
        let share = percent_in_brackets(buffering.share);
        text.push_str(&format!(
            "suspected_buffering {} of {}{share}; not judged {}\n",
            buffering.suspected, buffering.n, buffering.not_judged
        ));
    }
    if completeness.n + completeness.not_told > 0 {
        text.push_str(&format!(
            "completeness of {}: ok {}, no_end {}, missing {}, both {}; not told {}\n",
            completeness.n,
            completeness.ok,
            completeness.no_end,
            completeness.missing,
            completeness.both,
            completeness.not_told
        ));
    }
    if let Some(rate) = throughput.output_tokens_per_second_window {
        text.push_str(&format!(
            "output_tokens_per_second_window {}: {} requests; not counted {}\n",
            short(rate),
            throughput.n,
            throughput.not_counted
        ));
    }
    text
}

fn percent_in_brackets(share: Option<f64>) -> String {
    share.map_or_else(String::new, |share| format!(" ({:.1} %)", 100.0 * share))
}

/// One row a metric, in the order of a request's way: its quantiles, each with its 95 % interval. `suffix` is what the
/// names of its fields end in: those in milliseconds, or speeds and shares.
fn table(group: &GroupAnswer, suffix: &str, all: bool) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED);
    let unit = if suffix == "_ms" { "ms" } else { "tokens/s, share" };
    let mut header = vec![unit.to_owned(), "n".to_owned()];
    let mut rows = Vec::new();
    for metric in Metric::ALL.iter().filter(|metric| metric.unit().suffix() == suffix) {
        if !all && !is_main(*metric) {
            continue;
        }
        let Some(summary) = group.metric(*metric).filter(|summary| summary.n > 0) else { continue };
        if header.len() == 2 {
            header.extend(summary.quantiles.iter().map(|quantile| format!("{} [95 % interval]", quantile.name)));
            header.extend(["mean".to_owned(), "max".to_owned(), "known".to_owned()]);
        }
        rows.push(row(metric.column(), summary));
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

fn row(name: &str, summary: &MetricAnswer) -> Vec<String> {
    let show = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), short);
    let mut cells = vec![name.to_owned(), summary.n.to_string()];
    for quantile in &summary.quantiles {
        let [lower, upper] = quantile.interval.ends.map(show);
        cells.push(format!("{} [{lower}, {upper}]", show(quantile.value)));
    }
    cells.push(show(summary.mean));
    cells.push(show(summary.max));
    cells.push(summary.phase_coverage.map_or_else(|| "–".to_owned(), |share| format!("{:.1} %", 100.0 * share)));
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
fn coverage(coverage: &CoverageAnswer) -> String {
    let share = percent_in_brackets(coverage.join_coverage);
    let mut text = format!("joined {} of {} client records{share}", coverage.matched, coverage.client_records);
    let others = [
        ("client_only", coverage.client_only),
        ("server_only", coverage.server_only),
        ("pending", coverage.pending),
        ("sampled_out", coverage.sampled_out),
        ("client_from_spans", coverage.client_from_spans),
    ];
    for (name, n) in others.into_iter().filter(|(_, n)| *n > 0) {
        text.push_str(&format!("; {name} {n}"));
    }
    for (reason, n) in &coverage.excluded {
        text.push_str(&format!("; excluded for {reason} {n}"));
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// An answer with the fields that `shown` names, and in all others what a server sends of an empty window.
    fn answer(shown: Value) -> PercentilesAnswer {
        let durations = json!({"n": 0, "p50_ms": null, "p50_ci_ms": [null, null]});
        let coverage = json!({
            "client_records": 0, "server_requests": 0, "matched": 0, "client_only": 0, "server_only": 0, "excluded": {},
            "pending": 0, "sampled_out": 0, "client_from_spans": 0, "join_coverage": null,
            "join_coverage_sampled": null, "coverage_scope": "filtered", "not_filtered_by": [],
            "bias": {"suspected": null, "evidence": "", "matched": durations, "unmatched": durations},
        });
        let group = json!({
            "dimensions": {}, "n": 0, "coverage": coverage, "phases": {}, "client": {}, "server": {}, "ttft": {},
            "stream": {}, "rates": {}, "buffering": {"n": 0, "suspected": 0, "share": null, "not_judged": 0},
            "completeness": {"n": 0, "ok": 0, "no_end": 0, "missing": 0, "both": 0, "not_told": 0},
            "throughput": {"output_tokens_per_second_window": null, "output_tokens": 0, "n": 0, "not_counted": 0,
                           "window_seconds": 3600.0},
        });
        let mut whole = json!({
            "from": "2026-01-02T03:00:00Z", "to": "2026-01-02T04:00:00Z", "assumption": "", "unsettled_records": 0,
            "coverage": coverage, "groups": [],
        });
        overlay(&mut whole, shown);
        for shown in whole["groups"].as_array_mut().expect("groups") {
            let given = std::mem::replace(shown, group.clone());
            overlay(shown, given);
            for section in ["phases", "ttft", "stream"] {
                for (name, metric) in shown[section].as_object_mut().expect("a section") {
                    let suffix = if name == "stall_rate" { "" } else { "_ms" };
                    let given = std::mem::take(metric);
                    *metric = json!({"phase_coverage": null, "method": "exact"});
                    for name in ["mean", "max", "sum"] {
                        metric[format!("{name}{suffix}")] = Value::Null;
                    }
                    for quantile in ["p50", "p95"].iter().filter(|_| given["n"] != 0) {
                        metric[format!("{quantile}_bounds{suffix}")] = json!([null, null]);
                    }
                    overlay(metric, given);
                }
            }
        }
        serde_json::from_value(whole).expect("an answer of a server")
    }

    fn overlay(whole: &mut Value, shown: Value) {
        match (whole, shown) {
            (Value::Object(whole), Value::Object(shown)) => {
                for (name, value) in shown {
                    overlay(whole.entry(name).or_insert(Value::Null), value);
                }
            }
            (whole, shown) => *whole = shown,
        }
    }

    #[test]
    fn a_renamed_field_is_an_error_that_names_it() {
        let mut renamed = serde_json::to_value(answer(json!({"groups": [{"n": 1}]}))).expect("JSON");
        let coverage = renamed["coverage"].as_object_mut().expect("coverage");
        let matched = coverage.remove("matched").expect("a count");
        coverage.insert("joined".to_owned(), matched);
        let error = serde_json::from_value::<PercentilesAnswer>(renamed).expect_err("a field is missing").to_string();
        assert!(error.contains("`matched`"), "{error}");
    }

    #[test]
    fn a_report_shows_intervals_coverage_and_reasons() {
        let answer = answer(json!({
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
        }));
        insta::assert_snapshot!(report(&answer, false));
        insta::assert_snapshot!("all_of_a_report", report(&answer, true));
    }

    #[test]
    fn an_empty_window_says_so() {
        for groups in [json!([]), json!([{"dimensions": {}, "n": 0}])] {
            let answer = answer(json!({"groups": groups, "coverage": {"client_records": 0}, "unsettled_records": 3}));
            assert_eq!(
                report(&answer, false),
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
