//! `tracejoin import FORMAT FILE`.

mod door;
mod input;
mod k6;
mod otlp;
mod records;
mod sink;
mod tally;
pub(super) mod upload;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use url::Url;

use super::api::{Api, ServerArgs};
use super::record_line::RecordLine;

/// Sends a file to a server.
#[derive(Debug, clap::Args)]
pub struct ImportArgs {
    #[command(subcommand)]
    format: Format,
}

/// What a file holds.
#[derive(Debug, clap::Subcommand)]
enum Format {
    /// Client records: one JSON object a line, an array of them, or one object
    Records(RecordsArgs),
    /// k6's `--out json`, or records that its script wrote to the console
    K6(K6Args),
    /// OTLP traces: JSON lines as the Collector's file exporter writes them, or protobuf
    Otlp(OtlpArgs),
}

/// What every format has.
#[derive(Debug, Clone, clap::Args)]
struct FileArgs {
    /// The file, perhaps compressed with gzip or zstd; - is standard input
    file: PathBuf,
    /// How long to try again while the server is busy or away
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = humantime::parse_duration)]
    retry_for: Duration,
    /// Print the counts as one line of JSON
    #[arg(long)]
    json: bool,
}

/// What a load tool's file may leave untold.
#[derive(Debug, Clone, Default, clap::Args)]
struct LabelArgs {
    /// The test run, where the file names none
    #[arg(long, value_name = "NAME")]
    run: Option<String>,
    /// The load scenario, where the file names none
    #[arg(long, value_name = "NAME")]
    scenario: Option<String>,
}

impl LabelArgs {
    /// Fills in what a record does not tell.
    fn fill(&self, line: &mut RecordLine) {
        line.run = line.run.take().or_else(|| self.run.clone());
        line.scenario = line.scenario.take().or_else(|| self.scenario.clone());
    }
}

/// Sends client records.
#[derive(Debug, clap::Args)]
struct RecordsArgs {
    #[command(flatten)]
    file: FileArgs,
    #[command(flatten)]
    server: ServerArgs,
}

/// Sends the requests of a k6 run.
#[derive(Debug, clap::Args)]
struct K6Args {
    #[command(flatten)]
    file: FileArgs,
    #[command(flatten)]
    options: k6::Options,
    #[command(flatten)]
    server: ServerArgs,
}

/// Sends spans.
#[derive(Debug, clap::Args)]
struct OtlpArgs {
    #[command(flatten)]
    file: FileArgs,
    /// The server's OTLP/HTTP address
    #[arg(long, env = "TRACEJOIN_OTLP", value_name = "URL", default_value = "http://127.0.0.1:4318")]
    otlp: Url,
}

/// Sends the file and prints what became of it.
pub async fn run(args: ImportArgs) -> anyhow::Result<ExitCode> {
    let (tally, json) = match args.format {
        Format::Records(args) => {
            let url = Api::new(&args.server)?.url(&["api", "v1", "records"])?;
            (door::import(&args.file, url, records::read).await?, args.file.json)
        }
        Format::K6(args) => {
            let url = Api::new(&args.server)?.url(&["api", "v1", "records"])?;
            let read = |input, sink: &mut sink::Sink| k6::read(input, args.options, sink);
            (door::import(&args.file, url, read).await?, args.file.json)
        }
        Format::Otlp(args) => {
            let url = Api::at(args.otlp)?.url(&["v1", "traces"])?;
            (otlp::import(&args.file, url).await?, args.file.json)
        }
    };
    tally.print(json)?;
    Ok(if tally.any_refused() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
