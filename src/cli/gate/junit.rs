//! Verdicts as a JUnit report.
//!
//! An objective is a test case. A broken one is a failure. One without a verdict is an error, which CI systems show as red
//! as they show the job that left with 3; as a skipped test it would look as if all were well.

use quick_junit::{NonSuccessKind, Report, SerializeError, TestCase, TestCaseStatus, TestSuite};

use super::table::{row, subject, word};
use crate::serve::gate::view::GateAnswer;
use crate::serve::verdict::VerdictAnswer;

/// The class under which systems group the test cases.
const CLASS: &str = "tracejoin.gate";

/// The report.
///
/// # Errors
/// None: memory takes all that is written.
pub fn report(answer: &GateAnswer) -> Result<String, SerializeError> {
    let mut suite = TestSuite::new(allowed(&format!("tracejoin gate, {}", subject(answer))));
    suite.add_test_cases(answer.verdicts.iter().map(case_of));
    if answer.unsettled.traces + answer.unsettled.pending > 0 {
        let text = answer.reasons.join("; ");
        suite.add_test_case(case("all has settled", problem(NonSuccessKind::Error, "unsettled", &text, &text)));
    }
    // Only the suite has a name: there is never a second one to tell it from.
    let mut report = Report::unnamed();
    report.add_test_suite(suite);
    report.to_string()
}

fn case_of(verdict: &VerdictAnswer) -> TestCase {
    let name = format!("{}: {}", verdict.phase, verdict.slo);
    let [_, phase, value, interval, threshold, n, coverage, _] = row(verdict);
    let numbers = format!("{phase} {value} {interval}, to be {threshold}; n = {n}, coverage {coverage}");
    let kind = match verdict.verdict.as_str() {
        "broken" => NonSuccessKind::Failure,
        "no_verdict" => NonSuccessKind::Error,
        _ => {
            let mut case = case(&name, TestCaseStatus::success());
            case.set_system_out(allowed(&format!("{}: {numbers}", word(verdict))));
            return case;
        }
    };
    let reasons: Vec<&str> = verdict.reasons.iter().map(|reason| reason.detail.as_str()).collect();
    let message = if reasons.is_empty() { numbers.clone() } else { reasons.join("; ") };
    case(&name, problem(kind, &word(verdict), &message, &numbers))
}

fn case(name: &str, status: TestCaseStatus) -> TestCase {
    let mut case = TestCase::new(allowed(name), status);
    case.set_classname(CLASS);
    case
}

fn problem(kind: NonSuccessKind, word: &str, message: &str, text: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::non_success(kind);
    status.set_type(allowed(word)).set_message(allowed(message)).set_description(allowed(text));
    status
}

/// XML has no way to write most control characters, escaped or not. The library would drop them: what replaces them here
/// shows that something stood there.
fn allowed(text: &str) -> String {
    let is_allowed = |letter: &char| matches!(letter, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
    text.chars().map(|letter| if is_allowed(&letter) { letter } else { '\u{fffd}' }).collect()
}
