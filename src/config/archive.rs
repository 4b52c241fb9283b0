use std::path::PathBuf;
use std::time::Duration;

use normalise::rules::Key;

/// Where committed event lines are written down, and for how long.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Archive of event lines")]
pub struct ArchiveSettings {
    /// Folder to which committed event lines are written, a folder a day; without it they are not
    #[arg(long, env = "TRACEJOIN_ARCHIVE_DIR", value_name = "DIR")]
    pub archive_dir: Option<PathBuf>,

    /// Members of a line's extra that are archived, separated by commas; none that may hold content or a credential
    #[arg(long, env = "TRACEJOIN_ARCHIVE_EXTRA", value_name = "KEYS", value_delimiter = ',', num_args = 1,
          action = clap::ArgAction::Set, value_parser = |text: &str| Key::try_from(text.trim().to_owned()))]
    pub archive_extra: Vec<Key>,

    /// How long days of the archive are kept
    #[arg(long, env = "TRACEJOIN_ARCHIVE_RETENTION", value_name = "DURATION", default_value = "90d",
          value_parser = humantime::parse_duration)]
    pub archive_retention: Duration,
}
