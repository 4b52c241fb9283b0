//! `GET /metrics`: what Prometheus reads of the requests that a process joined.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::common::{PATIENCE, Server};

const OPEN_METRICS: &str = "application/openmetrics-text;version=1.0.0";

const OBJECTIVE: &str = "apiVersion: tracejoin/v1
kind: SLO
metadata: {name: generation-p95}
spec: {phase: generation, quantile: 0.95, threshold_ms: 50, where: {model: m}}
";

/// A gateway's entry span of 100 ms with some time of generation.
fn spans(trace_id: &str, generation: u64) -> Value {
    let span = |id: &str, parent: &str, name: &str, kind: u8, start: u64, length: u64| {
        json!({"traceId": trace_id, "spanId": id, "parentSpanId": parent, "name": name, "kind": kind,
               "startTimeUnixNano": (start * 1_000_000).to_string(),
               "endTimeUnixNano": ((start + length) * 1_000_000).to_string()})
    };
    let service = json!([{"key": "service.name", "value": {"stringValue": "gateway"}}]);
    json!({"resourceSpans": [{"resource": {"attributes": service}, "scopeSpans": [{"spans": [
        span("00000000000000a1", "", "POST /v1/chat/completions", 2, 1_000, 100),
        span("00000000000000a2", "00000000000000a1", "inference.generate", 3, 1_010, generation),
    ]}]}]})
}

fn record(trace_id: &str, model: &str) -> Value {
    json!([{"trace_id": trace_id, "duration_ms": 130, "status": 200, "streaming": false,
            "dimensions": {"model": model, "pool": "a\"b\\c"}}])
}

fn fresh_id() -> String {
    uuid::Uuid::new_v4().simple().to_string()
}

async fn request(server: &Server, model: &str, generation: u64) -> String {
    let trace_id = fresh_id();
    server.export(&spans(&trace_id, generation)).await;
    server.upload(&record(&trace_id, model)).await;
    trace_id
}

/// The samples of a document by name and labels. What stands beside a sample is not read.
fn samples(document: &str) -> BTreeMap<String, f64> {
    let lines = document.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let sample = |line: &str| {
        let sample = line.split(" # ").next().expect("a sample");
        let (name, value) = sample.rsplit_once(' ').unwrap_or_else(|| panic!("a value: {line}"));
        (name.to_owned(), value.parse().unwrap_or_else(|_| panic!("a number: {line}")))
    };
    lines.map(sample).collect()
}

/// The sum of the samples of a name that carry all of these labels.
fn sum(document: &str, name: &str, labels: &[&str]) -> f64 {
    let start = format!("{name}{{");
    let of_name = |series: &str| series.starts_with(&start) || series == name;
    let chosen = |series: &str| of_name(series) && labels.iter().all(|label| series.contains(label));
    samples(document).into_iter().filter(|(series, _)| chosen(series)).map(|(_, value)| value).sum()
}

