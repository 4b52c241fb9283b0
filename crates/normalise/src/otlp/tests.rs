use opentelemetry_proto::tonic::common::v1::any_value::Value as WireValue;
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::trace::v1::span::Event;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans};
use proptest::prelude::*;

use super::*;
use model::{UnixNanos, Value};

const START: u64 = 1_767_323_045_000_000_000;

fn wire(id: u64, name: &str) -> WireSpan {
    WireSpan {
        trace_id: vec![7; 16],
        span_id: id.to_be_bytes().to_vec(),
        name: name.to_owned(),
        kind: 1,
        start_time_unix_nano: START,
        end_time_unix_nano: START + 1_000,
        ..Default::default()
    }
}

fn pair(key: &str, value: WireValue) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }), ..Default::default() }
}

fn text(key: &str, value: &str) -> KeyValue {
    pair(key, WireValue::StringValue(value.to_owned()))
}

fn request(spans: Vec<WireSpan>) -> ExportTraceServiceRequest {
    let scope = InstrumentationScope { name: "test".to_owned(), ..Default::default() };
    let scope_spans = ScopeSpans { scope: Some(scope), spans, ..Default::default() };
    let group = ResourceSpans { scope_spans: vec![scope_spans], ..Default::default() };
    ExportTraceServiceRequest { resource_spans: vec![group] }
}

fn normalised(spans: Vec<WireSpan>) -> Normalised {
    fragments(request(spans), &Limits::default(), &Dialects::default())
}

fn only(spans: Vec<WireSpan>) -> Span {
    let mut normalised = normalised(spans);
    assert_eq!(normalised.rejected_spans(), 0, "{}", normalised.message);
    let (_, mut fragment) = normalised.fragments.pop().expect("one trace");
    fragment.spans.pop().expect("one span")
}

#[test]
fn a_bad_span_is_refused_alone_and_the_message_says_what_to_do() {
    let mut short = wire(1, "short");
    short.trace_id = vec![7; 8];
    let mut zero = wire(2, "zero");
    zero.span_id = vec![0; 8];
    let mut parent = wire(3, "parent");
    parent.parent_span_id = vec![1; 4];
    let mut late = wire(4, "late");
    late.end_time_unix_nano = u64::MAX;
    let normalised = normalised(vec![short, zero, parent, late, wire(5, "good")]);
    assert_eq!(normalised.fragments.len(), 1);
    assert_eq!(normalised.fragments[0].1.spans.len(), 1);
    assert_eq!(normalised.rejected_spans(), 4);
    for (reason, said) in [
        ("trace_id_invalid", "span \"short\": trace_id has 8 bytes, must have exactly 16"),
        ("span_id_invalid", "span \"zero\": span_id is all zeros"),
        ("parent_span_id_invalid", "span \"parent\": parent_span_id has 4 bytes"),
        ("time_out_of_range", "end_time_unix_nano 18446744073709551615 lies beyond the year 2262"),
    ] {
        assert_eq!(normalised.rejected.get(reason), Some(&1), "{reason}");
        assert!(normalised.message.contains(said), "{}", normalised.message);
    }
}

#[test]
fn no_parent_has_three_spellings() {
    for parent in [vec![], vec![0; 8]] {
        let span = WireSpan { parent_span_id: parent, ..wire(1, "x") };
        assert_eq!(only(vec![span]).parent, None);
    }
    let span = WireSpan { parent_span_id: vec![1; 8], ..wire(1, "x") };
    assert_eq!(only(vec![span]).parent.map(|id| id.to_string()).as_deref(), Some("0101010101010101"));
}

#[test]
fn odd_times_are_kept() {
    let missing = only(vec![WireSpan { end_time_unix_nano: 0, ..wire(1, "x") }]);
    assert_eq!((missing.end, missing.interval()), (None, None));
    let backwards = only(vec![WireSpan { end_time_unix_nano: START - 1, ..wire(1, "x") }]);
    assert_eq!(backwards.interval(), None);
    let long_ago = only(vec![WireSpan { start_time_unix_nano: 0, ..wire(1, "x") }]);
    assert_eq!(long_ago.start, UnixNanos(0));
}

