//! Verdicts for people.

use comfy_table::Table;
use comfy_table::presets::UTF8_FULL_CONDENSED;

use crate::cli::phases::short;
use crate::serve::gate::view::GateAnswer;
use crate::serve::verdict::{Numbers, VerdictAnswer};
use model::Unit;
use slo::Indicator;
use slo::indicator::Direction;

/// The heads of the columns.
pub const COLUMNS: [&str; 8] =
    ["objective", "phase", "value", "95 % interval", "threshold", "n", "coverage", "verdict"];

const UNKNOWN: &str = "–";

/// What was judged, and a row an objective.
pub fn report(answer: &GateAnswer) -> String {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED).set_header(COLUMNS).add_rows(answer.verdicts.iter().map(row));
    let mut text = format!("{}\n{table}\n", subject(answer));
    for verdict in &answer.verdicts {
        for reason in &verdict.reasons {
            text.push_str(&format!("{}: {}: {}\n", verdict.slo, reason.reason, reason.detail));
        }
        if verdict.left_out > 0 {
            let cut_off = "requests were cut off before the threshold and count in neither direction";
            text.push_str(&format!("{}: {} {cut_off}\n", verdict.slo, verdict.left_out));
        }
    }
    text
}

/// Which run or window was judged.
pub fn subject(answer: &GateAnswer) -> String {
    let window = match (&answer.from, &answer.to) {
        (Some(from), Some(to)) => format!("{from} to {to}"),
        _ => "no window yet".to_owned(),
    };
    answer.run.as_ref().map_or_else(|| window.clone(), |run| format!("run {run}: {window}"))
}

/// The cells of one objective.
pub fn row(verdict: &VerdictAnswer) -> [String; 8] {
    let numbers = verdict.measured.numbers();
    let value = match verdict.goal.as_str() {
        goal if goal.starts_with('p') && goal != "pooled" => format!("{goal} {}", shown(&numbers, numbers.value)),
        _ => shown(&numbers, numbers.value),
    };
    let [lower, upper] =
        numbers.interval.map(|end| end.map_or_else(|| UNKNOWN.to_owned(), |end| number(&numbers, end)));
    [
        verdict.slo.clone(),
        verdict.phase.clone(),
        value,
        format!("[{lower}, {upper}]"),
        threshold(verdict, &numbers),
        verdict.n.to_string(),
        verdict.coverage().map_or_else(|| UNKNOWN.to_owned(), |share| format!("{:.1} %", 100.0 * share)),
        word(verdict),
    ]
}

/// The verdict with what it rests on.
pub fn word(verdict: &VerdictAnswer) -> String {
    match verdict.verdict.as_str() {
        "ok" if verdict.at_risk => "ok (at risk)".to_owned(),
        "broken" if !verdict.confirmed => "broken (interval straddles)".to_owned(),
        other => other.to_owned(),
    }
}

/// On which side of what an objective is kept.
fn threshold(verdict: &VerdictAnswer, numbers: &Numbers) -> String {
    let indicator = Indicator::from_name(&verdict.phase);
    let sign = indicator.map_or(Direction::AtMost, Indicator::direction).sign();
    let limit = shown(numbers, Some(numbers.threshold));
    match verdict.limit {
        Some(each) => {
            let unit = match indicator.map(Indicator::unit) {
                Some(Unit::Nanos | Unit::Millis) => " ms",
                Some(Unit::TokensPerSecond) => " tokens/s",
                Some(Unit::Share) | None => "",
            };
            format!("≥ {limit} at {sign} {}{unit}", short(each))
        }
        None => format!("{sign} {limit}"),
    }
}

/// A number with its unit.
pub fn shown(numbers: &Numbers, value: Option<f64>) -> String {
    let Some(value) = value else { return UNKNOWN.to_owned() };
    let unit = if numbers.unit.is_empty() { String::new() } else { format!(" {}", numbers.unit) };
    format!("{}{unit}", number(numbers, value))
}

/// Shares are shown to the tenth of a percent.
fn number(numbers: &Numbers, value: f64) -> String {
    if numbers.unit.is_empty() { format!("{:.1} %", 100.0 * value) } else { short(value) }
}

/// The outcome, with the phases that broke.
pub fn last_line(answer: &GateAnswer) -> String {
    let broken = |verdict: &&VerdictAnswer| verdict.verdict == "broken";
    let named = |verdict: &VerdictAnswer| format!("{} ({})", verdict.phase, verdict.slo);
    let why = match answer.outcome.as_str() {
        "broken" => answer.verdicts.iter().filter(broken).map(named).collect::<Vec<_>>().join(", "),
        "pass" if answer.verdicts.len() == 1 => "the objective held".to_owned(),
        "pass" => format!("all {} objectives held", answer.verdicts.len()),
        _ => answer.reasons.join("; "),
    };
    format!("gate: {}: {why}", answer.outcome)
}
