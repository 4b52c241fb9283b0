//! `tracejoin probe URL`: measures a streamed answer as a person waits for it, once or for as long as wanted.

mod args;
mod delivery;
mod figures;
mod header;
mod once;
mod prompt;
mod record;
mod repeat;

use std::process::ExitCode;

use self::args::Plan;
pub use self::args::ProbeArgs;

/// Probes, and leaves with 0 where all went well, 1 where a record could not be delivered, 3 where the one request that
/// was sent did not end well.
pub async fn run(args: ProbeArgs) -> anyhow::Result<ExitCode> {
    let plan = Plan::new(args)?;
    match plan.pace {
        None => once::run(&plan).await,
        Some(pace) => repeat::run(plan, pace).await,
    }
}
