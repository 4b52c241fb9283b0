//! What an explanation says in sentences.

use crate::objectives::gates::MAX_ROWS;
use slo::explain::{Explanation, Means, PartMean, Past, Slow, Splits, Unread, moved};

/// Fewer requests than this tell little of a mean.
const FEW: u64 = 30;

/// The sentences, the most telling first.
pub fn said(explanation: &Explanation, now: Option<&Means>, slow: Option<&Slow>, of_run: bool) -> Vec<String> {
    let mut said = Vec::new();
    said.extend(explanation.broken.iter().map(broke));
    let Some(now) = now else {
        said.push(nothing_tells(&explanation.now));
        return said;
    };
    said.push(against(explanation, now, of_run));
    if let Some(slow) = slow {
        said.push(carried(explanation.pair.whole().column(), slow));
    }
    if now.n < FEW {
        said.push(format!("these are means of {} requests: a single slow one moves them", now.n));
    }
    said
}

fn ms(nanos: f64) -> String {
    format!("{:.1} ms", nanos / 1e6)
}

fn percent(part: f64, whole: f64) -> String {
    if whole > 0.0 { format!("{:.0} %", 100.0 * part / whole) } else { "no part".to_owned() }
}

fn broke(past: &Past) -> String {
    let phase = past.indicator.name();
    let Some(means) = &past.means else {
        return format!("{phase} broke ({}); no single request past its threshold tells its phases", past.objective);
    };
    let largest = means.largest();
    format!(
        "{phase} broke ({}): of the {} whole answers past its threshold {} took the largest share, {} of {} on average",
        past.objective,
        means.n,
        largest.metric.column(),
        percent(largest.mean, means.whole),
        ms(means.whole),
    )
}

fn nothing_tells(splits: &Splits) -> String {
    match splits.unread {
        Some(Unread::TooMany) => {
            return format!("more than {MAX_ROWS} requests are not looked at one by one; gate a shorter window");
        }
        Some(Unread::Gone) => {
            return "the window begins before the requests that are kept; raise --retention to look back further"
                .to_owned();
        }
        None => {}
    }
    match splits.records {
        0 => "no whole answer is in the window, so nothing tells where its time went".to_owned(),
        records => format!("none of the {records} whole answers tells all of its phases: did the spans arrive?"),
    }
}

fn against(explanation: &Explanation, now: &Means, of_run: bool) -> String {
    let Some(baseline) = &explanation.baseline else {
        let why = if of_run { "name a run with --baseline" } else { "give a baseline" };
        return format!("there is nothing to compare with; {why} to see which phase moved");
    };
    let name = baseline.run.as_ref().map_or_else(|| "the window before".to_owned(), |run| format!("the run {run}"));
    let Some(before) = Means::of(explanation.pair, &baseline.splits.splits) else {
        return format!("{name} tells nothing to compare with: {}", nothing_tells(&baseline.splits));
    };
    let moved = moved(&before, now);
    let Some(most) = moved.first() else { return String::new() };
    let clear = if most.is_clear() { "" } else { ", which chance alone may explain" };
    format!(
        "{} moved most against {name}: its mean went from {} to {} ({:+.1} ms a request, give or take {:.1}){clear}; the \
         whole went from {} to {} (n = {} and {}, coverage {} and {})",
        most.metric.column(),
        ms(most.before),
        ms(most.now),
        most.by() / 1e6,
        most.give_or_take / 1e6,
        ms(before.whole),
        ms(now.whole),
        before.n,
        now.n,
        share(baseline.splits.coverage()),
        share(explanation.now.coverage()),
    )
}

fn share(share: Option<f64>) -> String {
    share.map_or_else(|| "unknown".to_owned(), |share| format!("{:.1} %", 100.0 * share))
}

/// Which phase makes slow requests slow: the one in which they differ most from the others.
fn carried(whole: &str, slow: &Slow) -> String {
    let pairs = slow.slow.parts.iter().zip(&slow.rest.parts);
    let further = |(part, rest): &(&PartMean, &PartMean)| part.mean - rest.mean;
    let most = pairs.max_by(|one, other| further(one).total_cmp(&further(other)));
    let Some((part, rest)) = most else { return String::new() };
    format!(
        "the {} requests whose {whole} is past its p95 ({}) are slow by {}: {} on average, against {} in the other {}",
        slow.slow.n,
        ms(slow.past),
        part.metric.column(),
        ms(part.mean),
        ms(rest.mean),
        slow.rest.n,
    )
}
