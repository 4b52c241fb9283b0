//! `tracejoin gate`: whether a test run may pass.

mod explained;
mod junit;
mod markdown;
pub(super) mod table;
#[cfg(test)]
mod tests;

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use serde_json::Value;
use tokio::time::Instant;

use super::api::{Api, ServerArgs};
use super::slo::files;
use crate::serve::gate::UNSETTLED;
use crate::serve::gate::view::{BaselineBody, GateAnswer, GateBody};
use slo::document;
use slo::gate::GateOutcome;

/// How often it is asked whether all has settled.
const POLL: Duration = Duration::from_secs(1);

/// The status where a question could not be put or answered: never that of a broken budget.
const UNUSABLE: u8 = 2;

/// Judges objectives over a test run or a window, for CI: leaves with 0 where all held, 1 where a budget is broken, 2 where
/// it could not be asked, 3 where nobody can tell.
#[derive(Debug, clap::Args)]
pub struct GateArgs {
    /// The run, as its client records name it
    #[arg(required_unless_present = "from")]
    run: Option<String>,
    /// Files or folders of objectives; repeat it for more
    #[arg(long, value_name = "PATH", required = true, num_args = 1..)]
    slo: Vec<PathBuf>,
    /// Start of the window: RFC 3339, or relative to now such as -15m; of a run it is that of its first request
    #[arg(long, allow_hyphen_values = true)]
    from: Option<String>,
    /// End of the window, not included
    #[arg(long, allow_hyphen_values = true, requires = "from")]
    to: Option<String>,
    /// Say which phase the time went to, and which one moved most
    #[arg(long)]
    explain: bool,
    /// The run to compare with; without it a window is compared with the one before it
    #[arg(long, value_name = "RUN", requires = "explain")]
    baseline: Option<String>,
    /// How long to wait until all of it has been joined
    #[arg(long, default_value = "90s", value_parser = humantime::parse_duration)]
    wait: Duration,
    /// Write a JUnit report, one test case an objective
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Append a summary in Markdown, such as to $GITHUB_STEP_SUMMARY
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Print the server's JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: ServerArgs,
}

/// Asks the gate. What keeps it from being asked is told here, since any other status than 2 would be taken for an answer.
pub async fn run(args: GateArgs) -> anyhow::Result<ExitCode> {
    match judged(&args).await {
        Ok(outcome) => Ok(ExitCode::from(status(outcome))),
        Err(error) => {
            eprintln!("tracejoin: {error:#}");
            Ok(ExitCode::from(UNUSABLE))
        }
    }
}

const fn status(outcome: GateOutcome) -> u8 {
    match outcome {
        GateOutcome::Pass => 0,
        GateOutcome::Broken => 1,
        GateOutcome::Inconclusive => 3,
    }
}

async fn judged(args: &GateArgs) -> anyhow::Result<GateOutcome> {
    let body = args.body()?;
    let reports = Reports::open(args)?;
    let answer = ask(&Api::new(&args.server)?, body, args.wait).await?;
    let outcome = GateOutcome::from_name(&answer.outcome)
        .with_context(|| format!("the server answered {:?}; is it of the same version?", answer.outcome))?;
    reports.write(&answer)?;
    match show(&answer, args.json) {
        // Nobody reads the output any more; the outcome is the same.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(outcome),
        shown => shown.map(|()| outcome).context("cannot print the verdicts"),
    }
}

impl GateArgs {
    fn body(&self) -> anyhow::Result<GateBody> {
        let objectives = files::read(&self.slo)?;
        Ok(GateBody {
            objectives: Value::Array(objectives.iter().map(document::to_json).collect()),
            run: self.run.clone(),
            from: self.from.clone(),
            to: self.to.clone(),
            explain: self.explain,
            baseline: self.baseline.clone().map(|run| BaselineBody { run: Some(run), ..BaselineBody::default() }),
            when_settled: true,
            received_before: None,
        })
    }
}

/// Asks until all has settled, or as things stand when the time is over.
async fn ask(api: &Api, mut body: GateBody, patience: Duration) -> anyhow::Result<GateAnswer> {
    let url = api.url(&["api", "v1", "gate"])?;
    let deadline = Instant::now() + patience;
    loop {
        body.when_settled = Instant::now() < deadline;
        let answer: GateAnswer = api.post_json(url.clone(), &body).await?;
        if answer.outcome != UNSETTLED {
            return Ok(answer);
        }
        // Times relative to now would move on while we wait.
        body.from = body.from.and(answer.from);
        body.to = body.to.and(answer.to);
        body.received_before = Some(answer.received_before);
        tokio::time::sleep(POLL.min(deadline.saturating_duration_since(Instant::now()))).await;
    }
}

/// The reports that were asked for. Opened before anything is waited for, so that a bad path is told at once.
struct Reports {
    junit: Option<File>,
    markdown: Option<File>,
}

impl Reports {
    fn open(args: &GateArgs) -> anyhow::Result<Self> {
        let open = |path: &Path, options: &mut OpenOptions| {
            options.create(true).open(path).with_context(|| format!("cannot write {}", path.display()))
        };
        let replaced = |path: &PathBuf| open(path, OpenOptions::new().write(true).truncate(true));
        let appended = |path: &PathBuf| open(path, OpenOptions::new().append(true));
        Ok(Self {
            junit: args.junit.as_ref().map(replaced).transpose()?,
            markdown: args.markdown.as_ref().map(appended).transpose()?,
        })
    }

    fn write(self, answer: &GateAnswer) -> anyhow::Result<()> {
        if let Some(mut file) = self.junit {
            file.write_all(junit::report(answer)?.as_bytes()).context("cannot write the JUnit report")?;
        }
        if let Some(mut file) = self.markdown {
            file.write_all(markdown::summary(answer).as_bytes()).context("cannot write the summary")?;
        }
        Ok(())
    }
}

/// The outcome comes last, where people look first; beside JSON it goes to the other stream.
fn show(answer: &GateAnswer, json: bool) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    if json {
        writeln!(out, "{}", serde_json::to_string(answer)?)?;
        eprintln!("{}", table::last_line(answer));
        return Ok(());
    }
    write!(out, "{}{}", table::report(answer), explained::text(&answer.explanations))?;
    writeln!(out, "{}", table::last_line(answer))?;
    out.flush()
}
