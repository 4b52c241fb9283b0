//! Windows cut into steps.

use serde::Deserialize;
use utoipa::IntoParams;

use super::error::ApiError;
use super::query::{parse_duration, single};
use model::{Interval, Nanos, UnixNanos};

/// Steps that one answer has at most.
const MOST_STEPS: i64 = 1440;

/// The parameter that cuts a window into steps.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[serde(default)]
#[into_params(parameter_in = Query)]
pub struct StepParams {
    /// The length of a step, such as `30s`, `1m` or `1h`. Steps start at whole multiples of it; 1440 at most.
    #[serde(deserialize_with = "single")]
    #[param(default = "1m")]
    step: Option<String>,
}

impl StepParams {
    /// Cuts `window` into steps. The first and the last are cut at the window's ends.
    ///
    /// # Errors
    /// [`ApiError::Parameter`] for a step that cannot be understood, and where there would be too many.
    pub fn cut(&self, window: Interval) -> Result<Vec<Interval>, ApiError> {
        let step = parse_duration("step", self.step.as_deref().unwrap_or("1m"))?;
        let first = window.start.0.div_euclid(step.0).saturating_mul(step.0);
        if window.end.0.saturating_sub(first) / step.0 >= MOST_STEPS {
            let detail = format!("the window has more than {MOST_STEPS} steps; give a longer step or a shorter window");
            return Err(ApiError::parameter("step", detail));
        }
        let mut steps = Vec::new();
        let mut start = UnixNanos(first);
        while start < window.end {
            let end = start + Nanos(step.0);
            let whole = Interval { start, end };
            steps.extend(whole.intersection(window).filter(|part| part.length() > Nanos::ZERO));
            start = end;
        }
        Ok(steps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::query::Parameters;

    const SECOND: i64 = 1_000_000_000;

    fn steps(raw: &str, start: i64, end: i64) -> Result<Vec<(i64, i64)>, ApiError> {
        let Parameters((params,)) = Parameters::<(StepParams,)>::parse(raw)?;
        let window = Interval { start: UnixNanos(start * SECOND), end: UnixNanos(end * SECOND) };
        let steps = params.cut(window)?;
        Ok(steps.into_iter().map(|step| (step.start.0 / SECOND, step.end.0 / SECOND)).collect())
    }

    #[test]
    fn steps_start_at_multiples_and_end_with_the_window() {
        assert_eq!(steps("step=1m", 90, 200).expect("steps"), [(90, 120), (120, 180), (180, 200)]);
        assert_eq!(steps("", 60, 120).expect("steps"), [(60, 120)]);
        assert_eq!(steps("step=10s", -5, 5).expect("steps"), [(-5, 0), (0, 5)]);
    }

    #[test]
    fn too_many_steps_are_refused() {
        assert_eq!(steps("step=1m", 0, 1440 * 60 - 1).expect("a day").len(), 1440);
        let error = steps("step=1s", 0, 86_400).expect_err("a day of seconds");
        assert!(error.to_string().contains("1440 steps; give a longer step"));
        assert!(steps("step=0s", 0, 60).is_err());
    }
}
