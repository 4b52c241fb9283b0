//! What holds for every trace.

use proptest::prelude::*;
use proptest::sample::select;

use super::build::*;
use crate::{TraceInputs, explain};
use model::ReceivedRecord;
use model::{ClientRecord, Flag, Fragment, Nanos, Span, SpanKind, UnixNanos};

/// A span whose parent is any earlier one, none, or one that is not held; start and length in nanoseconds, odd ones too.
fn any_span(number: u64) -> impl Strategy<Value = Span> {
    let parent = prop_oneof![9 => 1..=number.max(2) - 1, 1 => Just(0), 1 => Just(900_u64)];
    let kind = select(vec![SpanKind::Internal, SpanKind::Server, SpanKind::Client]);
    let phase = select(vec!["", "gateway", "gpu_queue", "generation", "provider"]);
    let role = select(vec![
        "", "", "", "engine", "stage", "proxy", "attempt", "observer", "holder", "noise", "body", "writer", "whole",
    ]);
    let service = select(vec!["gw", "gw", "vllm", "sidecar"]);
    let laid = proptest::collection::vec(
        (select(vec!["decode", "prefill", "queue", "prefix", "placed", "until_child"]), 0_i64..2),
        0..3,
    );
    (parent, kind, phase, role, service, laid, -50_i64..1_500_000, -20_i64..2_000_000).prop_map(
        move |(parent, kind, phase, role, service, laid, start, length)| {
            let mut span = span(number, parent, 0, 0).kind(kind).phase(phase).role(role).of(service);
            for (key, value) in laid {
                span = span.number(key, value);
            }
            span.start = UnixNanos(start);
            span.end = (length != 7).then_some(UnixNanos(start + length));
            span
        },
    )
}

fn any_trace() -> impl Strategy<Value = Vec<Span>> {
    (2_u64..40).prop_flat_map(|count| {
        let mut spans: Vec<BoxedStrategy<Span>> = Vec::new();
        for number in 2..=count {
            spans.push(any_span(number).boxed());
        }
        (1_000_000_i64..3_000_000, spans).prop_map(|(length, mut spans)| {
            let mut entry = span(1, 0, 0, 0).server();
            entry.end = Some(UnixNanos(length));
            spans.push(entry);
            spans
        })
    })
}

fn any_record() -> impl Strategy<Value = ClientRecord> {
    (0_i64..4_000_000, proptest::option::of(1_u64..40), proptest::option::of(0_i64..2_000_000)).prop_map(
        |(duration, parent, ttft)| ClientRecord {
            duration: Some(Nanos(duration)),
            span_id: parent.map(id),
            ttft: ttft.map(Nanos),
            ..record(0)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn phases_sum_to_the_servers_total(spans in any_trace(), records in proptest::collection::vec(any_record(), 0..3)) {
        let explained = join(spans, records);
        for joined in &explained.requests {
            let request = &joined.request;
            let total = request.server.map(|side| side.total);
            prop_assert_eq!(request.phases.map(|phases| phases.total()), total);
            if let Some(phases) = request.phases {
                prop_assert!(phases.unattributed >= Nanos::ZERO);
                let parts = phases.prefill.unwrap_or_default() + phases.decode.unwrap_or_default();
                prop_assert!(parts <= phases.generation.unwrap_or_default());
            }
            if request.flags.has(Flag::ClientFromSpan) {
                let told = request.client.is_some_and(|client| client.duration.is_none());
                prop_assert!(told && !request.flags.has(Flag::NegativeEnvelope));
            }
            if let Some(pair) = request.ttft {
                let told = request.server.and_then(|side| side.ttft);
                prop_assert_eq!(Some(pair.server.total()), told);
            }
        }
    }

    #[test]
    fn order_split_and_repetition_make_no_difference(
        spans in any_trace(),
        records in proptest::collection::vec(any_record(), 0..3),
        order in any::<prop::sample::Index>(),
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..5),
        again in proptest::collection::vec(any::<prop::sample::Index>(), 0..10),
    ) {
        let expected = join(spans.clone(), records.clone());
        let mut shuffled = spans.clone();
        shuffled.rotate_left(order.index(spans.len()));
        shuffled.extend(again.iter().map(|index| index.get(&spans).clone()));
        let middle = shuffled.len() / 2;
        shuffled[..middle].reverse();
        let mut fragments: Vec<Fragment> = Vec::new();
        for cut in &cuts {
            let rest = shuffled.split_off(cut.index(shuffled.len() + 1));
            fragments.push(Fragment { spans: rest, dropped: 0 });
        }
        fragments.push(Fragment { spans: shuffled, dropped: 0 });
        let doubled = records.iter().chain(records.iter().rev()).cloned();
        let arrived = doubled.map(|record| ReceivedRecord { record, received_at: UnixNanos(5) }).collect();
        let again = explain(TraceInputs { fragments, records: arrived, ..inputs(vec![], vec![]) }, SETTLED, &read);
        let rows = |explained: &crate::Explained| {
            explained.requests.iter().chain(&explained.stray).map(|joined| (joined.request.clone(), joined.spans.clone())).collect::<Vec<_>>()
        };
        prop_assert_eq!(rows(&expected), rows(&again));

    }
}

#[test]
fn a_chain_of_ten_thousand_spans_is_painted() {
    let mut spans = vec![span(1, 0, 0, 30_000).server()];
    for number in 2..=10_000_u64 {
        let depth = i64::try_from(number).expect("small");
        let phase = if number % 2 == 0 { "gateway" } else { "generation" };
        spans.push(span(number, number - 1, depth, 30_000 - 2 * depth).phase(phase));
    }
    let request = join_one(spans, record(30_000));
    assert_eq!(request.phases.map(|phases| phases.total()), Some(ms(30_000)));
}
