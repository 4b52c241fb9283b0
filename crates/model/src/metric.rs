//! What is measured on a request: the columns of a joined row that have a distribution.

use super::phase::ServerPhases;
use super::request::{ClientSide, Rates, Request, State, TtftPhases};
use super::time::Nanos;

/// How a metric is stored and shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unit {
    /// Integer nanoseconds, shown as milliseconds.
    Nanos,
    /// Milliseconds as a decimal number.
    Millis,
    TokensPerSecond,
    /// A part of a whole, from 0 to 1.
    Share,
}

impl Unit {
    /// A stored value as it is shown.
    pub fn shown(self, stored: f64) -> f64 {
        match self {
            Self::Nanos => stored / 1e6,
            Self::Millis | Self::TokensPerSecond | Self::Share => stored,
        }
    }

    /// The end of the names of the fields that show it.
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::Nanos | Self::Millis => "_ms",
            Self::TokensPerSecond | Self::Share => "",
        }
    }
}

/// The part of an answer in which a metric stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Section {
    /// Owners of time.
    Phases,
    /// What the client measured.
    Client,
    /// What the server measured as a whole.
    Server,
    /// The time to the first token, split.
    Ttft,
    /// The rhythm of a streamed answer, as its client saw it.
    Stream,
    /// Speeds.
    Rates,
}

impl Section {
    /// All of them, in the order of an answer.
    pub const ALL: [Self; 6] = [Self::Phases, Self::Client, Self::Server, Self::Ttft, Self::Stream, Self::Rates];

    /// The name in the API.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Phases => "phases",
            Self::Client => "client",
            Self::Server => "server",
            Self::Ttft => "ttft",
            Self::Stream => "stream",
            Self::Rates => "rates",
        }
    }
}

/// One value of a metric, in the unit in which it is stored.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Reading {
    /// A duration.
    Nanos(Nanos),
    /// Any other number.
    Number(f64),
}

impl Reading {
    /// As a number in the stored unit: durations below 2^53 ns, which is 104 days, stay exact.
    pub fn as_f64(self) -> f64 {
        match self {
            Self::Nanos(nanos) => nanos.0 as f64,
            Self::Number(number) => number,
        }
    }
}

