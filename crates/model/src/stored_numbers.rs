//! The numbers under which the database and stored bodies hold these types. What is stored outlives the program that
//! wrote it: a number may be added here, and none may change or be given to something else.

use crate::{Completeness, EventKind, JoinMethod, MetricsKind, ResultClass, Side, SpanKind, State};

#[test]
fn columns_of_requests() {
    assert_eq!(
        State::ALL.map(|state| (state as i16, state.name())),
        [(0, "pending"), (1, "excluded"), (2, "matched"), (3, "client_only"), (4, "server_only")]
    );
    assert_eq!(
        ResultClass::ALL.map(|class| (class as i16, class.name())),
        [(0, "ok"), (1, "error"), (2, "timeout"), (3, "cancelled"), (4, "truncated")]
    );
    let completeness = [Completeness::Ok, Completeness::NoEnd, Completeness::Missing, Completeness::Both];
    assert_eq!(completeness.map(|class| class as i16), [0, 1, 2, 3]);
    assert_eq!([JoinMethod::TraceId, JoinMethod::RequestId].map(|method| method as i16), [0, 1]);
}

#[test]
fn bodies_of_arrivals() {
    assert_eq!(
        EventKind::ALL.map(|kind| (kind as u32, kind.name())),
        [(0, "connect"), (1, "business"), (2, "heartbeat"), (3, "done")]
    );
    assert_eq!([Side::Client, Side::Server].map(|side| side as u32), [0, 1]);
    let kinds: Vec<_> = MetricsKind::ALL.iter().map(|kind| (*kind as u32, kind.name())).collect();
    let known = [
        (0, "vllm"),
        (1, "vllm_headers"),
        (2, "tgi_headers"),
        (3, "ollama"),
        (4, "llama_cpp"),
        (5, "server_timing"),
        (6, "litellm_headers"),
    ];
    assert_eq!(kinds, known);
    let kinds = ["unspecified", "internal", "server", "client", "producer", "consumer"];
    assert_eq!((0..6).map(|number| SpanKind::from_number(number).name()).collect::<Vec<_>>(), kinds);
}

#[test]
fn every_number_leads_back() {
    assert!(State::ALL.iter().all(|state| State::from_number(*state as i16) == Some(*state)));
    assert!(ResultClass::ALL.iter().all(|class| ResultClass::from_number(*class as i16) == Some(*class)));
    assert!(Completeness::ALL.iter().all(|class| Completeness::from_number(*class as i16) == Some(*class)));
    assert!(EventKind::ALL.iter().all(|kind| EventKind::from_number(*kind as u32) == Some(*kind)));
    assert!(MetricsKind::ALL.iter().all(|kind| MetricsKind::from_number(*kind as u32) == Some(*kind)));
    for number in 0..2 {
        assert_eq!(JoinMethod::from_number(number).map(|method| method as i16), Some(number));
    }
    for number in 0..6 {
        assert_eq!(SpanKind::from_number(number) as i32, number);
    }
}