/// Scrapes until a sum is as wanted.
async fn scrape_until(server: &Server, name: &str, labels: &[&str], wanted: f64) -> String {
    let end = Instant::now() + PATIENCE;
    loop {
        let document = server.text_as("/metrics", OPEN_METRICS).await;
        if sum(&document, name, labels) == wanted {
            return document;
        }
        assert!(Instant::now() < end, "{name} {labels:?} is not {wanted}:\n{document}");
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_counted_exactly_and_a_bucket_leads_to_a_trace() {
    let server = Server::start().await;
    let (status, answer) = server.put("/api/v1/slos/generation-p95", "application/yaml", OBJECTIVE).await;
    assert!(matches!(status, 200 | 201), "{status} {answer}");
    let mut fast = Vec::new();
    for number in 0..10 {
        let generation = if number < 8 { 40 } else { 70 };
        let trace_id = request(&server, "m", generation).await;
        if generation == 40 {
            fast.push(trace_id);
        }
    }
    request(&server, "other", 40).await;

    let model = ["model=\"m\"", "pool=\"a\\\"b\\\\c\"", "result=\"ok\"", "streaming=\"false\""];
    let with = |label: &'static str| [&model[..], &[label]].concat();
    // The last of what is counted of a request.
    let document = scrape_until(&server, "tracejoin_phase_seconds_count", &with("phase=\"duration\""), 10.0).await;
    assert!(document.ends_with("# EOF\n"));
    assert_eq!(sum(&document, "tracejoin_client_records_total", &model), 10.0);
    assert_eq!(sum(&document, "tracejoin_client_records_matched_total", &model), 10.0);
    assert_eq!(sum(&document, "tracejoin_requests_total", &with("state=\"matched\"")), 10.0);
    for (phase, count, total) in [("generation", 10.0, 0.46), ("network_envelope", 10.0, 0.3), ("duration", 10.0, 1.3)]
    {
        let phase = format!("phase=\"{phase}\"");
        let labels = [&model[..], &[phase.as_str()]].concat();
        assert_eq!(sum(&document, "tracejoin_phase_seconds_count", &labels), count, "{phase}");
        assert!((sum(&document, "tracejoin_phase_seconds_sum", &labels) - total).abs() < 1e-9, "{phase}");
    }
    let bucket = |le: &'static str| [&with("phase=\"generation\"")[..], &[le]].concat();
    let buckets = ["le=\"0.025\"", "le=\"0.05\"", "le=\"0.1\"", "le=\"+Inf\""]
        .map(|le| sum(&document, "tracejoin_phase_seconds_bucket", &bucket(le)));
    assert_eq!(buckets, [0.0, 8.0, 10.0, 10.0]);
    let outcomes = ["good", "bad", "missing", "left_out"].map(|outcome| {
        let labels = ["slo=\"generation-p95\"".to_owned(), format!("outcome=\"{outcome}\"")];
        sum(&document, "tracejoin_slo_requests_total", &labels.each_ref().map(String::as_str))
    });
    assert_eq!(outcomes, [8.0, 2.0, 0.0, 0.0]);
    assert_eq!(sum(&document, "tracejoin_slo_threshold", &["slo=\"generation-p95\"", "unit=\"seconds\""]), 0.05);

    let line = document.lines().find(|line| bucket("le=\"0.05\"").iter().all(|label| line.contains(label)));
    let exemplar = line.and_then(|line| line.split_once(" # {trace_id=\"")?.1.split('"').next()).expect("an exemplar");
    assert!(fast.iter().any(|trace_id| trace_id == exemplar), "{exemplar}");
    let (status, trace) = server.get(&format!("/api/v1/traces/{exemplar}")).await;
    assert_eq!((status, &trace["phases"]["generation_ms"]), (200, &json!(40.0)), "{trace}");

    request(&server, "m", 40).await;
    let later = scrape_until(&server, "tracejoin_client_records_total", &model, 11.0).await;
    let (before, after) = (samples(&document), samples(&later));
    let counts =
        |series: &&String| series.contains("_total") || series.contains("_bucket{") || series.contains("_count");
    for series in before.keys().filter(counts) {
        assert!(after.get(series) >= before.get(series), "{series} fell");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn both_forms_tell_each_family_once() {
    let server = Server::start().await;
    request(&server, "m", 40).await;
    let open_metrics = scrape_until(&server, "tracejoin_phase_seconds_count", &["phase=\"duration\""], 1.0).await;
    let text = server.text("/metrics").await;
    assert!(!text.contains("# EOF") && !text.contains(" # {"), "{text}");
    for document in [&open_metrics, &text] {
        let mut families: Vec<&str> = document.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
        let all = families.len();
        families.sort_unstable();
        families.dedup();
        assert_eq!(families.len(), all);
        // The own health of the process stands beside the requests.
        assert!(families.iter().any(|family| family.starts_with("tracejoin_join_claim_seconds ")), "{families:?}");
        assert!(families.contains(&"tracejoin_phase_seconds histogram"), "{families:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_correction_is_counted_apart() {
    let server = Server::start().await;
    let trace_id = fresh_id();
    server.upload(&record(&trace_id, "m")).await;
    let model = ["model=\"m\""];
    scrape_until(&server, "tracejoin_client_records_total", &model, 1.0).await;
    server.export(&spans(&trace_id, 40)).await;
    let document = scrape_until(&server, "tracejoin_requests_corrected_total", &[], 1.0).await;
    assert_eq!(sum(&document, "tracejoin_client_records_total", &model), 1.0);
    assert_eq!(sum(&document, "tracejoin_client_records_matched_total", &model), 0.0);
    assert_eq!(sum(&document, "tracejoin_phase_seconds_count", &["phase=\"duration\""]), 1.0);
    assert_eq!(sum(&document, "tracejoin_phase_seconds_count", &["phase=\"generation\""]), 0.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn labels_beyond_the_cap_share_one_series() {
    let server = Server::started(&["--metric-series", "1"]).await;
    request(&server, "first", 40).await;
    scrape_until(&server, "tracejoin_client_records_total", &["model=\"first\""], 1.0).await;
    for model in ["second", "third", "first"] {
        request(&server, model, 40).await;
    }
    let over = ["model=\"overflow\"", "pool=\"overflow\"", "result=\"ok\""];
    scrape_until(&server, "tracejoin_client_records_total", &over, 2.0).await;
    let document = scrape_until(&server, "tracejoin_client_records_total", &["model=\"first\""], 2.0).await;
    assert_eq!(sum(&document, "tracejoin_metric_series_overflow_requests_total", &[]), 2.0);
    assert!(!document.contains("model=\"second\"") && !document.contains("model=\"third\""), "{document}");
}
