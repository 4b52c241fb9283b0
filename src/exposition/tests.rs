//! Both forms of the document, whole.

use std::sync::Arc;

use prometheus_client::encoding::{prometheus_text, text};

use super::{ObjectiveMetrics, RequestMetrics};
use crate::objectives::latest::LatestVerdicts;
use crate::store::RequestRow;
use crate::workers::join::JoinObserver;
use model::{
    ClientSide, Dimension, Dimensions, Flag, Flags, JoinMethod, Nanos, Rates, Request, ResultClass, ServerPhases,
    ServerSide, SpanId, State, TraceId, TtftPhases, UnixNanos,
};
use slo::{Objective, ObjectiveId, Status, document};

const SECOND: i64 = 1_000_000_000;
const NOW: UnixNanos = UnixNanos(2 * SECOND);

fn ms(count: i64) -> Nanos {
    Nanos(count * 1_000_000)
}

/// A matched request of 130 ms, 100 ms of them the server's, with a first token after 40 and 30 ms.
fn request(number: u8, model: &str) -> Request {
    let mut dimensions = Dimensions::default();
    dimensions.set(Dimension::Model, Some(model));
    dimensions.set(Dimension::Streaming, Some("true"));
    let server = |gateway, generation, unattributed| ServerPhases {
        gateway: Some(ms(gateway)),
        generation: Some(ms(generation)),
        unattributed: ms(unattributed),
        ..ServerPhases::default()
    };
    Request {
        trace_id: TraceId::from_bytes([number; 16]).expect("not zero"),
        server_trace: None,
        request_id: None,
        client_span: None,
        window_at: UnixNanos(SECOND),
        state: State::Matched,
        result: Some(ResultClass::Ok),
        flags: Flags::NONE,
        join_method: JoinMethod::TraceId,
        client: Some(ClientSide { duration: Some(ms(130)), ttft: Some(ms(40)), ..ClientSide::default() }),
        server: Some(ServerSide {
            entry: SpanId::from_bytes([1; 8]).expect("not zero"),
            total: ms(100),
            ttft: Some(ms(30)),
        }),
        network_envelope: Some(ms(30)),
        wall_envelope: None,
        phases: Some(server(10, 60, 30)),
        ttft: Some(TtftPhases { envelope: ms(10), server: server(10, 15, 5) }),
        rates: Rates::default(),
        stream: None,
        completeness: None,
        input_tokens: None,
        output_tokens: None,
        client_dimensions: dimensions.clone(),
        dimensions,
    }
}

fn metrics(series: usize, objectives: &[&str]) -> RequestMetrics {
    of(series, objectives, Arc::default())
}

fn of(series: usize, objectives: &[&str], verdicts: Arc<LatestVerdicts>) -> RequestMetrics {
    let read = |text: &&str| document::read(text).expect("an objective").into_iter().map(Arc::new);
    let objectives: Vec<Arc<Objective>> = objectives.iter().flat_map(read).collect();
    RequestMetrics::new(series, ObjectiveMetrics::new(Box::new(move || objectives.clone()), verdicts))
}

/// Tells of a request that arrived, and was joined, at 2 s.
fn tell(metrics: &RequestMetrics, requests: impl IntoIterator<Item = Request>) {
    let rows: Vec<RequestRow> = requests.into_iter().map(|request| RequestRow::new(request, NOW, 1)).collect();
    metrics.joined(&rows, NOW);
}

/// Series in an order that does not change from run to run; lines that say something of a family come first.
fn sorted(document: &str) -> String {
    let mut lines: Vec<&str> = document.lines().collect();
    lines.sort_by_key(|line| (!line.starts_with("# HELP"), !line.starts_with("# TYPE"), *line));
    lines.join("\n")
}

fn open_metrics(metrics: &RequestMetrics) -> String {
    let mut document = String::new();
    metrics.read(NOW, |registry| text::encode(&mut document, registry)).expect("written");
    document
}

fn plain(metrics: &RequestMetrics) -> String {
    let mut document = String::new();
    metrics.read(NOW, |registry| prometheus_text::encode(&mut document, registry)).expect("written");
    document
}

fn three() -> RequestMetrics {
    let metrics = metrics(1_000, &[]);
    let lone = Request {
        state: State::ClientOnly,
        result: Some(ResultClass::Timeout),
        server: None,
        phases: None,
        network_envelope: None,
        ttft: None,
        ..request(2, "m")
    };
    let mut excluded = Request { state: State::Excluded, ..request(3, "m") };
    excluded.flags.set(Flag::NegativeEnvelope);
    tell(&metrics, [request(1, "m"), lone, excluded]);
    metrics
}