#[test]
fn content_is_dropped_and_values_are_bounded() {
    let mut span = wire(1, "chat with joe@example.com");
    span.attributes = vec![
        text("gen_ai.input.messages", "a secret prompt"),
        text("http.url", "https://host/?key=abc"),
        text("gen_ai.response.model", &"m".repeat(1 << 20)),
        pair("gen_ai.usage.output_tokens", WireValue::IntValue(180)),
        pair("llm.priority", WireValue::BytesValue(vec![1])),
    ];
    let mut normalised = normalised(vec![span]);
    assert_eq!(normalised.dropped_attributes, 3);
    let span = normalised.fragments.remove(0).1.spans.remove(0);
    assert_eq!(span.name, "chat with [redacted]");
    assert_eq!(span.attributes.len(), 2);
    assert_eq!(span.attributes.get("gen_ai.response.model"), Some(&Value::Str("m".repeat(256))));
    assert!(!format!("{span:?}").contains("secret"));
}

#[test]
fn ten_thousand_attributes_leave_only_the_listed() {
    let mut span = wire(1, "x");
    span.attributes = (0..10_000).map(|at| text(&format!("custom.{at}"), "v")).collect();
    span.attributes.push(text("llm.phase", "queue"));
    let normalised = normalised(vec![span]);
    assert_eq!(normalised.dropped_attributes, 10_000);
    assert_eq!(normalised.fragments[0].1.spans[0].attributes.len(), 1);
}

#[test]
fn nul_is_replaced_and_noted() {
    let mut span = wire(1, "a\0b");
    span.attributes = vec![text("llm.model", "m\0")];
    let span = only(vec![span]);
    assert_eq!((span.name.as_str(), span.repaired), ("a\u{fffd}b", true));
    assert_eq!(span.attributes.get("llm.model"), Some(&Value::Str("m\u{fffd}".to_owned())));
    let mut of_resource = request(vec![wire(1, "x")]);
    of_resource.resource_spans[0].resource = Some(opentelemetry_proto::tonic::resource::v1::Resource {
        attributes: vec![text("service.name", "s\0")],
        ..Default::default()
    });
    let normalised = fragments(of_resource, &Limits::default(), &Dialects::default());
    assert!(normalised.fragments[0].1.spans[0].repaired);
}

#[test]
fn lists_keep_their_texts() {
    let member = |text: &str| AnyValue { value: Some(WireValue::StringValue(text.to_owned())) };
    let mut span = wire(1, "x");
    let list = ArrayValue { values: vec![member("r-1"), member("r-2")] };
    span.attributes = vec![pair("http.request.header.x-request-id", WireValue::ArrayValue(list))];
    let kept = only(vec![span]);
    let expected = Value::List(vec!["r-1".to_owned(), "r-2".to_owned()]);
    assert_eq!(kept.attributes.get("http.request.header.x-request-id"), Some(&expected));
}

#[test]
fn of_each_known_event_the_earliest_is_kept() {
    let event = |name: &str, at: u64| Event { name: name.to_owned(), time_unix_nano: at, ..Default::default() };
    let chunk = "gen_ai.content.completion.chunk";
    let mut span = wire(1, "x");
    span.events = (0..5_000).rev().map(|at| event(chunk, START + at)).collect();
    span.events.push(event("exception", START));
    span.events.push(event("first_token", u64::MAX));
    let kept = only(vec![span]);
    assert_eq!(kept.events.len(), 1);
    assert_eq!((kept.events[0].name.as_str(), kept.events[0].at.0), (chunk, START as i64));
}

