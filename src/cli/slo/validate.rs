//! `tracejoin slo validate PATH…`.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::{Value, json};

use super::files::{self, FilesError};
use slo::{Objective, document};

/// Left with where the files cannot be used.
const UNUSABLE: u8 = 2;

/// Checks files of objectives.
#[derive(Debug, clap::Args)]
pub struct ValidateArgs {
    /// Files of objectives, or folders of them (*.yaml, *.yml, *.json)
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Prints each mistake as `file:line:column: field: reason`; leaves with 0 where there is none, else with 2.
pub fn run(args: &ValidateArgs) -> anyhow::Result<ExitCode> {
    let read = files::read(&args.paths);
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{}", answer(&read))?;
    } else {
        match &read {
            Ok(objectives) => write!(out, "{}", report(objectives))?,
            Err(error) => writeln!(out, "{error}")?,
        }
    }
    Ok(if read.is_ok() { ExitCode::SUCCESS } else { ExitCode::from(UNUSABLE) })
}

fn report(objectives: &[Objective]) -> String {
    let mut report = match objectives.len() {
        1 => "1 objective can be applied\n".to_owned(),
        n => format!("{n} objectives can be applied\n"),
    };
    for note in document::notes(objectives) {
        report.push_str(&format!("note: {note}\n"));
    }
    report
}

fn answer(read: &Result<Vec<Objective>, FilesError>) -> Value {
    match read {
        Ok(objectives) => {
            let documents: Vec<Value> = objectives.iter().map(document::to_json).collect();
            json!({"valid": true, "objectives": documents, "notes": document::notes(objectives), "errors": []})
        }
        Err(FilesError::Wrong(errors)) => json!({"valid": false, "objectives": [], "notes": [], "errors": errors}),
        Err(error) => {
            json!({"valid": false, "objectives": [], "notes": [], "errors": [{"reason": error.to_string()}]})
        }
    }
}
