//! The types that fields have, each with what it refuses and the form in which it is written.

use super::error::nearest;
use super::node::{Leaf, Scalar};
use crate::objective::{Confirm, ObjectiveId, Straddling};
use model::Nanos;
use stats::Quantile;
use stats::quantile::BadQuantile;

/// The value of `apiVersion`.
pub(super) const API_VERSION: &str = "tracejoin/v1";

const MINUTE: Nanos = Nanos(60_000_000_000);
/// The shortest window, and the shortest wait of an alert.
const SHORTEST: Nanos = Nanos(10_000_000_000);
/// The longest window, wait and threshold.
pub(super) const LONGEST: Nanos = Nanos(30 * 86_400_000_000_000);

impl Scalar {
    fn is_not(&self, advice: &str) -> String {
        format!("is {}; {advice}", self.kind())
    }

    /// A text for people: some of it, on one line, of at most so many bytes.
    fn line(&self, longest: usize) -> Result<&str, String> {
        let Self::Text(text) = self else { return Err(self.is_not("give a text; quotes make it one")) };
        let fits = !text.trim().is_empty() && text.len() <= longest && !text.chars().any(char::is_control);
        fits.then_some(text.as_str())
            .ok_or_else(|| format!("has {} bytes; give a text of 1 to {longest} bytes, on one line", text.len()))
    }

    /// One of several names.
    pub(super) fn one_of<T: Copy>(&self, known: &[(&str, T)]) -> Result<T, String> {
        let named = match self {
            Self::Text(text) => Some(text.as_str()),
            Self::Flag(true) => Some("true"),
            Self::Flag(false) => Some("false"),
            _ => None,
        };
        let found = named.and_then(|named| known.iter().find(|(name, _)| *name == named));
        found.map(|(_, value)| *value).ok_or_else(|| {
            let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
            match named.and_then(|named| nearest(named, &names)) {
                Some(near) if names.len() > 1 => format!("is not a known value; did you mean {near}?"),
                _ if names.len() <= 3 => format!("is not a known value; give {}", names.join(" or ")),
                _ => format!("is not a known value; give one of {}", names.join(", ")),
            }
        })
    }

    fn number(&self) -> Result<f64, String> {
        match self {
            Self::Whole(number) => Ok(*number as f64),
            Self::Number(number) if number.is_finite() => Ok(*number),
            Self::Number(_) => Err("is not finite; give a number".to_owned()),
            _ => Err(self.is_not("give a number, without quotes or unit")),
        }
    }

    /// A duration such as `10m` or `1h 30m`.
    fn duration(&self, least: Nanos, most: Nanos) -> Result<Nanos, String> {
        let Self::Text(text) = self else { return Err(bounds(least, most)) };
        let duration = humantime::parse_duration(text).ok();
        let nanos = duration.and_then(|duration| i64::try_from(duration.as_nanos()).ok()).map(Nanos);
        nanos.filter(|nanos| (least..=most).contains(nanos)).ok_or_else(|| bounds(least, most))
    }

    /// A value of a label, of at most so many bytes. A number with a fraction is refused: `4.10` would become `4.1`.
    pub(super) fn label(&self, longest: usize) -> Result<String, String> {
        match self {
            Self::Flag(flag) => Ok(flag.to_string()),
            Self::Whole(number) => Ok(number.to_string()),
            Self::Number(_) => Err(self.is_not("write it in quotes, so that it stays as it is")),
            Self::Text(_) => self.line(longest).map(str::to_owned),
            _ => Err(self.is_not("give a value, or a list of them")),
        }
    }
}

fn bounds(least: Nanos, most: Nanos) -> String {
    format!("give a duration from {} to {}, such as 10m", least.in_words(), most.in_words())
}

fn text(text: &str) -> Scalar {
    Scalar::Text(text.to_owned())
}

/// The only version of the form.
#[derive(Debug, Clone, Copy)]
pub(super) struct ApiVersion;

impl Leaf for ApiVersion {
    fn read(scalar: &Scalar) -> Result<Self, String> {
        scalar.one_of(&[(API_VERSION, Self)])
    }

    fn write(&self) -> Scalar {
        text(API_VERSION)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Slo,
    Budget,
}

impl Leaf for Kind {
    fn read(scalar: &Scalar) -> Result<Self, String> {
        scalar.one_of(&[("SLO", Self::Slo), ("Budget", Self::Budget)])
    }

    fn write(&self) -> Scalar {
        text(match self {
            Self::Slo => "SLO",
            Self::Budget => "Budget",
        })
    }
}

/// A text for people, on one line of at most so many bytes.
#[derive(Debug, Clone)]
pub(super) struct Line<const LONGEST: usize>(pub(super) String);

impl<const LONGEST: usize> Leaf for Line<LONGEST> {
    fn read(scalar: &Scalar) -> Result<Self, String> {
        scalar.line(LONGEST).map(|text| Self(text.to_owned()))
    }

