//! The differences between client and server, and whether they can be believed (design, section 6).

use super::server_side::ServerPart;
use super::tolerance::tolerance;
use model::{ClientRecord, Flag, Flags, Nanos, TtftPhases};

/// What client and server measured apart from one another.
#[derive(Debug, Clone, Copy, Default)]
pub struct Difference {
    /// Client duration less the server's total.
    pub network_envelope: Option<Nanos>,
    /// Client wall time less the server's total, where duration is unknown.
    pub wall_envelope: Option<Nanos>,
    /// The time to the first token, split.
    pub ttft: Option<TtftPhases>,
    /// Whether the request must be left out of every distribution.
    pub excluded: bool,
}

/// Subtracts the server's durations from the client's.
pub fn compare(record: &ClientRecord, server: &ServerPart, flags: &mut Flags) -> Difference {
    let Some(side) = server.side else { return Difference { excluded: true, ..Difference::default() } };
    let mut difference = Difference::default();
    let whole = if record.headers_only { None } else { record.duration.or(record.wall) };
    if let Some(client) = whole {
        let envelope = client - side.total;
        difference.excluded = is_negative(envelope, client);
        flags.set_if(difference.excluded, Flag::NegativeEnvelope);
        match record.duration {
            Some(_) => difference.network_envelope = Some(envelope),
            None => difference.wall_envelope = Some(envelope),
        }
    }
    flags.set_if(record.headers_only, Flag::HeadersOnly);
    flags.set_if(record.duration.is_none() && record.wall.is_some(), Flag::SetupUnknown);
    flags.set_if(record.duration.is_none() && record.wall.is_none(), Flag::DurationUnknown);
    difference.ttft = first_token(record, server, flags);
    difference
}

fn first_token(record: &ClientRecord, server: &ServerPart, flags: &mut Flags) -> Option<TtftPhases> {
    let pair = record.ttft.zip(server.side.and_then(|side| side.ttft)).zip(server.ttft);
    let Some(((client, server_ttft), phases)) = pair else {
        let streamed = record.streaming.or(server.details.streaming).unwrap_or(record.ttft.is_some());
        flags.set_if(streamed, Flag::NoFirstToken);
        return None;
    };
    let envelope = client - server_ttft;
    if is_negative(envelope, client) {
        flags.set(Flag::NegativeTtftEnvelope);
        return None;
    }
    Some(TtftPhases { envelope, server: phases })
}

/// Below −max(1 ms, 0.02 % of the client's time) a difference is a fault of boundaries, units or correlation; inside of
/// that it is the coarseness of the clocks.
fn is_negative(difference: Nanos, client: Nanos) -> bool {
    difference < Nanos::ZERO - tolerance(client)
}
