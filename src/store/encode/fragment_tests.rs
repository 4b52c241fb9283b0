use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::*;

fn text() -> impl Strategy<Value = String> {
    prop_oneof![Just("llm.phase".to_owned()), Just("queue".to_owned()), Just(String::new()), "[a-zé.]{1,12}"]
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        text().prop_map(Value::Str),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::Int),
        (-1000_i64..1000).prop_map(Value::Int),
        any::<f64>().prop_filter("NaN equals nothing", |number| !number.is_nan()).prop_map(Value::Double),
        vec(text(), 0..3).prop_map(Value::List),
    ]
}

fn attributes() -> impl Strategy<Value = Attributes> {
    vec((text(), value()), 0..4)
        .prop_map(|pairs| Attributes::new(pairs.into_iter().map(|(key, value)| (key.into(), value)).collect()))
}

fn id() -> impl Strategy<Value = SpanId> {
    prop_oneof![1_u64..12, 1_u64..].prop_map(|id| SpanId::from_bytes(id.to_be_bytes()).expect("not zero"))
}

fn instant() -> impl Strategy<Value = UnixNanos> {
    prop_oneof![any::<i64>(), 1_767_323_045_000_000_000_i64..1_767_323_055_000_000_000].prop_map(UnixNanos)
}

fn event() -> impl Strategy<Value = SpanEvent> {
    (text(), instant(), attributes()).prop_map(|(name, at, attributes)| SpanEvent { name, at, attributes })
}

fn span() -> impl Strategy<Value = Span> {
    let identity = (id(), option::of(id()), text(), 0..6_i32);
    let times = (instant(), option::of(instant()));
    let rest = (attributes(), vec(event(), 0..3), any::<bool>(), any::<bool>());
    let origin = (text(), attributes(), 0_u64..3);
    (identity, times, rest, origin).prop_map(|(identity, times, rest, origin)| Span {
        span_id: identity.0,
        parent: identity.1,
        name: identity.2,
        kind: SpanKind::from_number(identity.3),
        start: times.0,
        end: times.1,
        attributes: rest.0,
        events: rest.1,
        error: rest.2,
        repaired: rest.3,
        scope: Arc::new(Scope { name: origin.0 }),
        resource: Arc::new(Resource { attributes: origin.1, digest: origin.2 }),
    })
}

proptest! {
    #[test]
    fn what_was_written_is_read(spans in vec(span(), 0..8), dropped in any::<u32>()) {
        let fragment = Fragment { spans, dropped };
        prop_assert_eq!(decode_fragment(&encode_fragment(&fragment)), Ok(fragment));
    }

    #[test]
    fn damage_is_an_error_or_another_fragment(
        spans in vec(span(), 1..4), place in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>(),
    ) {
        let mut body = encode_fragment(&Fragment { spans, dropped: 0 });
        let place = place.index(body.len());
        if cut { body.truncate(place) } else { body[place] = byte }
        // It must return, whatever it says.
        let _ = decode_fragment(&body);
    }

    #[test]
    fn noise_never_panics(mut body in vec(any::<u8>(), 0..200)) {
        if let Some(version) = body.first_mut() {
            *version = 1;
        }
        let _ = decode_fragment(&body);
    }
}

#[test]
fn another_version_is_named() {
    assert_eq!(decode_fragment(&[9, 1, 2]), Err(DecodeError::Version(9)));
    assert_eq!(decode_fragment(&[]), Err(DecodeError::Empty));
}

fn native(place: u8, name: &str, kind: SpanKind, attributes: Vec<(&'static str, Value)>) -> Span {
    let resource = [
        ("service.name", Value::Str("llm-gateway".to_owned())),
        ("service.instance.id", Value::Str("gateway-7d9f8b6c5-x2x4q".to_owned())),
    ];
    let own = |pairs: Vec<(&'static str, Value)>| {
        Attributes::new(pairs.into_iter().map(|(key, value)| (key.into(), value)).collect())
    };
    let start = 1_767_323_045_000_000_000 + i64::from(place) * 17_234_567;
    let id = 0x9a3f_0012_77c4_1000_u64 + u64::from(place);
    let parent = if place == 0 { 0x6a_cfc0 } else { 0x9a3f_0012_77c4_1000 };
    Span {
        span_id: SpanId::from_bytes(id.to_be_bytes()).expect("not zero"),
        parent: SpanId::from_bytes(u64::to_be_bytes(parent)).ok(),
        name: name.to_owned(),
        kind,
        start: UnixNanos(start),
        end: Some(UnixNanos(start + 428_123_456)),
        attributes: own(attributes),
        events: Vec::new(),
        error: false,
        repaired: false,
        scope: Arc::new(Scope { name: "gateway".to_owned() }),
        resource: Arc::new(Resource { attributes: own(resource.to_vec()), digest: 0x1234_5678_9abc_def0 }),
    }
}

#[test]
fn six_native_spans_take_at_most_250_bytes() {
    let phase = |phase: &str| vec![("llm.phase", Value::Str(phase.to_owned()))];
    let mut generate = phase("generation");
    generate.push(("gen_ai.usage.output_tokens", Value::Int(180)));
    generate.push(("gen_ai.usage.input_tokens", Value::Int(412)));
    generate.push(("llm.model", Value::Str("m-7b".to_owned())));
    let spans = vec![
        native(
            0,
            "POST /v1/chat/completions",
            SpanKind::Server,
            vec![
                ("http.request.method", Value::Str("POST".to_owned())),
                ("http.response.status_code", Value::Int(200)),
            ],
        ),
        native(1, "auth.check", SpanKind::Internal, Vec::new()),
        native(2, "request.prepare", SpanKind::Internal, Vec::new()),
        native(3, "inference.acquire_slot", SpanKind::Internal, phase("queue")),
        native(4, "inference.generate", SpanKind::Client, generate),
        native(5, "response.write", SpanKind::Internal, Vec::new()),
    ];
    let fragment = Fragment { spans, dropped: 0 };
    let body = encode_fragment(&fragment);
    assert_eq!(decode_fragment(&body), Ok(fragment));
    assert!(body.len() <= 250, "{} bytes", body.len());
}