#[test]
fn a_trace_keeps_its_longest_spans_and_its_batch_mates_are_unharmed() {
    let mut spans: Vec<WireSpan> =
        (1..=50).map(|id| WireSpan { end_time_unix_nano: START + id, ..wire(id, "step") }).collect();
    spans.push(WireSpan { trace_id: vec![8; 16], ..wire(1, "other") });
    let normalised = fragments(request(spans), &Limits { spans_per_trace: 10 }, &Dialects::default());
    assert_eq!(normalised.rejected.get("trace_too_large"), Some(&40));
    assert!(normalised.message.contains("--max-spans-per-trace=10"), "{}", normalised.message);
    let large = &normalised.fragments[0].1;
    assert_eq!((large.spans.len(), large.dropped), (10, 40));
    assert!(large.spans.iter().all(|span| span.end >= Some(UnixNanos(START as i64 + 41))));
    assert_eq!((normalised.fragments[1].1.spans.len(), normalised.fragments[1].1.dropped), (1, 0));
}

#[test]
fn of_equal_lengths_the_smaller_ids_stay() {
    let spans = [9, 3, 7, 1].map(|id| wire(id, "step")).to_vec();
    let normalised = fragments(request(spans), &Limits { spans_per_trace: 2 }, &Dialects::default());
    let ids: Vec<u8> = normalised.fragments[0].1.spans.iter().map(|span| span.span_id.as_bytes()[7]).collect();
    assert_eq!(ids, vec![3, 1]);
}

#[test]
fn asgi_messages_are_folded_before_the_limit() {
    let message = |id: u64, kind: &str, name: &str| WireSpan {
        parent_span_id: vec![1; 8],
        start_time_unix_nano: START + id,
        end_time_unix_nano: START + id,
        attributes: vec![text("asgi.event.type", kind)],
        ..wire(id, name)
    };
    let mut spans = vec![wire(1, "POST /v1"), message(2, "http.request", "POST /v1 http receive")];
    spans.push(message(3, "http.response.start", "POST /v1 http send"));
    spans.extend((10..200).map(|id| message(id, "http.response.body", "POST /v1 http send")));
    let normalised = fragments(request(spans), &Limits { spans_per_trace: 4 }, &Dialects::default());
    assert_eq!((normalised.rejected_spans(), normalised.folded), (0, 189));
    let ids: Vec<u8> = normalised.fragments[0].1.spans.iter().map(|span| span.span_id.as_bytes()[7]).collect();
    assert_eq!(ids, vec![1, 3, 10, 199]);
}

prop_compose! {
    fn any_span()(
        trace_id in prop_oneof![Just(vec![7; 16]), proptest::collection::vec(any::<u8>(), 0..20)],
        span_id in prop_oneof![Just(vec![1; 8]), proptest::collection::vec(any::<u8>(), 0..12)],
        parent_span_id in prop_oneof![Just(vec![]), proptest::collection::vec(any::<u8>(), 0..12)],
        name in any::<String>(),
        kind in any::<i32>(),
        start_time_unix_nano in any::<u64>(),
        end_time_unix_nano in any::<u64>(),
        key in prop_oneof![Just("llm.phase".to_owned()), Just("rid".to_owned()), any::<String>()],
        value in any::<String>(),
    ) -> WireSpan {
        let attributes = vec![text(&key, &value)];
        WireSpan {
            trace_id, span_id, parent_span_id, name, kind, start_time_unix_nano, end_time_unix_nano, attributes,
            ..Default::default()
        }
    }
}

proptest! {
    #[test]
    fn every_span_is_either_kept_or_counted(
        spans in proptest::collection::vec(any_span(), 0..30),
        limit in 1_usize..20,
    ) {
        let sent = spans.len() as u64;
        let normalised = fragments(request(spans), &Limits { spans_per_trace: limit }, &Dialects::default());
        let kept: usize = normalised.fragments.iter().map(|(_, fragment)| fragment.spans.len()).sum();
        prop_assert_eq!(sent, kept as u64 + normalised.rejected_spans() + normalised.folded);
        prop_assert_eq!(normalised.message.is_empty(), normalised.rejected_spans() == 0);
        for (_, fragment) in &normalised.fragments {
            prop_assert!(!fragment.spans.is_empty() && fragment.spans.len() <= limit);
            prop_assert!(fragment.spans.iter().all(|span| span.name.len() <= 256 && !span.name.contains('\0')));
        }
    }
}
