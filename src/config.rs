//! Settings: flag > environment > file > default.
//!
//! Each setting is defined once, as a flag with its environment variable and its default. A configuration file is a flat
//! TOML table whose keys are the flags' names; [`file`] turns it into flags that stand before those of the command line.
//! Its tables `[[dialects]]` are rules for reading spans, which [`dialects`] reads.

mod archive;
pub mod dialects;
pub mod file;
mod ingest;
mod join;
mod listen;
mod log;
mod slo;
mod storage;

pub use archive::ArchiveSettings;
pub use ingest::IngestSettings;
pub use join::JoinSettings;
pub use listen::ListenSettings;
pub use log::{LogFormat, LogSettings};
pub use slo::{Hidden, SloSettings};
pub use storage::StorageSettings;

/// All settings of a server.
#[derive(Debug, Clone, clap::Args)]
pub struct Settings {
    /// Where it listens.
    #[command(flatten)]
    pub listen: ListenSettings,
    /// Where it keeps data, and for how long.
    #[command(flatten)]
    pub storage: StorageSettings,
    /// Where it writes event lines down.
    #[command(flatten)]
    pub archive: ArchiveSettings,
    /// What it takes in at most.
    #[command(flatten)]
    pub ingest: IngestSettings,
    /// When it joins.
    #[command(flatten)]
    pub join: JoinSettings,
    /// When objectives are judged, and who is told.
    #[command(flatten)]
    pub slo: SloSettings,
    /// How it logs.
    #[command(flatten)]
    pub log: LogSettings,
}
