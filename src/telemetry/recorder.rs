//! The recorder behind the `metrics` macros: it keeps what they count in families of the registry that `GET /metrics`
//! reads, so that the process has one registry and one way to write it down.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use metrics::{CounterFn, GaugeFn, HistogramFn, Key, KeyName, Metadata, SharedString, Unit};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

use super::help;

/// What all of our metrics begin with. The registry adds it to what a collector writes.
const PREFIX: &str = "tracejoin_";

/// Buckets of every histogram, in seconds: from a fast commit to the longest wait of a sender.
const SECONDS: [f64; 14] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0];

type LabelSet = Vec<(String, String)>;
type Histograms = Family<LabelSet, Histogram, fn() -> Histogram>;

/// Counts, levels and times of the process itself. Cheap to clone; all clones are one.
#[derive(Debug, Clone, Default)]
pub struct HealthMetrics {
    families: Arc<Mutex<Families>>,
}

/// By the name without prefix, and of a counter without `_total`, which the registry adds.
#[derive(Debug, Default)]
struct Families {
    counters: BTreeMap<String, Family<LabelSet, Counter>>,
    gauges: BTreeMap<String, Family<LabelSet, Gauge<f64, AtomicU64>>>,
    histograms: BTreeMap<String, Histograms>,
}

impl HealthMetrics {
    /// The member of a family that has the key's labels.
    fn member<F: Clone>(&self, name: &str, family: impl FnOnce(&mut Families, String) -> F) -> F {
        let mut families = self.families.lock().unwrap_or_else(PoisonError::into_inner);
        family(&mut families, name.strip_prefix(PREFIX).unwrap_or(name).to_owned())
    }
}

fn label_set(key: &Key) -> LabelSet {
    key.labels().map(|label| (label.key().to_owned(), label.value().to_owned())).collect()
}

/// What a metric means stands in [`help`]: nothing has to be described at run time.
impl metrics::Recorder for HealthMetrics {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> metrics::Counter {
        let name = key.name().strip_suffix("_total").unwrap_or(key.name());
        let family = self.member(name, |families, name| families.counters.entry(name).or_default().clone());
        metrics::Counter::from_arc(Arc::new(Counted(family.get_or_create_owned(&label_set(key)))))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> metrics::Gauge {
        let family = self.member(key.name(), |families, name| families.gauges.entry(name).or_default().clone());
        metrics::Gauge::from_arc(Arc::new(Level(family.get_or_create_owned(&label_set(key)))))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> metrics::Histogram {
        let new = || Histograms::new_with_constructor(|| Histogram::new(SECONDS));
        let family =
            self.member(key.name(), |families, name| families.histograms.entry(name).or_insert_with(new).clone());
        metrics::Histogram::from_arc(Arc::new(Timed(family.get_or_create_owned(&label_set(key)))))
    }
}

struct Counted(Counter);

impl CounterFn for Counted {
    fn increment(&self, value: u64) {
        self.0.inc_by(value);
    }

    fn absolute(&self, value: u64) {
        self.0.inner().fetch_max(value, Ordering::Relaxed);
    }
}

struct Level(Gauge<f64, AtomicU64>);

impl GaugeFn for Level {
    fn increment(&self, value: f64) {
        self.0.inc_by(value);
    }

    fn decrement(&self, value: f64) {
        self.0.dec_by(value);
    }

    fn set(&self, value: f64) {
        self.0.set(value);
    }
}

struct Timed(Histogram);

impl HistogramFn for Timed {
    fn record(&self, value: f64) {
        self.0.observe(value);
    }
}

impl Collector for HealthMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let families = self.families.lock().unwrap_or_else(PoisonError::into_inner);
        for (name, family) in &families.counters {
            write(&mut encoder, name, &format!("{PREFIX}{name}_total"), family)?;
        }
        for (name, family) in &families.gauges {
            write(&mut encoder, name, &format!("{PREFIX}{name}"), family)?;
        }
        for (name, family) in &families.histograms {
            write(&mut encoder, name, &format!("{PREFIX}{name}"), family)?;
        }
        Ok(())
    }
}

fn write(encoder: &mut DescriptorEncoder, name: &str, full_name: &str, family: &impl EncodeMetric) -> fmt::Result {
    let help = help::of(full_name).unwrap_or("Not described");
    family.encode(encoder.encode_descriptor(name, help, None, family.metric_type())?)
}

#[cfg(test)]
mod tests {
    use metrics::{counter, gauge, histogram};
    use prometheus_client::encoding::{prometheus_text, text};
    use prometheus_client::registry::Registry;

    use super::*;

    #[test]
    fn both_forms_name_type_and_describe_what_the_macros_count() {
        let health = HealthMetrics::default();
        metrics::with_local_recorder(&health, || {
            counter!("tracejoin_receive_refused_total", "transport" => "records", "reason" => "a\"b").increment(2);
            counter!("tracejoin_receive_refused_total", "transport" => "records", "reason" => "a\"b").increment(1);
            counter!("tracejoin_commits_total").absolute(7);
            counter!("tracejoin_commits_total").absolute(6);
            let bytes = gauge!("tracejoin_ingest_queue_bytes");
            bytes.set(5.0);
            bytes.increment(2.0);
            bytes.decrement(4.0);
            histogram!("tracejoin_commit_seconds").record(0.003);
        });
        let mut registry = Registry::with_prefix("tracejoin");
        registry.register_collector(Box::new(health));
        let (mut plain, mut open_metrics) = (String::new(), String::new());
        prometheus_text::encode(&mut plain, &registry).expect("written");
        text::encode(&mut open_metrics, &registry).expect("written");
        for line in [
            "# HELP tracejoin_receive_refused_total Requests of which nothing was taken, by reason",
            "# TYPE tracejoin_receive_refused_total counter",
            "# TYPE tracejoin_ingest_queue_bytes gauge",
            "# TYPE tracejoin_commit_seconds histogram",
        ] {
            assert!(plain.lines().any(|found| found == line), "{line} is not in\n{plain}");
        }
        let family = "# HELP tracejoin_receive_refused Requests of which nothing was taken, by reason";
        assert!(open_metrics.lines().any(|found| found == family), "{open_metrics}");
        for line in [
            r#"tracejoin_receive_refused_total{transport="records",reason="a\"b"} 3"#,
            "tracejoin_commits_total 7",
            "tracejoin_ingest_queue_bytes 3.0",
            r#"tracejoin_commit_seconds_bucket{le="0.0025"} 0"#,
            r#"tracejoin_commit_seconds_bucket{le="0.005"} 1"#,
            r#"tracejoin_commit_seconds_bucket{le="+Inf"} 1"#,
            "tracejoin_commit_seconds_sum 0.003",
            "tracejoin_commit_seconds_count 1",
        ] {
            for document in [&plain, &open_metrics] {
                assert!(document.lines().any(|found| found == line), "{line} is not in\n{document}");
            }
        }
    }
}
