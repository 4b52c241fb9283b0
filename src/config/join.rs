use std::time::Duration;

/// When a server joins.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Joining")]
pub struct JoinSettings {
    /// Quiet time after the last arrival of a trace before it is joined
    #[arg(long, env = "TRACEJOIN_SETTLE", value_name = "DURATION", default_value = "15s",
          value_parser = humantime::parse_duration)]
    pub settle: Duration,

    /// Time after the first arrival at which a lone side is an orphan; a later arrival still repairs it
    #[arg(long, env = "TRACEJOIN_JOIN_DEADLINE", value_name = "DURATION", default_value = "60s",
          value_parser = humantime::parse_duration)]
    pub join_deadline: Duration,

    /// Time without a line after which an event log without its end marker is closed as truncated
    #[arg(long, env = "TRACEJOIN_STREAM_QUIET", value_name = "DURATION", default_value = "30s",
          value_parser = humantime::parse_duration)]
    pub stream_quiet: Duration,

    /// Pause of a stream from which it is flagged suspected_hang; it stays open until --stream-quiet
    #[arg(long, env = "TRACEJOIN_STREAM_HANG", value_name = "DURATION", default_value = "10s",
          value_parser = humantime::parse_duration)]
    pub stream_hang: Duration,
}
