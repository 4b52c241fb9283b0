//! The own health of the process: logs and metrics.

mod help;
mod recorder;

use std::io::IsTerminal;
use std::sync::LazyLock;

use metrics::SetRecorderError;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::util::SubscriberInitExt;

pub use recorder::HealthMetrics;

use crate::config::LogFormat;

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

/// Installs the recorder of metrics, once a process, and returns it.
///
/// # Errors
/// Where another recorder is installed.
pub fn init_metrics() -> Result<HealthMetrics, &'static SetRecorderError<HealthMetrics>> {
    static INSTALLED: LazyLock<Result<HealthMetrics, SetRecorderError<HealthMetrics>>> = LazyLock::new(|| {
        let health = HealthMetrics::default();
        metrics::set_global_recorder(health.clone()).map(|()| health)
    });
    INSTALLED.as_ref().map(HealthMetrics::clone)
}
