/// How a process logs. `RUST_LOG` says what, such as `info` or `tracejoin=debug`.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Logs")]
pub struct LogSettings {
    /// Form of the log on stderr; RUST_LOG says what is logged
    #[arg(long, env = "TRACEJOIN_LOG_FORMAT", value_name = "FORMAT", default_value = "text")]
    pub log_format: LogFormat,
}

/// A form of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}
