//! Where to look for a request that is known by its request id.

use super::id::TraceId;

/// A side of a request.
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
    /// Which side.
    pub side: Side,
    /// The trace.
    pub trace_id: TraceId,
}
