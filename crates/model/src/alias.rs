//! Where to look for a request that is known by its request id.

use super::id::TraceId;

/// Whether a request id stands for no request: what proxies and clients write where they know none.
pub fn is_placeholder_id(request_id: &str) -> bool {
    const WORDS: [&str; 8] = ["null", "(null)", "nil", "none", "undefined", "unknown", "n/a", "[object object]"];
    let told = request_id.trim();
    let blank = !told.chars().any(|letter| letter.is_alphanumeric() && letter != '0');
    blank || WORDS.iter().any(|word| told.eq_ignore_ascii_case(word))
}

/// A side of a request. The number is stored: never reuse one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Side {
    /// The client's records and event logs.
    Client = 0,
    /// Server spans that no client record of their own trace answers for.
    Server = 1,
}

impl Side {
    /// From the stored number.
    pub fn from_number(number: u32) -> Option<Self> {
        [Self::Client, Self::Server].into_iter().find(|side| *side as u32 == number)
    }
}

/// The trace under which one side of a request is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Alias {
    pub side: Side,
    pub trace_id: TraceId,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_no_ids() {
        for id in ["", " ", "-", "--", "0", "00000000-0000-0000-0000-000000000000", "null", "None", "N/A", "undefined"]
        {
            assert!(is_placeholder_id(id), "{id:?}");
        }
        for id in ["1", "req_0", "nullable", "none-1", "00000000-0000-0000-0000-000000000001", "\u{4e00}"] {
            assert!(!is_placeholder_id(id), "{id:?}");
        }
    }
}
