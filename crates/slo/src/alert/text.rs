//! What an alert says: the phase, the numbers that decided, who is affected, examples, and what to check first.

use std::collections::BTreeMap;
use std::fmt::Write;

use url::Url;

use super::advice;
use super::trouble::{Source, Trouble, length};
use crate::burn::BurnState;
use crate::indicator::{Direction, Indicator};
use crate::objective::{Goal, Objective};
use crate::tally::Tally;
use crate::verdict::{Status, Verdict};
use model::{TraceId, Unit};

/// The longest text of an alert, in characters.
const LONGEST: usize = 1_500;

/// Texts by their names, for people. They change with the numbers.
pub type Annotations = BTreeMap<String, String>;

/// What an alert is about.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    pub objective: &'a Objective,
    /// What is wrong.
    pub trouble: &'a Trouble,
    /// The verdict on the newest window.
    pub verdict: &'a Verdict,
    /// What the windows of a burn say.
    pub burn: Option<&'a BurnState>,
    /// The part of all client records of the window that the objective is about; `None` without any.
    pub traffic_share: Option<f64>,
    /// Requests that show it, at most three.
    pub exemplars: &'a [TraceId],
    /// Where people reach this server.
    pub public_url: Option<&'a Url>,
}

/// All that an alert says.
pub fn annotations(facts: &Facts<'_>) -> Annotations {
    let mut all = Annotations::new();
    let mut say = |name: &str, text: String| {
        if !text.is_empty() {
            all.insert(name.to_owned(), safe(&text));
        }
    };
    say("summary", summary(facts));
    say("description", description(facts));
    say("first_check", first_check(facts));
    say("traffic", traffic(facts));
    say("exemplars", exemplars(facts));
    all
}

/// Why an alert ends, as one sentence.
pub fn resolution(facts: &Facts<'_>) -> String {
    let text = match facts.trouble {
        Trouble::Broken => format!("the newest verdict is ok: {}", numbers(facts)),
        Trouble::Burn(_) => facts.burn.map_or_else(String::new, burning),
        Trouble::NoVerdict => format!("there is a verdict again: {}", facts.verdict.status.name()),
        Trouble::Silent(source) => format!("the {} is heard again", source.name()),
    };
    safe(&text)
}

/// The address of an objective's state, where people reach the server.
pub fn state_url(public_url: &Url, objective: &Objective) -> Option<Url> {
    address(public_url, &["api", "v1", "slos", objective.id.as_str(), "status"])
}

fn address(base: &Url, segments: &[&str]) -> Option<Url> {
    let mut url = base.clone();
    url.path_segments_mut().ok()?.pop_if_empty().extend(segments);
    Some(url)
}

fn summary(facts: &Facts<'_>) -> String {
    let (id, phase) = (&facts.objective.id, facts.objective.indicator);
    match facts.trouble {
        Trouble::Broken => format!("{phase} broke its objective {id}: {}", measured(facts)),
        Trouble::Burn(window) => {
            let rate = facts.burn.and_then(|burn| burn.long_rate);
            let pace = rate.map_or_else(|| "too fast".to_owned(), |rate| format!("at {rate:.1} times its even pace"));
            let (long, short) = (length(window.long), length(window.short));
            format!("{phase} spends the budget of {id} {pace}, over {long} and {short}")
        }
        Trouble::NoVerdict => unseen(facts.objective, None),
        Trouble::Silent(source) => unseen(facts.objective, Some(*source)),
    }
}

/// That an objective has no verdict for long: because a source is `silent`, or for want of evidence.
pub fn unseen(objective: &Objective, silent: Option<Source>) -> String {
    let (id, phase) = (&objective.id, objective.indicator);
    match silent {
        None => format!("nobody can tell whether {phase} keeps its objective {id}"),
        Some(source) => format!("no {} tells of the requests of {id} any more", source.name()),
    }
}

/// The value against its threshold, in a few words.
fn measured(facts: &Facts<'_>) -> String {
    let objective = facts.objective;
    let threshold = shown(objective.indicator, objective.threshold);
    let value = facts.verdict.evidence.value;
    match objective.goal {
        Goal::Quantile { target } => {
            format!("{} is {}, {} {threshold}", target.field(), or_unknown(objective, value), past(objective))
        }
        Goal::Ratio { target } => {
            let good = value.map_or_else(|| "an unknown share".to_owned(), percent);
            let side = objective.indicator.direction().words();
            format!("{good} of the requests are {side} {threshold}, and {} were promised", percent(target.as_f64()))
        }
        Goal::Share { .. } | Goal::Pooled => {
            format!("it is {}, {} {threshold}", or_unknown(objective, value), past(objective))
        }
    }
}

fn past(objective: &Objective) -> &'static str {
    match objective.indicator.direction() {
        Direction::AtMost => "over the threshold of",
        Direction::AtLeast => "under the threshold of",
    }
}

fn description(facts: &Facts<'_>) -> String {
    let mut text = String::new();
    if let Some(own) = &facts.objective.description {
        let _ = write!(text, "{}. ", own.trim_end_matches(['.', ' ']));
    }
    match facts.trouble {
        Trouble::Broken => text.push_str(&numbers(facts)),
        Trouble::Burn(_) => {
            text.push_str(&facts.burn.map_or_else(String::new, burning));
            let _ = write!(text, " The newest window: {}", numbers(facts));
        }
        Trouble::NoVerdict => {
            let _ =
                write!(text, "There are requests, and no verdict: {}. {}", gaps(&facts.verdict.status), numbers(facts));
        }
        Trouble::Silent(source) => text.push_str(&silence(facts.objective, *source)),
    }
    text
}

