//! What a person should know of objectives that were taken.

use super::budget::ARITHMETIC;
use super::burn::{all_defaults, default_windows};
use crate::indicator::Indicator;
use crate::objective::{Goal, Objective};

/// What is to be said of objectives beside that they were taken, one sentence each.
pub fn notes(objectives: &[Objective]) -> Vec<String> {
    let mut notes = Vec::new();
    for objective in objectives {
        if objective.budget.as_ref() == Some(&objective.id) {
            notes.push(format!("{}: {ARITHMETIC}", objective.id));
        }
        notes.extend(never_firing(objective));
    }
    notes
}

/// The usual burn windows that were left out, since a budget cannot burn so fast.
fn never_firing(objective: &Objective) -> Option<String> {
    let target = objective.goal.target().filter(|_| objective.indicator != Indicator::DroppedIterations)?;
    let kept = default_windows(target);
    let left_out: Vec<String> =
        all_defaults().filter(|window| !kept.contains(window)).map(|window| window.factor.to_string()).collect();
    if left_out.is_empty() || objective.burn.windows != kept {
        return None;
    }
    let bad = target.complement();
    let factors = left_out.join(" and ");
    let (id, most) = (&objective.id, 1.0 / bad.as_f64());
    let meant = match objective.goal {
        Goal::Share { .. } => "share",
        Goal::Quantile { .. } | Goal::Ratio { .. } | Goal::Pooled => "target",
    };
    Some(format!(
        "{id}: the burn windows of factor {factors} are left out, since a budget of {bad} of the requests can burn at most \
         {most:.3} times faster than even; give a stricter {meant}, or burn windows of your own"
    ))
}
