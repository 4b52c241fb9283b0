use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::{FieldError, record};
use model::{ClientRecord, MetricsKind, Nanos, ResponseMetrics};

fn parse(metrics: Value) -> Result<(ClientRecord, u64), FieldError> {
    let text = json!({"trace_id": "11".repeat(16), "duration_ms": 60_000, "response_metrics": metrics}).to_string();
    let parsed = record(&RawValue::from_string(text).expect("JSON"))?;
    Ok((parsed.record, parsed.ignored_fields))
}

fn read(metrics: Value) -> ClientRecord {
    parse(metrics).expect("accepted").0
}

fn ms(millis: f64) -> Option<Nanos> {
    Nanos::from_millis(millis)
}

fn told(kind: MetricsKind) -> ResponseMetrics {
    ResponseMetrics { kind, ..ResponseMetrics::default() }
}

#[test]
fn vllm_measures_from_scheduling_on() {
    let object = json!({"time_to_first_token_ms": 85.2, "generation_time_ms": 1240.5, "queue_time_ms": 12.3,
                        "mean_itl_ms": 9.1, "tokens_per_second": 103.2});
    let expected =
        ResponseMetrics { queue: ms(12.3), prefill: ms(85.2), decode: ms(1240.5), ..told(MetricsKind::Vllm) };
    assert_eq!(read(object.clone()).response_metrics, Some(expected), "the kind that needs no name");
    let named = json!({"kind": "vllm", "metrics": object, "id": "cmpl-1"});
    let (record, ignored) = parse(named).expect("accepted");
    assert_eq!((record.response_metrics, ignored), (Some(expected), 1), "as a part of the answer");
    assert_eq!(expected.generation(), ms(1325.7));
}

#[test]
fn vllm_headers_are_in_milliseconds() {
    let record = read(json!({
        "kind": "vllm_headers", "X-Vllm-Total-Time": "1400.5", "x-vllm-queue-time": "12", "x-vllm-prefill-time": "80",
        "x-vllm-decode-time": "1200", "x-vllm-inference-time": "1280", "x-vllm-prompt-tokens": "42",
        "x-vllm-completion-tokens": "128", "x-vllm-cached-tokens": "0",
    }));
    let expected = ResponseMetrics {
        total: ms(1400.5),
        queue: ms(12.0),
        prefill: ms(80.0),
        decode: ms(1200.0),
        inference: ms(1280.0),
        ..told(MetricsKind::VllmHeaders)
    };
    assert_eq!(record.response_metrics, Some(expected));
    assert_eq!((record.input_tokens, record.output_tokens), (Some(42), Some(128)));
}

#[test]
fn tgi_tells_its_inference_as_a_whole() {
    let record = read(json!({
        "kind": "tgi_headers", "x-queue-time": "7", "x-inference-time": "910", "x-validation-time": "1",
        "x-total-time": "919", "x-time-per-token": "9", "x-prompt-tokens": "5", "x-generated-tokens": "100",
    }));
    let expected =
        ResponseMetrics { total: ms(919.0), queue: ms(7.0), inference: ms(910.0), ..told(MetricsKind::TgiHeaders) };
    assert_eq!(record.response_metrics, Some(expected));
    assert_eq!(expected.generation(), ms(910.0));
    assert_eq!((record.input_tokens, record.output_tokens), (Some(5), Some(100)));
}

#[test]
fn ollama_counts_nanoseconds_and_a_long_load_is_a_cold_start() {
    let object = |load: i64| {
        json!({"kind": "ollama", "total_duration": 8_113_331_500_i64, "load_duration": load,
               "prompt_eval_count": 61, "prompt_eval_duration": 468_000_000, "eval_count": 298,
               "eval_duration": 4_700_000_000_i64, "response": "…"})
    };
    let (record, ignored) = parse(object(2_916_000_000)).expect("accepted");
    let expected = ResponseMetrics {
        total: Some(Nanos(8_113_331_500)),
        queue: ms(2916.0),
        prefill: ms(468.0),
        decode: ms(4700.0),
        ..told(MetricsKind::Ollama)
    };
    assert_eq!((record.response_metrics, ignored), (Some(expected), 1));
    assert_eq!((record.input_tokens, record.output_tokens, record.cold_start), (Some(61), Some(298), Some(true)));
    assert_eq!(read(object(41_000_000)).cold_start, Some(false));
}

