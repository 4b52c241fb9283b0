//! Verdicts for the summary page of a CI system.

use super::explained;
use super::table::{COLUMNS, last_line, row, subject};
use crate::serve::gate::view::GateAnswer;

/// A section of Markdown: the outcome, a table, reasons, and what was explained.
pub fn summary(answer: &GateAnswer) -> String {
    let mut text = format!("### {}\n\n{}\n\n", escaped(&last_line(answer)), escaped(&subject(answer)));
    text.push_str(&table(&COLUMNS, answer.verdicts.iter().map(|verdict| row(verdict).to_vec())));
    let reasons =
        answer.verdicts.iter().flat_map(|verdict| verdict.reasons.iter().map(|reason| (&verdict.slo, reason)));
    let reasons: Vec<String> = reasons.map(|(slo, reason)| format!("{slo}: {}", reason.detail)).collect();
    text.push_str(&list(&reasons));
    for explanation in &answer.explanations {
        text.push_str(&format!("\n#### {}\n", escaped(&explained::heading(explanation))));
        text.push_str(&list(&explanation.said));
        let rows = explained::rows(explanation);
        if let Some((heads, rows)) = rows.split_first() {
            text.push('\n');
            text.push_str(&table(heads, rows.iter().cloned()));
        }
    }
    text.push('\n');
    text
}

fn table(heads: &[impl AsRef<str>], rows: impl Iterator<Item = Vec<String>>) -> String {
    let line = |cells: &mut dyn Iterator<Item = String>| format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "));
    let mut text = line(&mut heads.iter().map(|head| escaped(head.as_ref())));
    text.push_str(&line(&mut heads.iter().map(|_| "---".to_owned())));
    for row in rows {
        text.push_str(&line(&mut row.iter().map(|cell| escaped(cell))));
    }
    text
}

fn list(lines: &[String]) -> String {
    let mut text = String::new();
    for (at, line) in lines.iter().enumerate() {
        let space = if at == 0 { "\n" } else { "" };
        text.push_str(&format!("{space}- {}\n", escaped(line)));
    }
    text
}

/// Names of runs come from outside: nothing in them may end a cell or begin markup.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '|' | '\\' | '*' | '_' | '`' | '[' | ']' | '#' => escaped.extend(['\\', letter]),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            letter if letter.is_control() => escaped.push(' '),
            letter => escaped.push(letter),
        }
    }
    escaped
}