/// Value, interval, threshold, n and coverage of the window that was judged.
fn numbers(facts: &Facts<'_>) -> String {
    let (objective, evidence) = (facts.objective, &facts.verdict.evidence);
    let indicator = objective.indicator;
    let name = match objective.goal {
        Goal::Quantile { target } => format!("{indicator} {}", target.field()),
        Goal::Ratio { .. } => format!("{indicator} within the threshold"),
        Goal::Share { .. } | Goal::Pooled => indicator.to_string(),
    };
    let Tally { bad, left_out, .. } = evidence.tally;
    let mut text = format!(
        "{name} {}, 95 % interval {} to {}, threshold {}; n {}, {bad} past the threshold, {left_out} left out",
        or_unknown(objective, evidence.value),
        or_unknown(objective, evidence.interval.lower),
        or_unknown(objective, evidence.interval.upper),
        shown(indicator, objective.threshold),
        evidence.n,
    );
    let _ = write!(
        text,
        "; {} client records, {} of them joined, {} tell a value; {} until {}.",
        evidence.client_records,
        evidence.join_coverage.map_or_else(|| "an unknown share".to_owned(), percent),
        evidence.phase_coverage.map_or_else(|| "an unknown share".to_owned(), percent),
        length(objective.window),
        evidence.window.end.to_datetime().format("%Y-%m-%dT%H:%M:%SZ"),
    );
    text
}

fn burning(burn: &BurnState) -> String {
    let rate = |rate: Option<f64>| rate.map_or_else(|| "unknown".to_owned(), |rate| format!("{rate:.2}"));
    let (long, short) = (length(burn.long), length(burn.short));
    let mut text = format!(
        "Burn rate {} over {long} and {} over {short}, limit {}; {} of {} requests in {long} are past the threshold.",
        rate(burn.long_rate),
        rate(burn.short_rate),
        burn.factor,
        burn.bad,
        burn.n,
    );
    if burn.filled_long < 1.0 {
        let _ = write!(text, " Only {} of {long} is there so far.", percent(burn.filled_long));
    }
    text
}

fn silence(objective: &Objective, source: Source) -> String {
    let after = objective.alerting.silent_after.map_or_else(String::new, length);
    match source {
        Source::Client => {
            format!("No client record of its requests came for {after}, though some came within the last day.")
        }
        Source::Server => {
            format!(
                "Client records came for {after}, and none has its server's side, though some had within the last day."
            )
        }
    }
}

fn gaps(status: &Status) -> String {
    let Status::NoVerdict(gaps) = status else { return "there is one now".to_owned() };
    let reasons: Vec<String> = gaps.iter().map(ToString::to_string).collect();
    reasons.join("; ")
}

fn first_check(facts: &Facts<'_>) -> String {
    let check = match facts.trouble {
        Trouble::Silent(source) => advice::of_silence(*source),
        Trouble::NoVerdict => advice::of_no_verdict(&facts.verdict.status),
        Trouble::Broken | Trouble::Burn(_) => advice::first_check(facts.objective.indicator),
    };
    check.to_owned()
}

/// Who is affected. The two shares stand apart: one is of the objective's own requests, the other says how many these are.
fn traffic(facts: &Facts<'_>) -> String {
    let scope = facts.traffic_share.map(|share| format!("it is about {} of all client records", percent(share)));
    let tally = match facts.burn {
        Some(burn) => Tally { good: burn.n - burn.bad, bad: burn.bad, ..Tally::default() },
        None => facts.verdict.evidence.tally,
    };
    let affected = match facts.trouble {
        Trouble::Broken | Trouble::Burn(_) => tally.bad_share(),
        Trouble::NoVerdict | Trouble::Silent(_) => None,
    };
    let affected = affected.map(|bad| format!("{} of its requests are past the threshold", percent(bad)));
    [affected, scope].into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// One trace a line, with its address where that is known.
fn exemplars(facts: &Facts<'_>) -> String {
    let line = |trace: &TraceId| {
        let url = facts.public_url.and_then(|base| address(base, &["api", "v1", "traces", &trace.to_string()]));
        url.map_or_else(|| trace.to_string(), |url| format!("{trace} {url}"))
    };
    facts.exemplars.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// A value as its goal tells it: of a ratio, the share.
fn or_unknown(objective: &Objective, value: Option<f64>) -> String {
    let told = |value| match objective.goal {
        Goal::Ratio { .. } => percent(value),
        Goal::Quantile { .. } | Goal::Share { .. } | Goal::Pooled => shown(objective.indicator, value),
    };
    value.map_or_else(|| "unknown".to_owned(), told)
}

/// A stored value with its unit.
fn shown(indicator: Indicator, stored: f64) -> String {
    let unit = indicator.unit();
    match unit {
        Unit::Nanos | Unit::Millis => format!("{} ms", rounded(unit.shown(stored))),
        Unit::TokensPerSecond => format!("{} tokens/s", rounded(stored)),
        Unit::Share => percent(stored),
    }
}

fn percent(share: f64) -> String {
    format!("{} %", rounded(share * 100.0))
}

/// Three decimal places at most, none that say nothing.
fn rounded(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Text that no receiver stumbles over: no control characters but line ends, and not without end.
pub(super) fn safe(text: &str) -> String {
    let harmless = |letter: char| if letter.is_control() && letter != '\n' { ' ' } else { letter };
    let mut safe: String = text.chars().take(LONGEST).map(harmless).collect();
    if text.chars().nth(LONGEST).is_some() {
        safe.push('…');
    }
    safe
}
