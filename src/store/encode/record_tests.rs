use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::*;

fn nanos() -> impl Strategy<Value = Option<Nanos>> {
    option::of(any::<i64>().prop_map(Nanos))
}

fn summary() -> impl Strategy<Value = StreamSummary> {
    let counts = vec(option::of(any::<i64>()), 8);
    (counts, vec(nanos(), 6), option::of(any::<bool>())).prop_map(|(counts, times, done_received)| StreamSummary {
        business_events: counts[0],
        batched_events: counts[1],
        p50_gap: times[0],
        p95_gap: times[1],
        p99_gap: times[2],
        max_gap: times[3],
        gaps_over_1s: counts[2],
        done_received,
        last_seq: counts[3],
        missing_seq: counts[4],
        last_event: times[4],
        tokens_after_first: counts[5],
        buffered_events: counts[6],
        buffer_silence: times[5],
        buffer_burst: counts[7],
    })
}

fn labels() -> impl Strategy<Value = Dimensions> {
    vec((0..DIMENSIONS.len(), "[a-zé]{1,8}"), 0..5)
        .prop_map(|pairs| Dimensions(pairs.into_iter().map(|(place, label)| (DIMENSIONS[place], label)).collect()))
}

fn metrics() -> impl Strategy<Value = ResponseMetrics> {
    (vec(nanos(), 6), 0..MetricsKind::ALL.len()).prop_map(|(times, kind)| ResponseMetrics {
        kind: MetricsKind::ALL[kind],
        total: times[0],
        gateway: times[1],
        queue: times[2],
        prefill: times[3],
        decode: times[4],
        inference: times[5],
    })
}

fn record() -> impl Strategy<Value = ClientRecord> {
    let identity = (1_u128.., option::of(1_u64..), option::of(any::<bool>()), option::of("[a-z0-9]{0,20}"));
    let times = (option::of(any::<i64>()), vec(nanos(), 13));
    let facts = (vec(option::of(any::<bool>()), 2), vec(option::of(any::<i64>()), 3), 0..5_usize, any::<bool>());
    let texts = vec(option::of("[a-z ]{0,10}"), 3);
    let parts = (option::of(summary()), option::of(metrics()), labels());
    (identity, times, facts, texts, parts).prop_map(|(identity, (started, times), facts, texts, parts)| ClientRecord {
        trace_id: TraceId::from_bytes(identity.0.to_be_bytes()).expect("not zero"),
        span_id: identity.1.map(|id| SpanId::from_bytes(id.to_be_bytes()).expect("not zero")),
        sampled: identity.2,
        request_id: identity.3,
        started_at: started.map(UnixNanos),
        duration: times[0],
        wall: times[1],
        setup: Setup { blocked: times[2], dns: times[3], connect: times[4], tls: times[5] },
        client_queue: times[6],
        headers: times[7],
        sending: times[8],
        waiting: times[9],
        receiving: times[10],
        ttft: times[11],
        ttft_visible: times[12],
        streaming: facts.0[0],
        status: facts.1[0],
        result: ResultClass::ALL[facts.2],
        error: texts[0].clone(),
        input_tokens: facts.1[1],
        output_tokens: facts.1[2],
        stream: parts.0,
        response_metrics: parts.1,
        headers_only: facts.3,
        cold_start: facts.0[1],
        run: texts[1].clone(),
        scenario: texts[2].clone(),
        dimensions: parts.2,
    })
}

proptest! {
    #[test]
    fn what_was_written_is_read(record in record()) {
        prop_assert_eq!(decode_record(record.trace_id, &encode_record(&record)), Ok(record));
    }

    #[test]
    fn labels_do_not_change_the_identity(record in record(), label in "[a-z]{1,5}") {
        let mut again = record.clone();
        again.run = Some(label.clone());
        again.error = Some(label.clone());
        again.started_at = None;
        again.dimensions.set(Dimension::Pool, Some(label));
        prop_assert_eq!(record_identity(&again), record_identity(&record));
        again.headers_only = !again.headers_only;
        prop_assert_ne!(record_identity(&again), record_identity(&record));
    }

    #[test]
    fn noise_never_panics(mut body in vec(any::<u8>(), 0..200), trace in 1_u128..) {
        if let Some(version) = body.first_mut() {
            *version = 1;
        }
        // It must return, whatever it says.
        let _ = decode_record(TraceId::from_bytes(trace.to_be_bytes()).expect("not zero"), &body);
    }
}

#[test]
fn timing_stored_without_a_kind_is_vllms() {
    #[derive(Message)]
    struct Older {
        #[prost(sint64, optional, tag = "1")]
        queue: Option<i64>,
        #[prost(sint64, optional, tag = "3")]
        decode: Option<i64>,
    }
    let older = Older { queue: Some(5), decode: Some(-7) }.encode_to_vec();
    let read = <MetricsBody as Message>::decode(older.as_slice()).expect("fields of the same numbers").into_metrics();
    let told = ResponseMetrics { queue: Some(Nanos(5)), decode: Some(Nanos(-7)), ..ResponseMetrics::default() };
    assert_eq!(read, Ok(told));
}

#[test]
fn every_label_has_its_own_place() {
    for dimension in Dimension::ALL {
        assert_eq!(DIMENSIONS.iter().filter(|known| *known == dimension).count(), 1, "{}", dimension.name());
    }
}
