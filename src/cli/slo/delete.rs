//! `tracejoin slo delete ID`.

use std::io::Write;
use std::process::ExitCode;

use super::apply::report;
use crate::cli::api::{Api, ServerArgs};
use crate::serve::slos::ChangedAnswer;

/// An objective that is to be no more.
#[derive(Debug, clap::Args)]
pub struct DeleteArgs {
    /// The objective's name; a budget goes with all of its parts
    id: String,
    /// Print the server's JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: ServerArgs,
}

/// Deletes an objective. Its versions stay to be read.
pub async fn run(args: DeleteArgs) -> anyhow::Result<ExitCode> {
    let api = Api::new(&args.server)?;
    let changed: ChangedAnswer = api.delete(api.url(&["api", "v1", "slos", &args.id])?).await?;
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{}", serde_json::to_string(&changed)?)?;
    } else {
        write!(out, "{}", report(&[changed]))?;
    }
    Ok(ExitCode::SUCCESS)
}