    fn write(&self) -> Scalar {
        text(&self.0)
    }
}

impl Leaf for ObjectiveId {
    fn read(scalar: &Scalar) -> Result<Self, String> {
        let name = scalar.line(Self::MAX_LENGTH)?;
        Self::new(name).map_err(|error| error.to_string())
    }

    fn write(&self) -> Scalar {
        text(self.as_str())
    }
}

impl Leaf for Quantile {
    fn read(scalar: &Scalar) -> Result<Self, String> {
        scalar.number()?.to_string().parse().map_err(|error: BadQuantile| error.to_string())
    }

    fn write(&self) -> Scalar {
        Number(self.as_f64()).write()
    }
}

/// A finite number.
#[derive(Debug, Clone, Copy)]
pub(super) struct Number(pub(super) f64);

impl Leaf for Number {
    fn read(scalar: &Scalar) -> Result<Self, String> {
        scalar.number().map(Self)
    }

    /// As a person writes it: 250, not 250.0.
    fn write(&self) -> Scalar {
        let is_whole = self.0.fract() == 0.0 && (0.0..1e15).contains(&self.0);
        if is_whole { Scalar::Whole(self.0 as u64) } else { Scalar::Number(self.0) }
    }
}

/// A whole number of at least one, small enough for every place where it is kept.
#[derive(Debug, Clone, Copy)]
pub(super) struct Count(pub(super) u64);

impl Leaf for Count {
    fn read(scalar: &Scalar) -> Result<Self, String> {
        match scalar {
            Scalar::Whole(number @ 1..=1_000_000_000) => Ok(Self(*number)),
            _ => Err("is not a count; give a whole number from 1 to 1000000000".to_owned()),
        }
    }

    fn write(&self) -> Scalar {
        Scalar::Whole(self.0)
    }
}

/// A number from 0 to 1.
#[derive(Debug, Clone, Copy)]
pub(super) struct Share(pub(super) f64);

impl TryFrom<Number> for Share {
    type Error = String;

    fn try_from(Number(number): Number) -> Result<Self, String> {
        if (0.0..=1.0).contains(&number) {
            return Ok(Self(number));
        }
        Err(format!("is {number}; give a share from 0 to 1, such as 0.05 for 5 %"))
    }
}

impl Leaf for Share {
    fn read(scalar: &Scalar) -> Result<Self, String> {
        Self::try_from(Number::read(scalar)?)
    }

    fn write(&self) -> Scalar {
        Number(self.0).write()
    }
}

impl Leaf for bool {
    fn read(scalar: &Scalar) -> Result<Self, String> {
        match scalar {
            Scalar::Flag(flag) => Ok(*flag),
            _ => Err(scalar.is_not("give true or false")),
        }
    }

    fn write(&self) -> Scalar {
        Scalar::Flag(*self)
    }
}

/// The window of an objective.
#[derive(Debug, Clone, Copy)]
pub(super) struct Period(pub(super) Nanos);

impl Leaf for Period {
    fn read(scalar: &Scalar) -> Result<Self, String> {
        scalar.duration(SHORTEST, LONGEST).map(Self)
    }

    fn write(&self) -> Scalar {
        text(&self.0.in_words())
    }
}

/// How long an alert waits; `None` for ever.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wait(pub(super) Option<Nanos>);

impl Leaf for Wait {
    fn read(scalar: &Scalar) -> Result<Self, String> {
        if matches!(scalar, Scalar::Text(text) if text == "never") {
            return Ok(Self(None));
        }
        scalar.duration(SHORTEST, LONGEST).map(|wait| Self(Some(wait)))
    }

    fn write(&self) -> Scalar {
        self.0.map_or_else(|| text("never"), |wait| Period(wait).write())
    }
}

/// A window of whole minutes, by which requests are counted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Minutes(pub(super) Nanos);

impl Leaf for Minutes {
    fn read(scalar: &Scalar) -> Result<Self, String> {
        let window = scalar.duration(MINUTE, LONGEST)?;
        if window.0 % MINUTE.0 == 0 {
            return Ok(Self(window));
        }
        Err("is not a number of whole minutes, by which requests are counted; round it".to_owned())
    }

    fn write(&self) -> Scalar {
        text(&self.0.in_words())
    }
}

impl Leaf for Straddling {
    fn read(scalar: &Scalar) -> Result<Self, String> {
        scalar.one_of(&[("point", Self::PointEstimate), ("interval", Self::Interval)])
    }

    fn write(&self) -> Scalar {
        text(match self {
            Self::PointEstimate => "point",
            Self::Interval => "interval",
        })
    }
}

impl Leaf for Confirm {
    fn read(scalar: &Scalar) -> Result<Self, String> {
        scalar.one_of(&[("interval", Self::Interval), ("verdict", Self::Verdict)])
    }

    fn write(&self) -> Scalar {
        text(match self {
            Self::Interval => "interval",
            Self::Verdict => "verdict",
        })
    }
}
