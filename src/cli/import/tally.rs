//! What became of a file's members.

use std::collections::BTreeMap;
use std::io::Write;

use serde::Serialize;

/// The reason under which a last member that is cut off is counted: a file that is still being written ends so.
pub const CUT_OFF: &str = "the file ends in the middle of its last member, which was left out";

/// What became of a file's members: `read` is the sum of those accepted, recognised as duplicates, and rejected.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Members of the file.
    pub read: u64,
    /// New members, committed.
    pub accepted: u64,
    /// Members that were there already; `None` where the endpoint does not tell, as OTLP's does not.
    pub duplicates: Option<u64>,
    /// Classes of result among those not rejected; `None` where members have none.
    pub results: Option<BTreeMap<&'static str, u64>>,
    /// Members rejected for good, by reason, those included that were left out as they should be.
    pub rejected: BTreeMap<String, u64>,
    /// Whether any was rejected that somebody may want to mend.
    #[serde(skip)]
    pub refused: bool,
}

impl Tally {
    /// Counts members that were rejected for one reason.
    pub fn reject(&mut self, reason: impl Into<String>, members: u64) {
        self.refused |= members > 0;
        self.leave_out(reason, members);
    }

    /// Counts members that were left out as they should be: what a filter names, the warm-up of a load test.
    pub fn leave_out(&mut self, reason: impl Into<String>, members: u64) {
        if members > 0 {
            *self.rejected.entry(reason.into()).or_default() += members;
        }
    }

    /// Counts a last member that is cut off.
    pub fn cut_off(&mut self) {
        self.read += 1;
        self.leave_out(CUT_OFF, 1);
    }

    /// Adds what became of the members of another file.
    pub fn add(&mut self, other: Self) {
        self.read += other.read;
        self.accepted += other.accepted;
        if let Some(duplicates) = other.duplicates {
            *self.duplicates.get_or_insert(0) += duplicates;
        }
        for (class, n) in other.results.into_iter().flatten() {
            *self.results.get_or_insert_default().entry(class).or_default() += n;
        }
        for (reason, n) in other.rejected {
            self.leave_out(reason, n);
        }
        self.refused |= other.refused;
    }

    /// Whether anything was rejected but what is left out as it should be, such as a last member that is cut off.
    pub fn any_refused(&self) -> bool {
        self.refused
    }

    /// Prints it, for people or as one line of JSON.
    ///
    /// # Errors
    /// A failure of standard output.
    pub fn print(&self, json: bool) -> anyhow::Result<()> {
        let mut out = std::io::stdout().lock();
        if json {
            writeln!(out, "{}", serde_json::to_string(self)?)?;
            return Ok(());
        }
        write!(out, "read {}, accepted {}", self.read, self.accepted)?;
        if let Some(duplicates) = self.duplicates {
            write!(out, ", duplicates {duplicates}")?;
        }
        writeln!(out)?;
        for (class, n) in self.results.iter().flatten().filter(|(_, n)| **n > 0) {
            writeln!(out, "result {class}: {n}")?;
        }
        for (reason, n) in &self.rejected {
            writeln!(out, "rejected {n}: {reason}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_files_add_up() {
        let mut sum = Tally::default();
        for accepted in [2, 3] {
            let mut tally = Tally { read: 9, accepted, duplicates: Some(1), ..Tally::default() };
            tally.reject("bad", 4);
            sum.add(tally);
        }
        let rejected = BTreeMap::from([("bad".to_owned(), 8)]);
        assert_eq!(sum, Tally { read: 18, accepted: 5, duplicates: Some(2), results: None, rejected, refused: true });
    }

    #[test]
    fn a_cut_off_end_is_counted_but_is_no_refusal() {
        let mut tally = Tally { duplicates: Some(0), ..Tally::default() };
        tally.cut_off();
        assert!(!tally.any_refused());
        tally.reject("duration_ms: is negative", 2);
        tally.reject("none", 0);
        assert!(tally.any_refused());
        let line = serde_json::to_value(&tally).expect("JSON");
        assert_eq!(
            line,
            serde_json::json!({"read": 1, "accepted": 0, "duplicates": 0, "results": null,
                               "rejected": {"duration_ms: is negative": 2, CUT_OFF: 1}})
        );
    }
}
