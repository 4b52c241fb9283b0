use std::path::PathBuf;
use std::time::Duration;

/// Where a server keeps data, and for how long.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Storage")]
pub struct StorageSettings {
    /// PostgreSQL to use, as postgres://user:password@host/name; without it a private one is started
    #[arg(long, env = "DATABASE_URL", value_name = "URL", hide_env_values = true)]
    pub database_url: Option<String>,

    /// Folder of the private PostgreSQL [default: ./tracejoin-data; /var/lib/tracejoin where root's own folder cannot be
    /// reached by the unprivileged account that PostgreSQL runs under]
    #[arg(long, env = "TRACEJOIN_DATA_DIR", value_name = "DIR")]
    pub data_dir: Option<PathBuf>,

    /// Folder that holds initdb and postgres [default: PATH, then the newest that the distribution installed]
    #[arg(long, env = "TRACEJOIN_POSTGRES_BIN", value_name = "DIR")]
    pub postgres_bin: Option<PathBuf>,

    /// Use a PostgreSQL whose fsync is off, though it may lose acknowledged data in a crash
    #[arg(long, env = "TRACEJOIN_ALLOW_FSYNC_OFF")]
    pub allow_fsync_off: bool,

    /// How long arrivals and joined requests are kept
    #[arg(long, env = "TRACEJOIN_RETENTION", value_name = "DURATION", default_value = "7d",
          value_parser = humantime::parse_duration)]
    pub retention: Duration,

    /// How long rollups (digests and counts per minute) are kept
    #[arg(long, env = "TRACEJOIN_ROLLUP_RETENTION", value_name = "DURATION", default_value = "90d",
          value_parser = humantime::parse_duration)]
    pub rollup_retention: Duration,
}
