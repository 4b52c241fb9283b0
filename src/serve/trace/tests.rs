use serde_json::{Value, json};

use super::*;
use api::Explained;
use join::ExplainedSpan;
use model::{
    ClientSide, Dimension, Dimensions, Flag, Flags, JoinMethod, Nanos, Rates, Request, ResultClass, ServerPhase,
    ServerPhases, ServerSide, SpanKind, State, TtftPhases, UnixNanos,
};

fn millis(value: f64) -> Nanos {
    Nanos::from_millis(value).expect("a duration")
}

/// The request of the first report in the design: client 1842 ms, server 1691 ms.
pub(crate) fn explained() -> Explained {
    let entry = "00000000006acfc1".parse().expect("an id");
    let phases = ServerPhases {
        gateway: Some(millis(37.0)),
        gpu_queue: Some(millis(428.0)),
        generation: Some(millis(1210.0)),
        unattributed: millis(16.0),
        ..ServerPhases::default()
    };
    let mut dimensions = Dimensions::default();
    dimensions.set(Dimension::Model, Some("m-7b"));
    let client = ClientSide { duration: Some(millis(1842.0)), setup: Some(millis(3.7)), ..ClientSide::default() };
    let span = ExplainedSpan {
        span_id: entry,
        parent: Some("00000000006acfc0".parse().expect("an id")),
        name: "POST /v1/chat/completions".into(),
        kind: SpanKind::Server,
        service: "gateway".into(),
        start_offset: Some(Nanos::ZERO),
        painted: true,
        duration: Some(millis(1691.0)),
        phase: Some(ServerPhase::Gateway),
        rule: "native".into(),
        clock_domain: "/gateway/1".into(),
    };
    let request = Request {
        trace_id: "0000000000000007000000000000012f".parse().expect("an id"),
        server_trace: None,
        request_id: None,
        client_span: None,
        window_at: UnixNanos(1_767_323_045_678_000_000),
        state: State::Matched,
        result: Some(ResultClass::Ok),
        flags: Flags::NONE,
        join_method: JoinMethod::TraceId,
        client: Some(client),
        server: Some(ServerSide { entry, total: phases.total(), ttft: None }),
        network_envelope: Some(millis(151.0)),
        wall_envelope: None,
        phases: Some(phases),
        ttft: None,
        rates: Rates::default(),
        stream: None,
        completeness: None,
        input_tokens: Some(412),
        output_tokens: Some(180),
        client_dimensions: dimensions.clone(),
        dimensions,
    };
    Explained { spans: vec![span], ..Explained::of_row(request, 1) }
}

fn as_json(requests: &[Explained]) -> Value {
    serde_json::to_value(TraceAnswer::of(requests).expect("at least one")).expect("JSON")
}

#[test]
fn one_request_shows_its_phases_and_spans() {
    let answer = as_json(&[explained()]);
    assert_eq!(
        answer["phases"],
        json!({"network_envelope_ms": 151.0, "gateway_ms": 37.0, "gpu_queue_ms": 428.0, "generation_ms": 1210.0,
               "provider_ms": 0.0, "upstream_envelope_ms": 0.0, "unattributed_ms": 16.0})
    );
    assert_eq!(answer["state"], "matched");
    assert_eq!(answer["window_at"], "2026-01-02T03:04:05.678Z");
    assert_eq!(answer["dimensions"], json!({"model": "m-7b"}));
    assert_eq!(answer["spans"][0]["parent_span_id"], "00000000006acfc0");
    assert_eq!(answer["spans"][0]["phase"], "gateway");
    let ratio = answer["explained_ratio"].as_f64().expect("a number");
    assert!((ratio - (1842.0 - 16.0) / 1842.0).abs() < 1e-12);
}

#[test]
fn the_unknown_is_null_with_a_flag_and_never_zero() {
    let mut unknown = explained();
    unknown.request.flags = Flags::from_iter([Flag::QueueUnknown]);
    if let Some(phases) = &mut unknown.request.phases {
        phases.gpu_queue = None;
    }
    unknown.request.client = None;
    unknown.request.network_envelope = None;
    let answer = as_json(std::slice::from_ref(&unknown));
    assert_eq!(answer["phases"]["gpu_queue_ms"], Value::Null);
    assert_eq!(answer["flags"], json!(["queue_unknown"]));
    assert_eq!(answer["explained_ratio"], Value::Null);
    let text = text(&TraceAnswer::of(&[unknown]).expect("one"));
    assert!(text.contains("client_total_ms=unknown\n") && text.contains("gpu_queue_ms=unknown\n"), "{text}");
}

#[test]
fn several_requests_have_no_phases_of_the_trace() {
    let answer = as_json(&[explained(), explained()]);
    assert_eq!(answer["state"], "several");
    assert_eq!(answer.get("phases"), None);
    assert_eq!(answer["requests"].as_array().map(Vec::len), Some(2));
    let read: TraceAnswer = serde_json::from_value(answer).expect("the client reads it back");
    assert_eq!(text(&read).matches("trace_id=").count(), 2);
}

#[test]
fn the_report_has_its_lines_in_order_and_no_trailing_zeros() {
    let mut request = explained();
    request.request.network_envelope = Some(Nanos(151_000_001));
    insta::assert_snapshot!(text(&TraceAnswer::of(&[request]).expect("one")), @r"
    trace_id=0000000000000007000000000000012f
    client_total_ms=1842
    server_root_ms=1691
    network_envelope_ms=151.000001
    gateway_ms=37
    gpu_queue_ms=428
    generation_ms=1210
    provider_ms=0
    upstream_envelope_ms=0
    unattributed_server_ms=16
    ");
}

#[test]
fn the_report_splits_the_time_to_the_first_token_where_it_is_known() {
    let mut request = explained();
    let client = request.request.client.get_or_insert_default();
    client.ttft = Some(millis(652.0));
    if let Some(server) = &mut request.request.server {
        server.ttft = Some(millis(538.0));
    }
    let server = ServerPhases {
        gateway: Some(millis(22.0)),
        gpu_queue: None,
        generation: Some(millis(78.0)),
        unattributed: millis(438.0),
        ..ServerPhases::default()
    };
    request.request.ttft = Some(TtftPhases { envelope: millis(114.0), server });
    let report = text(&TraceAnswer::of(&[request]).expect("one"));
    let (_, first_token) = report.split_once("unattributed_server_ms=16\n").expect("the total first");
    insta::assert_snapshot!(first_token, @r"
    client_ttft_ms=652
    server_ttft_ms=538
    ttft_envelope_ms=114
    ttft_gateway_ms=22
    ttft_gpu_queue_ms=unknown
    ttft_generation_ms=78
    ttft_provider_ms=0
    ttft_upstream_envelope_ms=0
    ttft_unattributed_ms=438
    ");
}
