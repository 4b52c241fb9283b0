//! What can be wrong with the gateway.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use anyhow::{bail, ensure};
use clap::ValueEnum;

/// One thing that is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Fault {
    /// Most of the GPU slots are away, so requests queue
    Queue,
    /// The way there takes 150 ms more, and the way back too
    Network,
    /// Two of three requests are refused at once with 429 or 500; their clients try again, so three times as many come
    Errors,
    /// Half of the requests in front of the GPUs wait until their clients give up, after 1 s
    Timeouts,
    /// 38 % of the traces never arrive
    LostSpans,
}

/// All that is wrong at one time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Faults(BTreeSet<Fault>);

impl Faults {
    /// Whether this is one of them.
    pub fn has(&self, fault: Fault) -> bool {
        self.0.contains(&fault)
    }

    /// Whether nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many times as many requests come.
    pub fn traffic(&self) -> f64 {
        if self.has(Fault::Errors) { 3.0 } else { 1.0 }
    }
}

impl FromIterator<Fault> for Faults {
    fn from_iter<I: IntoIterator<Item = Fault>>(faults: I) -> Self {
        Self(faults.into_iter().collect())
    }
}

/// The names, as a command gives them.
impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("none");
        }
        let values = self.0.iter().filter_map(Fault::to_possible_value);
        let names: Vec<String> = values.map(|value| value.get_name().to_owned()).collect();
        f.write_str(&names.join(" "))
    }
}

/// From a line such as `fault queue errors` or `fault none`.
impl FromStr for Faults {
    type Err = anyhow::Error;

    fn from_str(line: &str) -> anyhow::Result<Self> {
        let mut words = line.split_whitespace();
        ensure!(words.next() == Some("fault"), "`{line}` is no command; say `fault NAME…` or `fault none`");
        let names: Vec<&str> = words.collect();
        match names[..] {
            [] => bail!("`{line}` names no fault; say `fault none` to end them"),
            ["none"] => Ok(Self::default()),
            _ => names.iter().map(|name| Fault::from_str(name, false).map_err(anyhow::Error::msg)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_sets_all_faults_and_is_shown_the_same() {
        for names in ["none", "queue", "network lost-spans", "queue errors timeouts"] {
            let faults: Faults = format!("fault {names}").parse().expect("a command");
            assert_eq!(faults.to_string(), names);
        }
    }

    #[test]
    fn other_lines_say_what_is_wrong_with_them() {
        for (line, says) in [("queue", "no command"), ("fault", "names no fault"), ("fault tea", "tea")] {
            let error = line.parse::<Faults>().expect_err("refused");
            assert!(error.to_string().contains(says), "{line}: {error}");
        }
    }
}
