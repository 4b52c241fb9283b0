//! `tracejoin slo rules PATH…`.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;

use super::files;
use crate::exposition::rules::rule_file;

/// Left with where the files cannot be used.
const UNUSABLE: u8 = 2;

/// Writes rules for Prometheus.
#[derive(Debug, clap::Args)]
pub struct RulesArgs {
    /// Files of objectives, or folders of them (*.yaml, *.yml, *.json)
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Write here instead of to the standard output
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Writes recording and alerting rules; leaves with 2, and writes nothing, where an objective cannot be used.
pub fn run(args: &RulesArgs) -> anyhow::Result<ExitCode> {
    let objectives = match files::read(&args.paths) {
        Ok(objectives) => objectives,
        Err(error) => {
            eprintln!("{error}");
            return Ok(ExitCode::from(UNUSABLE));
        }
    };
    let rules = rule_file(&objectives).context("the rules cannot be written as YAML")?;
    match &args.output {
        Some(file) => std::fs::write(file, rules).with_context(|| format!("cannot write {}", file.display()))?,
        None => std::io::stdout().lock().write_all(rules.as_bytes())?,
    }
    Ok(ExitCode::SUCCESS)
}
