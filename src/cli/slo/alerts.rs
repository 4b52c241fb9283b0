//! `tracejoin slo alerts`.

use std::io::Write;
use std::process::ExitCode;

use comfy_table::Table;
use comfy_table::presets::UTF8_FULL_CONDENSED;

use crate::cli::api::{Api, ServerArgs};
use crate::serve::alerts::{AlertAnswer, AlertsAnswer};

/// Which alerts of which server.
#[derive(Debug, clap::Args)]
pub struct AlertsArgs {
    /// Which ones: those that fire, or those that were resolved
    #[arg(long, value_name = "STATE", value_parser = ["firing", "resolved"])]
    state: Option<String>,
    /// Print the server's JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: ServerArgs,
}

/// Lists alerts.
pub async fn run(args: AlertsArgs) -> anyhow::Result<ExitCode> {
    let api = Api::new(&args.server)?;
    let mut url = api.url(&["api", "v1", "alerts"])?;
    if let Some(state) = &args.state {
        url.query_pairs_mut().append_pair("state", state);
    }
    let known: AlertsAnswer = api.get_json(url).await?;
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{}", serde_json::to_string(&known)?)?;
    } else {
        write!(out, "{}", report(&known.alerts))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A row for each alert.
fn report(alerts: &[AlertAnswer]) -> String {
    if alerts.is_empty() {
        return "no alerts\n".to_owned();
    }
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED).set_header(["state", "alert", "objective", "severity", "since", "what"]);
    for alert in alerts {
        let label = |name: &str| alert.labels.get(name).map_or("", String::as_str);
        let what = alert.annotations.get("summary").map_or("", String::as_str);
        let since = alert.ends_at.as_deref().unwrap_or(&alert.starts_at);
        table.add_row([&alert.state, label("alertname"), &alert.slo, label("severity"), since, what]);
    }
    format!("{table}\n")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_row_says_what_is_wrong_since_when() {
        let texts = |all: &[(&str, &str)]| -> BTreeMap<String, String> {
            all.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
        };
        let mut alert = AlertAnswer {
            fingerprint: "7".to_owned(),
            state: "firing".to_owned(),
            slo: "queue-p95".to_owned(),
            labels: texts(&[("alertname", "TracejoinObjectiveBroken"), ("severity", "page")]),
            annotations: texts(&[("summary", "gpu_queue broke its objective")]),
            starts_at: "2026-01-02T12:00:00Z".to_owned(),
            ends_at: None,
            generator_url: None,
        };
        let told = report(&[alert.clone()]);
        for text in ["firing", "TracejoinObjectiveBroken", "page", "12:00:00Z", "gpu_queue broke its objective"] {
            assert!(told.contains(text), "{text} in {told}");
        }
        (alert.state, alert.ends_at) = ("resolved".to_owned(), Some("2026-01-02T12:30:00Z".to_owned()));
        assert!(report(&[alert]).contains("12:30:00Z"));
        assert_eq!(report(&[]), "no alerts\n");
    }
}