#[test]
fn llama_cpp_counts_its_cache_apart() {
    let timings = json!({"cache_n": 60, "prompt_n": 8, "prompt_ms": 43.237, "prompt_per_second": 185.0,
                         "predicted_n": 25, "predicted_ms": 238.74, "predicted_per_token_ms": 9.5});
    let expected = ResponseMetrics { prefill: ms(43.237), decode: ms(238.74), ..told(MetricsKind::LlamaCpp) };
    for object in [json!({"kind": "llama_cpp", "timings": timings.clone()}), {
        let mut flat = timings;
        flat["kind"] = json!("llama_cpp");
        flat
    }] {
        let (record, ignored) = parse(object).expect("accepted");
        assert_eq!((record.response_metrics, ignored), (Some(expected), 0));
        assert_eq!((record.input_tokens, record.output_tokens), (Some(68), Some(25)));
    }
}

#[test]
fn server_timing_adds_up_what_has_one_owner() {
    let header = "auth;dur=2, route;dur=1.5, Queue;dur=20, prefill;dur=30, decode;dur=400, total;dur=460, cache";
    let expected = ResponseMetrics {
        gateway: ms(3.5),
        queue: ms(20.0),
        prefill: ms(30.0),
        decode: ms(400.0),
        ..told(MetricsKind::ServerTiming)
    };
    assert_eq!(read(json!({"kind": "server_timing", "Server-Timing": header})).response_metrics, Some(expected));
    let list: Vec<&str> = header.split(", ").collect();
    assert_eq!(read(json!({"kind": "server_timing", "server_timing": list})).response_metrics, Some(expected));
}

#[test]
fn litellm_tells_its_own_overhead() {
    let headers = json!({"kind": "litellm_headers", "x-litellm-response-duration-ms": "1000.0",
                         "x-litellm-overhead-duration-ms": "100.0"});
    let expected = ResponseMetrics { gateway: ms(100.0), ..told(MetricsKind::LitellmHeaders) };
    assert_eq!(read(headers).response_metrics, Some(expected));
}

#[test]
fn the_records_own_counts_go_first() {
    let text = json!({"trace_id": "11".repeat(16), "duration_ms": 60_000, "output_tokens": 7, "cold_start": false,
                      "response_metrics": {"kind": "ollama", "eval_count": 9, "load_duration": 5_000_000_000_i64}});
    let parsed = record(&RawValue::from_string(text.to_string()).expect("JSON")).expect("accepted");
    assert_eq!((parsed.record.output_tokens, parsed.record.cold_start), (Some(7), Some(false)));
}

#[test]
fn what_cannot_be_a_time_is_missing() {
    let object = json!({"kind": "vllm", "queue_time_ms": -1, "time_to_first_token_ms": "inf",
                        "generation_time_ms": "soon"});
    assert_eq!(read(object).response_metrics, None);
    assert_eq!(read(json!({"kind": "ollama", "eval_count": -1, "eval_duration": 1e30})).response_metrics, None);
}

#[test]
fn an_unknown_kind_is_refused_and_the_known_ones_are_named() {
    let error = parse(json!({"kind": "tgi"})).expect_err("refused");
    assert_eq!(error.field, "response_metrics.kind");
    for kind in MetricsKind::ALL {
        assert!(error.reason.contains(kind.name()), "{}", error.reason);
    }
    assert_eq!(parse(json!([1])).expect_err("refused").field, "response_metrics");
}
