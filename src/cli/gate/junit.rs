//! Verdicts as a JUnit report.
//!
//! An objective is a test case. A broken one is a failure. One without a verdict is an error, which CI systems show as red
//! as they show the job that left with 3; as a skipped test it would look as if all were well.

use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};

use super::table::{row, subject, word};
use crate::serve::gate::view::GateAnswer;
use crate::serve::verdict::VerdictAnswer;

/// The class under which systems group the test cases.
const CLASS: &str = "tracejoin.gate";

/// The report.
///
/// # Errors
/// None: memory takes all that is written.
pub fn report(answer: &GateAnswer) -> std::io::Result<Vec<u8>> {
    let failures = answer.verdicts.iter().filter(|verdict| verdict.verdict == "broken").count();
    let unsettled = answer.unsettled.traces + answer.unsettled.pending > 0;
    let errors =
        answer.verdicts.iter().filter(|verdict| verdict.verdict == "no_verdict").count() + usize::from(unsettled);
    let cases = answer.verdicts.len() + usize::from(unsettled);
    let counts = [("tests", cases), ("failures", failures), ("errors", errors), ("skipped", 0)];
    let counts: Vec<(&str, String)> = counts.iter().map(|(name, count)| (*name, count.to_string())).collect();
    let counts = || counts.iter().map(|(name, count)| (*name, count.as_str()));

    let mut writer = Writer::new_with_indent(Vec::new(), b' ', 2);
    writer.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    let name = allowed(&format!("tracejoin gate, {}", subject(answer)));
    let suites = writer.create_element("testsuites").with_attributes(counts());
    suites.write_inner_content(|writer| {
        let suite = writer.create_element("testsuite").with_attribute(("name", name.as_str()));
        suite.with_attributes(counts()).write_inner_content(|writer| {
            for verdict in &answer.verdicts {
                write_case(writer, verdict)?;
            }
            if unsettled { write_unsettled(writer, answer) } else { Ok(()) }
        })?;
        Ok(())
    })?;
    let mut report = writer.into_inner();
    report.push(b'\n');
    Ok(report)
}

fn write_case(writer: &mut Writer<Vec<u8>>, verdict: &VerdictAnswer) -> std::io::Result<()> {
    let name = allowed(&format!("{}: {}", verdict.phase, verdict.slo));
    let case = writer.create_element("testcase").with_attributes([("classname", CLASS), ("name", name.as_str())]);
    let [_, phase, value, interval, threshold, n, coverage, _] = row(verdict);
    let numbers = format!("{phase} {value} {interval}, to be {threshold}; n = {n}, coverage {coverage}");
    let kind = match verdict.verdict.as_str() {
        "broken" => "failure",
        "no_verdict" => "error",
        _ => {
            let text = allowed(&format!("{}: {numbers}", word(verdict)));
            case.write_inner_content(|writer| {
                writer.create_element("system-out").write_text_content(BytesText::new(&text))?;
                Ok(())
            })?;
            return Ok(());
        }
    };
    let reasons: Vec<&str> = verdict.reasons.iter().map(|reason| reason.detail.as_str()).collect();
    let message = if reasons.is_empty() { numbers.clone() } else { reasons.join("; ") };
    case.write_inner_content(|writer| write_problem(writer, kind, &word(verdict), &message, &numbers))?;
    Ok(())
}

fn write_unsettled(writer: &mut Writer<Vec<u8>>, answer: &GateAnswer) -> std::io::Result<()> {
    let case = writer.create_element("testcase").with_attributes([("classname", CLASS), ("name", "all has settled")]);
    let text = answer.reasons.join("; ");
    case.write_inner_content(|writer| write_problem(writer, "error", "unsettled", &text, &text))?;
    Ok(())
}

fn write_problem(
    writer: &mut Writer<Vec<u8>>,
    element: &str,
    kind: &str,
    message: &str,
    text: &str,
) -> std::io::Result<()> {
    let (kind, message, text) = (allowed(kind), allowed(message), allowed(text));
    let problem = writer.create_element(element);
    let problem = problem.with_attributes([("type", kind.as_str()), ("message", message.as_str())]);
    problem.write_text_content(BytesText::new(&text))?;
    Ok(())
}

/// XML has no way to write most control characters, escaped or not.
fn allowed(text: &str) -> String {
    let is_allowed = |letter: &char| matches!(letter, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
    text.chars().map(|letter| if is_allowed(&letter) { letter } else { '\u{fffd}' }).collect()
}
