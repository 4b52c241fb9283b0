//! Where the time went, for people.

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, Table};

use crate::cli::phases::short;
use crate::serve::gate::view::{ExplanationAnswer, MeansAnswer};

/// Every explanation: its sentences, then the means.
pub fn text(explanations: &[ExplanationAnswer]) -> String {
    let mut text = String::new();
    for explanation in explanations {
        text.push_str(&format!("\n{}\n", heading(explanation)));
        for said in &explanation.said {
            text.push_str(&format!("- {said}\n"));
        }
        let rows = rows(explanation);
        if rows.len() > 1 {
            let mut table = Table::new();
            table.load_style(UTF8_FULL_CONDENSED).set_header(&rows[0]).add_rows(&rows[1..]);
            for column in table.column_iter_mut().skip(1) {
                column.set_cell_alignment(CellAlignment::Right);
            }
            text.push_str(&format!("{table}\n"));
        }
    }
    text
}

/// What an explanation is of.
pub fn heading(explanation: &ExplanationAnswer) -> String {
    format!("where the {} went, mean ms a request, for {}", explanation.whole, explanation.slos.join(", "))
}

/// A row a phase under its heads, then the whole; empty where nothing tells.
pub fn rows(explanation: &ExplanationAnswer) -> Vec<Vec<String>> {
    let Some(now) = &explanation.now else { return Vec::new() };
    let before = explanation.baseline.as_ref().and_then(|baseline| baseline.means.as_ref());
    let slow = explanation.slow.as_ref();
    let mut columns: Vec<(String, &MeansAnswer)> = Vec::new();
    if let Some(before) = before {
        columns.push((format!("baseline (n = {})", before.n), before));
    }
    columns.push((format!("now (n = {})", now.n), now));
    if let Some(slow) = slow {
        columns.push((format!("past p95 (n = {})", slow.slow.n), &slow.slow));
        columns.push((format!("the rest (n = {})", slow.rest.n), &slow.rest));
    }
    let mut heads = vec!["phase".to_owned()];
    heads.extend(columns.iter().map(|(head, _)| head.clone()));
    if before.is_some() {
        heads.push("moved [95 % interval]".to_owned());
    }
    let mut rows = vec![heads];
    for (at, part) in now.phases.iter().enumerate() {
        let mean = |means: &MeansAnswer| means.phases.get(at).map_or_else(String::new, |part| short(part.mean_ms));
        let mut row = vec![part.phase.clone()];
        row.extend(columns.iter().map(|(_, means)| mean(means)));
        row.extend(moved(explanation, &part.phase));
        rows.push(row);
    }
    let mut whole = vec![explanation.whole.clone()];
    whole.extend(columns.iter().map(|(_, means)| short(means.whole_ms)));
    whole.extend(before.map(|before| signed(now.whole_ms - before.whole_ms)));
    rows.push(whole);
    rows
}

fn moved(explanation: &ExplanationAnswer, phase: &str) -> Option<String> {
    let moved = explanation.moved.iter().find(|moved| moved.phase == phase)?;
    let [lower, upper] = moved.by_ci_ms.map(signed);
    Some(format!("{} [{lower}, {upper}]", signed(moved.by_ms)))
}

fn signed(millis: f64) -> String {
    if millis > 0.0 { format!("+{}", short(millis)) } else { short(millis) }
}