macro_rules! metrics {
    ($($(#[$doc:meta])* $variant:ident = $number:literal, $column:literal, $section:ident, $key:literal, $unit:ident;)*) => {
        /// A measured column of a request. The number is the one under which its digests are stored: never reuse one.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Metric {
            $($(#[$doc])* $variant = $number,)*
        }

        impl Metric {
            /// All of them, in the order of an answer.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The name of the column, of an objective's phase and of an order in the API.
            pub const fn column(self) -> &'static str {
                match self {
                    $(Self::$variant => $column,)*
                }
            }

            /// The part of an answer in which it stands.
            pub const fn section(self) -> Section {
                match self {
                    $(Self::$variant => Section::$section,)*
                }
            }

            /// Its name inside that part.
            pub const fn key(self) -> &'static str {
                match self {
                    $(Self::$variant => $key,)*
                }
            }

            /// How it is stored and shown.
            pub const fn unit(self) -> Unit {
                match self {
                    $(Self::$variant => Unit::$unit,)*
                }
            }
        }
    };
}

metrics! {
    /// Client duration less the server's total.
    NetworkEnvelope = 0, "network_envelope", Phases, "network_envelope", Nanos;
    /// Time in the gateway.
    Gateway = 1, "gateway", Phases, "gateway", Nanos;
    /// Time in the inference queue.
    GpuQueue = 2, "gpu_queue", Phases, "gpu_queue", Nanos;
    /// Time of inference.
    Generation = 3, "generation", Phases, "generation", Nanos;
    /// Time in an opaque provider.
    Provider = 4, "provider", Phases, "provider", Nanos;
    /// Time between processes of the server side.
    UpstreamEnvelope = 5, "upstream_envelope", Phases, "upstream_envelope", Nanos;
    /// The server's time that nothing explains.
    Unattributed = 6, "unattributed", Phases, "unattributed", Nanos;
    /// The part of generation up to the first token.
    Prefill = 7, "prefill", Phases, "prefill", Nanos;
    /// The part of generation after the first token.
    Decode = 8, "decode", Phases, "decode", Nanos;
    /// Client wall time less the server's total, where the client cannot tell its setup apart.
    WallEnvelope = 9, "wall_envelope", Phases, "wall_envelope", Nanos;
    /// Start of sending to the last byte.
    Duration = 10, "duration", Client, "duration", Nanos;
    /// The same with setup.
    Wall = 11, "wall", Client, "wall", Nanos;
    /// Connection setup.
    Setup = 12, "setup", Client, "setup", Nanos;
    /// Start of sending to the first business event.
    Ttft = 13, "ttft", Client, "ttft", Nanos;
    /// Start of sending to the first text that a person sees.
    TtftVisible = 14, "ttft_visible", Client, "ttft_visible", Nanos;
    /// Start of sending to the first response byte.
    Headers = 15, "headers", Client, "headers", Nanos;
    /// Scheduled to started.
    ClientQueue = 16, "client_queue", Client, "client_queue", Nanos;
    /// The server's total time.
    ServerTotal = 17, "server_total", Server, "total", Nanos;
    /// Entry start to the first token.
    ServerTtft = 18, "server_ttft", Server, "ttft", Nanos;
    /// Client TTFT less the server's.
    TtftEnvelope = 19, "ttft_envelope", Ttft, "envelope", Nanos;
    /// The gateway's part of the server's TTFT.
    TtftGateway = 20, "ttft_gateway", Ttft, "gateway", Nanos;
    /// The inference queue's part of the server's TTFT.
    TtftGpuQueue = 21, "ttft_gpu_queue", Ttft, "gpu_queue", Nanos;
    /// The inference's part of the server's TTFT.
    TtftGeneration = 22, "ttft_generation", Ttft, "generation", Nanos;
    /// The opaque provider's part of the server's TTFT.
    TtftProvider = 23, "ttft_provider", Ttft, "provider", Nanos;
    /// The part of the server's TTFT between its processes.
    TtftUpstreamEnvelope = 24, "ttft_upstream_envelope", Ttft, "upstream_envelope", Nanos;
    /// The part of the server's TTFT that nothing explains.
    TtftUnattributed = 25, "ttft_unattributed", Ttft, "unattributed", Nanos;
    /// Tokens over the time from request to last event.
    RateE2e = 26, "rate_e2e", Rates, "rate_e2e", TokensPerSecond;
    /// Tokens after the first over the time from first to last event.
    RateStream = 27, "rate_stream", Rates, "rate_stream", TokensPerSecond;
    /// Tokens that came after the first event over the same time.
    RateAfterFirst = 28, "rate_after_first", Rates, "rate_after_first", TokensPerSecond;
    /// Time from first to last event, a token after the first.
    Tpot = 29, "tpot_ms", Rates, "tpot_ms", Millis;
    /// Time of generation, a token.
    GenerationPerOutputToken = 30, "generation_ms_per_output_token", Rates, "generation_ms_per_output_token", Millis;
    /// A request's median gap between business events.
    P50Gap = 31, "p50_gap", Stream, "p50_gap", Nanos;
    /// A request's 0.95-quantile of the gaps.
    P95Gap = 32, "p95_gap", Stream, "p95_gap", Nanos;
    /// A request's 0.99-quantile of the gaps.
    P99Gap = 33, "p99_gap", Stream, "p99_gap", Nanos;
    /// A request's longest gap.
    MaxGap = 34, "max_gap", Stream, "max_gap", Nanos;
    /// A request's gaps over one second by all its gaps.
    StallRate = 35, "stall_rate", Stream, "stall_rate", Share;
    /// A request's business events that came together with another, by all of them.
    BatchedShare = 36, "batched_share", Stream, "batched_share", Share;
    /// First response byte to the first business event.
    HeadersToFirstToken = 37, "headers_to_first_token", Stream, "headers_to_first_token", Nanos;
    /// The part of the server's total that nothing explains.
    UnattributedShare = 38, "unattributed_share", Server, "unattributed_share", Share;
}

impl Metric {
    /// The name of the field in which its value stands, with the unit: `gpu_queue_ms`, `rate_stream`.
    pub fn field(self) -> String {
        match self.unit() {
            Unit::Nanos => format!("{}_ms", self.column()),
            Unit::Millis | Unit::TokensPerSecond | Unit::Share => self.column().to_owned(),
        }
    }

    /// From the name of its column.
    pub fn from_column(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|metric| metric.column() == name)
    }

    /// From the stored number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.iter().copied().find(|metric| *metric as u8 == number)
    }

    /// Whether the client alone can tell it, so that a request whose spans never came has it too.
    pub fn client_tells(self) -> bool {
        matches!(self.section(), Section::Client | Section::Stream)
            || (self.section() == Section::Rates && self != Self::GenerationPerOutputToken)
    }

    /// Whether a request in this state counts in its distribution. Requests without a client record count nowhere:
    /// the denominator of every coverage is client records.
    pub fn counts_in(self, state: State) -> bool {
        match state {
            State::Matched => true,
            State::ClientOnly => self.client_tells(),
            State::Pending | State::Excluded | State::ServerOnly => false,
        }
    }

    /// Its value, where it is known.
    pub fn of(self, request: &Request) -> Option<Reading> {
        let reading = match self.section() {
            Section::Phases => self.of_phases(request).map(Reading::Nanos),
            Section::Client => request.client.as_ref().and_then(|side| self.of_client(side)).map(Reading::Nanos),
            Section::Server => self.of_server(request),
            Section::Ttft => request.ttft.as_ref().and_then(|split| self.of_ttft(split)).map(Reading::Nanos),
            Section::Stream => self.of_stream(request),
            Section::Rates => self.of_rates(&request.rates).map(Reading::Number),
        };
        reading.filter(|value| value.as_f64().is_finite())
    }

    fn of_phases(self, request: &Request) -> Option<Nanos> {
        match self {
            Self::NetworkEnvelope => request.network_envelope,
            Self::WallEnvelope => request.wall_envelope,
            _ => request.phases.as_ref().and_then(|phases| self.of_server_phases(phases)),
        }
    }

    fn of_server_phases(self, phases: &ServerPhases) -> Option<Nanos> {
        match self {
            Self::Gateway | Self::TtftGateway => phases.gateway,
            Self::GpuQueue | Self::TtftGpuQueue => phases.gpu_queue,
            Self::Generation | Self::TtftGeneration => phases.generation,
            Self::Provider | Self::TtftProvider => Some(phases.provider),
            Self::UpstreamEnvelope | Self::TtftUpstreamEnvelope => Some(phases.upstream_envelope),
            Self::Unattributed | Self::TtftUnattributed => Some(phases.unattributed),
            Self::Prefill => phases.prefill,
            Self::Decode => phases.decode,
            _ => None,
        }
    }

    fn of_client(self, side: &ClientSide) -> Option<Nanos> {
        match self {
            Self::Duration => side.duration,
            Self::Wall => side.wall,
            Self::Setup => side.setup,
            Self::Ttft => side.ttft,
            Self::TtftVisible => side.ttft_visible,
            Self::Headers => side.headers,
            Self::ClientQueue => side.client_queue,
            _ => None,
        }
    }

    fn of_server(self, request: &Request) -> Option<Reading> {
        let side = request.server.as_ref()?;
        match self {
            Self::ServerTotal => Some(Reading::Nanos(side.total)),
            Self::ServerTtft => side.ttft.map(Reading::Nanos),
            Self::UnattributedShare => {
                let unattributed = request.phases.as_ref().filter(|_| side.total > Nanos::ZERO)?.unattributed;
                Some(Reading::Number(unattributed.0 as f64 / side.total.0 as f64))
            }
            _ => None,
        }
    }

    fn of_ttft(self, split: &TtftPhases) -> Option<Nanos> {
        match self {
            Self::TtftEnvelope => Some(split.envelope),
            _ => self.of_server_phases(&split.server),
        }
    }

    fn of_stream(self, request: &Request) -> Option<Reading> {
        if self == Self::HeadersToFirstToken {
            return request.client?.headers_to_first_token().map(Reading::Nanos);
        }
        let stream = request.stream.as_ref()?;
        match self {
            Self::P50Gap => stream.p50_gap.map(Reading::Nanos),
            Self::P95Gap => stream.p95_gap.map(Reading::Nanos),
            Self::P99Gap => stream.p99_gap.map(Reading::Nanos),
            Self::MaxGap => stream.max_gap.map(Reading::Nanos),
            Self::StallRate => stream.stall_rate().map(Reading::Number),
            Self::BatchedShare => stream.batched_share().map(Reading::Number),
            _ => None,
        }
    }

    fn of_rates(self, rates: &Rates) -> Option<f64> {
        match self {
            Self::RateE2e => rates.rate_e2e,
            Self::RateStream => rates.rate_stream,
            Self::RateAfterFirst => rates.rate_after_first,
            Self::Tpot => rates.tpot_ms,
            Self::GenerationPerOutputToken => rates.generation_ms_per_output_token,
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::Phase;

    #[test]
    fn numbers_and_columns_are_unique_and_lead_back() {
        let numbers: HashSet<u8> = Metric::ALL.iter().map(|metric| *metric as u8).collect();
        let columns: HashSet<&str> = Metric::ALL.iter().map(|metric| metric.column()).collect();
        assert_eq!(numbers.len(), Metric::ALL.len());
        assert_eq!(columns.len(), Metric::ALL.len());
        for (position, metric) in Metric::ALL.iter().enumerate() {
            assert_eq!(*metric as usize, position, "readings are kept by number");
            assert_eq!(Metric::from_number(*metric as u8), Some(*metric));
            assert_eq!(Metric::from_column(metric.column()), Some(*metric));
        }
    }

    #[test]
    fn every_phase_of_the_model_comes_first_and_in_its_order() {
        let names: Vec<&str> = Phase::ALL.iter().map(|phase| phase.name()).collect();
        let columns: Vec<&str> = Metric::ALL.iter().take(names.len()).map(|metric| metric.column()).collect();
        assert_eq!(columns, names);
    }

    #[test]
    fn only_matched_requests_count_where_the_server_must_tell() {
        assert!(Metric::GpuQueue.counts_in(State::Matched));
        assert!(!Metric::GpuQueue.counts_in(State::ClientOnly));
        assert!(!Metric::GenerationPerOutputToken.counts_in(State::ClientOnly));
        assert!(Metric::Duration.counts_in(State::ClientOnly));
        assert!(Metric::MaxGap.counts_in(State::ClientOnly));
        assert!(!Metric::Duration.counts_in(State::Excluded));
    }
}
