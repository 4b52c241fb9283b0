//! The own health of the process: logs and metrics.

mod help;

use std::io::IsTerminal;
use std::sync::LazyLock;

use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::util::SubscriberInitExt;

use crate::config::LogFormat;

/// Buckets of every `…_seconds` histogram: from a fast commit to the longest wait of a sender.
const SECONDS: &[f64] = &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0];

/// Sends logs to stderr. `RUST_LOG` says what is logged, `otherwise` does where that is not set. A second call changes
/// nothing.
pub fn init_logs(format: LogFormat, otherwise: &str) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(otherwise));
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let set = match format {
        LogFormat::Text => lines.with_ansi(std::io::stderr().is_terminal()).finish().try_init(),
        LogFormat::Json => lines.json().finish().try_init(),
    };
    if let Err(error) = set {
        tracing::debug!(%error, "logs were set up before");
    }
}

/// Installs the recorder of metrics, once a process, and returns what renders them.
///
/// # Errors
/// Where another recorder is installed.
pub fn init_metrics() -> Result<PrometheusHandle, &'static BuildError> {
    static HANDLE: LazyLock<Result<PrometheusHandle, BuildError>> = LazyLock::new(|| {
        let builder = PrometheusBuilder::new().set_buckets_for_metric(Matcher::Suffix("_seconds".into()), SECONDS)?;
        builder.install_recorder().inspect(|_| help::describe())
    });
    HANDLE.as_ref().map(PrometheusHandle::clone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_counted_in_buckets() {
        init_metrics().expect("the only recorder");
        metrics::histogram!("tracejoin_test_seconds").record(0.003);
        let text = init_metrics().expect("the same recorder").render();
        assert!(text.contains("tracejoin_test_seconds_bucket{le=\"0.005\"} 1"), "{text}");
    }
}