#[test]
fn open_metrics_leads_from_buckets_to_traces() {
    let document = open_metrics(&three());
    assert!(document.ends_with("# EOF\n"));
    insta::assert_snapshot!(sorted(&document));
}

#[test]
fn text_has_the_same_series_without_exemplars() {
    let document = plain(&three());
    let open_metrics = open_metrics(&three());
    assert!(!document.contains(" # {") && !document.contains("# EOF"));
    // Bounds of buckets are written differently.
    let series = |document: &str| {
        let lines = document.lines().filter(|line| !line.starts_with('#'));
        let (buckets, mut others): (Vec<&str>, Vec<&str>) = lines.partition(|line| line.contains("_bucket{"));
        others.sort_unstable();
        (buckets.len(), others.join("\n"))
    };
    assert_eq!(series(&document), series(&open_metrics));
    let types: Vec<&str> = document.lines().filter(|line| line.starts_with("# TYPE")).collect();
    insta::assert_snapshot!(types.join("\n"));
}

#[test]
fn labels_are_escaped_and_counts_only_grow() {
    let metrics = metrics(1_000, &[]);
    for round in 1..=2 {
        tell(&metrics, [request(1, "a\"b\\c\nd")]);
        let expected = format!(
            "tracejoin_client_records_total{{model=\"a\\\"b\\\\c\\nd\",provider=\"\",pool=\"\",region=\"\",streaming=\"true\",result=\"ok\"}} {round}"
        );
        assert!(open_metrics(&metrics).lines().any(|line| line == expected), "{expected}");
    }
}

#[test]
fn beyond_the_cap_requests_are_counted_under_overflow() {
    let metrics = metrics(1, &[]);
    tell(&metrics, [request(1, "first")]);
    tell(&metrics, [request(2, "second"), request(3, "third"), request(4, "first")]);
    let document = open_metrics(&metrics);
    let count = |model: &str| {
        let start = format!("tracejoin_phase_seconds_count{{phase=\"gateway\",model=\"{model}\"");
        document.lines().find(|line| line.starts_with(&start)).and_then(|line| line.rsplit(' ').next()?.parse().ok())
    };
    assert_eq!((count("first"), count("overflow"), count("second")), (Some(2), Some(2), None));
    assert!(document.contains("tracejoin_metric_series_overflow_requests_total 2\n"), "{document}");
}

const QUEUE: &str = r#"{"apiVersion": "tracejoin/v1", "kind": "SLO", "metadata": {"name": "generation-p95"},
    "spec": {"phase": "generation", "quantile": 0.95, "threshold_ms": 50, "where": {"model": "m"}}}"#;
const COVERAGE: &str = r#"{"apiVersion": "tracejoin/v1", "kind": "SLO", "metadata": {"name": "coverage"},
    "spec": {"phase": "join_coverage", "threshold": 0.9}}"#;

fn of_objectives(document: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = document.lines().filter(|line| line.starts_with("tracejoin_slo_")).collect();
    lines.sort_unstable();
    lines
}

#[test]
fn requests_are_good_or_bad_for_each_objective_from_zero_on() {
    let metrics = metrics(1_000, &[QUEUE, COVERAGE]);
    let before = open_metrics(&metrics);
    assert_eq!(of_objectives(&before).iter().filter(|line| line.ends_with(" 0")).count(), 8, "{before}");
    let fast = Request {
        phases: Some(ServerPhases { generation: Some(ms(50)), ..ServerPhases::default() }),
        ..request(3, "m")
    };
    tell(&metrics, [request(1, "m"), request(2, "other"), fast]);
    insta::assert_snapshot!(of_objectives(&open_metrics(&metrics)).join("\n"));
}

#[test]
fn a_verdict_is_shown_as_long_as_it_is_new() {
    let verdicts = Arc::new(LatestVerdicts::default());
    let metrics = of(1_000, &[QUEUE], Arc::clone(&verdicts));
    let broken =
        |document: &str| document.contains("tracejoin_slo_verdict{slo=\"generation-p95\",status=\"broken\"} 1");
    assert!(!open_metrics(&metrics).contains("tracejoin_slo_verdict{"));
    let id = ObjectiveId::new("generation-p95").expect("a name");
    verdicts.replace(NOW, [(id.clone(), Status::Broken)]);
    let document = open_metrics(&metrics);
    assert!(broken(&document), "{document}");
    assert_eq!(document.lines().filter(|line| line.starts_with("tracejoin_slo_verdict{")).count(), 3);
    verdicts.replace(NOW - Nanos(600 * SECOND), [(id, Status::Broken)]);
    assert!(!broken(&open_metrics(&metrics)));
}
