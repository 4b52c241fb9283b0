//! Design, section 2: the two pairs of a streamed answer.

use super::build::*;
use model::{ClientRecord, Flag, Span};

fn streamed(duration: i64, ttft: i64) -> ClientRecord {
    ClientRecord { ttft: Some(ms(ttft)), streaming: Some(true), ..record(duration) }
}

fn spans(entry: Span) -> Vec<Span> {
    vec![entry, span(2, 1, 10, 30).phase("gpu_queue"), span(3, 1, 40, 150).phase("generation")]
}

#[test]
fn the_first_token_cuts_the_same_painting() {
    let entry = span(1, 0, 0, 200).server().number("first_token_event", 80);
    let pair = join_one(spans(entry), streamed(220, 95)).ttft.expect("both sides tell it");
    assert_eq!(pair.envelope, ms(15));
    assert_eq!(pair.server.gpu_queue, Some(ms(30)));
    assert_eq!(pair.server.generation, Some(ms(40)));
    assert_eq!(pair.server.unattributed, ms(10));
    assert_eq!(pair.server.total(), ms(80));
}

#[test]
fn an_inner_first_token_is_carried_up_by_where_its_span_lies() {
    let mut all = spans(span(1, 0, 0, 200).server());
    all[2] = span(3, 1, 40, 150).client().phase("generation");
    all.push(span(4, 3, 9_000, 140).server().of("vllm").role("engine").number("decode", 100).number("first_token", 35));
    let request = join_one(all, streamed(220, 95));
    assert_eq!(request.server.expect("a server side").ttft, Some(ms(40 + 5 + 35)));
    assert!(request.flags.has(Flag::TtftFromInner));
}

#[test]
fn an_event_is_trusted_before_an_attribute() {
    let entry = span(1, 0, 0, 200).server().number("first_token", 60);
    let mut all = spans(entry);
    all.push(span(5, 1, 70, 100).role("writer").number("first_token_event", 20));
    let request = join_one(all, streamed(220, 95));
    assert_eq!(request.server.expect("a server side").ttft, Some(ms(90)));
    assert!(!request.flags.has(Flag::TtftFromInner));
}

#[test]
fn a_side_that_does_not_tell_its_first_token_leaves_the_pair_out() {
    let silent = join_one(spans(span(1, 0, 0, 200).server()), streamed(220, 95));
    assert_eq!(silent.ttft, None);
    assert!(silent.flags.has(Flag::NoFirstToken));
    let late = span(1, 0, 0, 200).server().number("first_token_event", 201);
    let after_the_end = join_one(spans(late), streamed(220, 205));
    assert_eq!(after_the_end.ttft, None);
    assert!(after_the_end.flags.has(Flag::NoFirstToken));
    let unstreamed = join_one(spans(span(1, 0, 0, 200).server()), record(220));
    assert!(!unstreamed.flags.has(Flag::NoFirstToken));
}

#[test]
fn a_client_that_saw_the_token_before_the_server_wrote_it_leaves_only_the_pair_out() {
    let entry = span(1, 0, 0, 200).server().number("first_token_event", 80);
    let request = join_one(spans(entry), streamed(220, 70));
    assert_eq!(request.ttft, None);
    assert!(request.flags.has(Flag::NegativeTtftEnvelope));
    assert_eq!(request.network_envelope, Some(ms(20)));
}
