//! `tracejoin slo dry-run`.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use comfy_table::Table;
use comfy_table::presets::UTF8_FULL_CONDENSED;
use serde_json::Value;

use super::files;
use crate::cli::api::{Api, ServerArgs};
use crate::cli::gate::table::{row, shown};
use crate::cli::phases::short;
use crate::serve::dry_run::view::{DryRunAnswer, DryRunBody, DryRunsAnswer, FiringAnswer, NoticedAnswer};
use slo::document;

/// Replays objectives over data of the past: how often they would have fired, and how early
#[derive(Debug, clap::Args)]
pub struct DryRunArgs {
    /// Files or folders of objectives; repeat it for more
    #[arg(long, value_name = "PATH", required = true, num_args = 1..)]
    slo: Vec<PathBuf>,
    /// The first evaluation: RFC 3339, or relative to now such as -24h
    #[arg(long, allow_hyphen_values = true)]
    from: String,
    /// The last evaluation
    #[arg(long, default_value = "now", allow_hyphen_values = true)]
    to: String,
    /// When people noticed that something was wrong; repeat it for more
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    noticed: Vec<String>,
    /// How far evaluations are apart
    #[arg(long, default_value = "30s")]
    every: String,
    /// Print the server's JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: ServerArgs,
}

/// Asks for the replay and shows it.
pub async fn run(args: DryRunArgs) -> anyhow::Result<ExitCode> {
    let objectives = files::read(&args.slo)?;
    let api = Api::new(&args.server)?;
    let body = DryRunBody {
        objectives: Value::Array(objectives.iter().map(document::to_json).collect()),
        from: args.from,
        to: Some(args.to),
        every: Some(args.every),
        noticed: args.noticed,
    };
    let answer: DryRunsAnswer = api.post_json(api.url(&["api", "v1", "slos-dry-run"])?, &body).await?;
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{}", serde_json::to_string(&answer)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    for dry_run in &answer.dry_runs {
        writeln!(out, "{}", report(dry_run)).context("cannot print the replay")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// One objective for people.
fn report(dry_run: &DryRunAnswer) -> String {
    let verdicts = &dry_run.verdicts;
    let share = dry_run.no_verdict_share.map_or_else(|| "–".to_owned(), |share| format!("{:.1} %", 100.0 * share));
    let mut text = format!(
        "{} ({}): {} in {} evaluations from {} to {}\nok {}, at risk {}, broken {}, no verdict {} ({share} of the \
         time)\n",
        dry_run.slo,
        dry_run.phase,
        times(dry_run.firings.len()),
        dry_run.evaluations,
        dry_run.from,
        dry_run.to,
        verdicts.ok,
        verdicts.at_risk,
        verdicts.broken,
        verdicts.no_verdict,
    );
    if !dry_run.firings.is_empty() {
        let mut table = Table::new();
        table.load_style(UTF8_FULL_CONDENSED).set_header(["alert", "fired", "resolved", "by"]);
        table.add_rows(dry_run.firings.iter().map(|firing| {
            let resolved = firing.to.clone().unwrap_or_else(|| "not yet".to_owned());
            [format!("{} ({})", firing.alert, firing.severity), firing.from.clone(), resolved, cause(firing)]
        }));
        text.push_str(&format!("{table}\n"));
    }
    for noticed in &dry_run.noticed {
        text.push_str(&format!("{}\n", lead(noticed)));
    }
    text.push_str(&format!("{}\n", dry_run.remark));
    text
}

fn times(firings: usize) -> String {
    match firings {
        0 => "never fired".to_owned(),
        1 => "fired once".to_owned(),
        n => format!("fired {n} times"),
    }
}

/// The numbers with which an alert fired.
fn cause(firing: &FiringAnswer) -> String {
    if let Some(burn) = &firing.burn {
        let rate = |rate: Option<f64>| rate.map_or_else(|| "–".to_owned(), short);
        return format!(
            "{} × over {}, {} × over {}, to stay below {} ×; {} of {} bad",
            rate(burn.long_rate),
            burn.long,
            rate(burn.short_rate),
            burn.short,
            short(burn.factor),
            burn.bad,
            burn.n,
        );
    }
    let reasons: Vec<&str> = firing.verdict.reasons.iter().map(|reason| reason.detail.as_str()).collect();
    if !reasons.is_empty() {
        return reasons.join("; ");
    }
    let numbers = firing.verdict.measured.numbers();
    let [_, _, value, _, threshold, n, coverage, _] = row(&firing.verdict);
    let value = if numbers.value.is_some() { value } else { shown(&numbers, None) };
    format!("{value}, to be {threshold}; n = {n}, coverage {coverage}")
}

fn lead(noticed: &NoticedAnswer) -> String {
    let (Some(alert), Some(fired_at), Some(seconds)) = (&noticed.alert, &noticed.fired_at, noticed.seconds_before)
    else {
        return format!("noticed {}: nothing fired within 6 h of it", noticed.at);
    };
    let side = if seconds >= 0.0 { "before" } else { "after" };
    let still = if noticed.fired_then || seconds < 0.0 { "" } else { ", and had resolved" };
    let length = humantime::format_duration(std::time::Duration::from_secs(seconds.abs().round() as u64));
    format!("noticed {}: {alert} fired {length} {side} it, at {fired_at}{still}", noticed.at)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_replay_says_how_often_how_long_and_how_early() {
        let verdict = json!({
            "slo": "queue-p95", "phase": "gpu_queue", "goal": "p95", "target": 0.95, "verdict": "broken",
            "at_risk": false, "confirmed": true, "reasons": [], "from": "2026-01-02T12:00:00Z",
            "to": "2026-01-02T12:10:00Z", "threshold_ms": 250.0, "value_ms": 380.25, "ci_ms": [371.0, 390.0],
            "bounds_ms": [300.0, null], "n": 400, "good": 372, "bad": 28, "left_out": 0, "missing": 27, "unplaced": 0,
            "client_records": 428, "join_coverage": 0.934_579, "phase_coverage": 0.94, "filled": 1.0, "method": "exact",
            "pending": 0, "not_filtered_by": [], "rank_error": 0,
        });
        let burn = json!({"factor": 14.4, "long": "1h", "short": "5m", "long_rate": 20.0,
                          "short_rate": 18.25, "filled_long": 1.0, "filled_short": 1.0, "n": 1000, "bad": 200, "fires": true});
        let firing = |alert: &str, to: Option<&str>, burn: Option<&Value>| {
            json!({"alert": alert, "severity": "page", "from": "2026-01-02T12:11:30Z", "to": to, "verdict": verdict,
                   "burn": burn})
        };
        let noticed = |at: &str, before: Option<f64>, then: bool| {
            let alert = before.map(|_| "TracejoinObjectiveBroken");
            json!({"at": at, "alert": alert, "fired_at": before.map(|_| "2026-01-02T12:11:30Z"),
                   "seconds_before": before, "fired_then": then})
        };
        let answer: DryRunAnswer = serde_json::from_value(json!({
            "slo": "queue-p95", "phase": "gpu_queue", "from": "2026-01-02T12:00:00Z", "to": "2026-01-02T14:00:00Z",
            "evaluations": 241, "verdicts": {"ok": 180, "at_risk": 11, "broken": 20, "no_verdict": 30},
            "no_verdict_share": 0.124_481,
            "firings": [firing("TracejoinObjectiveBroken", Some("2026-01-02T12:31:30Z"), None),
                        firing("TracejoinBudgetBurn", None, Some(&burn))],
            "noticed": [noticed("2026-01-02T12:20:00Z", Some(510.0), true),
                        noticed("2026-01-02T12:10:00Z", Some(-90.0), false),
                        noticed("2026-01-02T12:40:00Z", Some(1710.0), false),
                        noticed("2026-01-02T13:00:00Z", None, false)],
            "remark": "data that came late counts as if it had been there in time",
        }))
        .expect("an answer");
        insta::assert_snapshot!(report(&answer));
    }
}
