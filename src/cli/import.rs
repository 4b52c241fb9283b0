//! `tracejoin import FORMAT FILE`.

mod aiperf;
mod clock;
mod endpoint;
mod fault;
mod foreign;
mod guidellm;
mod input;
mod k6;
mod locust;
pub(super) mod otlp;
mod records;
mod sink;
mod tally;
pub(super) mod upload;
mod vllm_bench;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use url::Url;

use self::input::Input;
use self::sink::Sink;
pub use self::tally::Tally;
use super::api::{Api, ServerArgs};
use super::dimension;
use super::record_line::RecordLine;
use model::Dimension;

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
    /// Streaming event logs: one event a line, or an array of them
    Events(RecordsArgs),
    /// k6's `--out json`, or records that its script wrote to the console
    K6(ToolArgs<k6::Options>),
    /// AIPerf: its profile_export.jsonl
    Aiperf(ToolArgs<aiperf::Options>),
    /// vLLM: the result of `vllm bench serve --save-result --save-detailed`
    VllmBench(ToolArgs<vllm_bench::Options>),
    /// GuideLLM: its report, JSON or YAML
    Guidellm(ToolArgs<guidellm::Options>),
    /// Locust: a log of its request event as CSV, with a column of ids
    Locust(ToolArgs<locust::Options>),
    /// OTLP traces: JSON lines as the Collector's file exporter writes them, or protobuf
    Otlp(OtlpArgs),
}

/// What every format has.
#[derive(Debug, Clone, clap::Args)]
struct FileArgs {
    /// The file, perhaps compressed with gzip or zstd; - is standard input
    file: PathBuf,
    /// How long to try again while the server is busy or unavailable
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
    /// A label such as model=m-7b, where the file tells none; repeat it for more
    #[arg(long = "dimension", value_name = "KEY=VALUE", value_parser = dimension::parse)]
    dimensions: Vec<(Dimension, String)>,
}

impl LabelArgs {
    /// Fills in what a record does not tell.
    fn fill(&self, line: &mut RecordLine) {
        line.run = line.run.take().or_else(|| self.run.clone());
        line.scenario = line.scenario.take().or_else(|| self.scenario.clone());
        for (dimension, value) in &self.dimensions {
            line.dimensions.entry(*dimension).or_insert_with(|| value.clone());
        }
    }
}

/// Sends what the server takes as it is.
#[derive(Debug, clap::Args)]
struct RecordsArgs {
    #[command(flatten)]
    file: FileArgs,
    #[command(flatten)]
    server: ServerArgs,
}

/// Sends the requests of a load tool's run.
#[derive(Debug, clap::Args)]
struct ToolArgs<Options: clap::Args> {
    #[command(flatten)]
    file: FileArgs,
    #[command(flatten)]
    options: Options,
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
            (endpoint::import(&args.file, url, records::read).await?, args.file.json)
        }
        Format::Events(args) => {
            let url = Api::new(&args.server)?.url(&["api", "v1", "events"])?;
            (endpoint::import_events(&args.file, url, records::read).await?, args.file.json)
        }
        Format::K6(args) => tool(args, k6::read).await?,
        Format::Aiperf(args) => tool(args, aiperf::read).await?,
        Format::VllmBench(args) => tool(args, vllm_bench::read).await?,
        Format::Guidellm(args) => tool(args, guidellm::read).await?,
        Format::Locust(args) => tool(args, locust::read).await?,
        Format::Otlp(args) => {
            let url = Api::at(args.otlp)?.url(&["v1", "traces"])?;
            (otlp::import(&args.file, url).await?, args.file.json)
        }
    };
    tally.print(json)?;
    Ok(if tally.any_refused() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Sends a file of event lines.
///
/// # Errors
/// Where it cannot be read, or the server stays unavailable.
pub async fn send_events(file: &Path, url: Url, retry_for: Duration) -> anyhow::Result<Tally> {
    let args = FileArgs { file: file.to_owned(), retry_for, json: false };
    endpoint::import_events(&args, url, records::read).await
}

/// Sends a load tool's file; gives whether the counts are wanted as JSON.
async fn tool<Options>(
    args: ToolArgs<Options>,
    read: fn(Input, Options, &mut Sink) -> anyhow::Result<()>,
) -> anyhow::Result<(Tally, bool)>
where
    Options: clap::Args + Send + 'static,
{
    let url = Api::new(&args.server)?.url(&["api", "v1", "records"])?;
    let options = args.options;
    let tally = endpoint::import(&args.file, url, move |input, sink| read(input, options, sink)).await?;
    Ok((tally, args.file.json))
}
