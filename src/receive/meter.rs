//! What the listeners count about themselves, and the remarks they make only once.

use std::sync::atomic::{AtomicBool, Ordering};

use metrics::counter;

use super::intake::Refusal;

/// The endpoint through which a request came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// OTLP over gRPC.
    OtlpGrpc,
    /// OTLP over HTTP.
    OtlpHttp,
    /// Client records over HTTP.
    Records,
    /// Client records over gRPC.
    RecordsGrpc,
    /// Event logs over HTTP.
    Events,
}

impl Transport {
    const fn label(self) -> &'static str {
        match self {
            Self::OtlpGrpc => "otlp_grpc",
            Self::OtlpHttp => "otlp_http",
            Self::Records => "records",
            Self::RecordsGrpc => "records_grpc",
            Self::Events => "events",
        }
    }

    /// Counts an acknowledged request: its bytes after decompression, and of its members those taken and those refused.
    pub fn accepted(self, bytes: usize, taken: u64, rejected: u64) {
        counter!("tracejoin_receive_requests_total", "transport" => self.label()).increment(1);
        counter!("tracejoin_receive_bytes_total", "transport" => self.label()).increment(bytes as u64);
        counter!("tracejoin_receive_accepted_total", "transport" => self.label()).increment(taken);
        counter!("tracejoin_receive_rejected_total", "transport" => self.label()).increment(rejected);
    }

    /// Counts a request of which nothing was taken.
    pub fn refused(self, reason: &'static str) {
        counter!("tracejoin_receive_refused_total", "transport" => self.label(), "reason" => reason).increment(1);
    }
}

impl Refusal {
    /// The refusal's name in the listeners' counters.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Overloaded { .. } => "overloaded",
            Self::Unavailable { .. } => "unavailable",
            Self::Invalid { .. } => "invalid",
        }
    }
}

/// A remark that is logged the first time only: a misconfigured exporter repeats its mistake every few seconds.
#[derive(Debug, Default)]
pub struct SaidOnce(AtomicBool);

impl SaidOnce {
    /// A remark not made yet.
    pub const fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// True for the first caller only.
    pub fn is_first(&self) -> bool {
        !self.0.swap(true, Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::prometheus_text;
    use prometheus_client::registry::Registry;

    use super::*;
    use crate::telemetry::HealthMetrics;

    #[test]
    fn what_is_counted_is_told_by_transport_and_reason() {
        let recorder = HealthMetrics::default();
        metrics::with_local_recorder(&recorder, || {
            Transport::OtlpGrpc.accepted(1000, 5, 2);
            Transport::OtlpGrpc.accepted(24, 1, 0);
            Transport::Records.refused("too_large");
        });
        let mut registry = Registry::with_prefix("tracejoin");
        registry.register_collector(Box::new(recorder));
        let mut text = String::new();
        prometheus_text::encode(&mut text, &registry).expect("written");
        for line in [
            r#"tracejoin_receive_requests_total{transport="otlp_grpc"} 2"#,
            r#"tracejoin_receive_bytes_total{transport="otlp_grpc"} 1024"#,
            r#"tracejoin_receive_accepted_total{transport="otlp_grpc"} 6"#,
            r#"tracejoin_receive_rejected_total{transport="otlp_grpc"} 2"#,
            r#"tracejoin_receive_refused_total{transport="records",reason="too_large"} 1"#,
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
    }
}
