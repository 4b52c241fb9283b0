use proptest::prelude::*;

use super::*;

fn watch(chunks: &[(i64, &str)]) -> Seen {
    let rules = Rules::default();
    let mut watch = Watch::new(&rules);
    for (millis, chunk) in chunks {
        watch.push(Nanos(millis * 1_000_000), chunk.as_bytes());
    }
    watch.finish(Nanos(1_000_000_000))
}

fn token(text: &str) -> String {
    format!("data: {{\"choices\": [{{\"delta\": {{\"content\": \"{text}\"}}}}]}}\n\n")
}

fn millis(times: &[Nanos]) -> Vec<i64> {
    times.iter().map(|time| time.0 / 1_000_000).collect()
}

const ROLE: &str = "data: {\"choices\": [{\"delta\": {\"role\": \"assistant\", \"content\": \"\"}}]}\n\n";
const THOUGHT: &str = "data: {\"choices\": [{\"delta\": {\"reasoning_content\": \"hm\"}}]}\n\n";
const USAGE: &str = "data: {\"choices\": [], \"usage\": {\"prompt_tokens\": 4, \"completion_tokens\": 3}}\n\n";

#[test]
fn each_event_has_its_class_and_its_time() {
    let seen = watch(&[
        (5, ": ok\n\n"),
        (10, ROLE),
        (20, THOUGHT),
        (40, &token("a")),
        (50, ": ping\n\n"),
        (60, &token("b")),
        (61, USAGE),
        (62, "data: [DONE]\n\n"),
    ]);
    assert_eq!(millis(&seen.tokens), [20, 40, 60]);
    assert_eq!(seen.first_event, Some(Nanos(10_000_000)));
    assert_eq!(seen.first_visible, Some(Nanos(40_000_000)));
    assert_eq!(seen.done, Some(Nanos(62_000_000)));
    assert_eq!((seen.connects, seen.heartbeats, seen.reasoning, seen.tool_calls), (1, 3, 1, 0));
    assert_eq!((seen.usage.input, seen.usage.output, seen.failed, seen.batched()), (Some(4), Some(3), None, 0));
}

#[test]
fn an_event_arrives_with_the_bytes_that_complete_it() {
    let text = token("zü");
    let bytes = text.as_bytes();
    let within = bytes.iter().position(|byte| *byte == 0xc3).expect("two bytes") + 1;
    let rules = Rules::default();
    let mut watch = Watch::new(&rules);
    watch.push(Nanos(1), &bytes[..within]);
    watch.push(Nanos(2), &bytes[within..]);
    assert_eq!(watch.finish(Nanos(3)).tokens, [Nanos(2)]);
}

#[test]
fn events_of_one_read_are_a_batch() {
    let three = format!("{}{}{}", token("a"), token("b"), token("c"));
    let seen = watch(&[(1, &token("x")), (2, &three), (3, &token("y"))]);
    assert_eq!((seen.tokens.len(), seen.batched()), (5, 3));
}

#[test]
fn an_end_marker_needs_no_blank_line() {
    assert_eq!(watch(&[(1, "data: [DONE]\n")]).done, Some(Nanos(1_000_000_000)));
    assert_eq!(watch(&[(1, "data: [DONE")]).done, None);
}

#[test]
fn a_failure_is_seen_and_its_text_is_not_kept() {
    let seen = watch(&[(1, &token("a")), (2, "data: {\"error\": {\"message\": \"the secret\"}}\n\n")]);
    assert_eq!((seen.failed, seen.tokens.len()), (Some(Nanos(2_000_000)), 1));
    assert!(!format!("{seen:?}").contains("secret"));
}

#[test]
fn numbers_show_what_is_missing() {
    let numbered = |number: i64| format!("data: {{\"sequence_number\": {number}}}\n\n");
    let seen = |numbers: &[i64]| watch(&[(1, &numbers.iter().copied().map(numbered).collect::<String>())]).sequence;
    assert_eq!(seen(&[3, 4, 5]), Some(SequenceSeen { last: 5, missing: 0 }));
    assert_eq!(seen(&[0, 1, 4, 4, 6]), Some(SequenceSeen { last: 6, missing: 3 }));
    assert_eq!(seen(&[i64::MIN, i64::MAX]).map(|seen| seen.last), Some(i64::MAX));
    assert_eq!(seen(&[]), None);
}

#[test]
fn a_huge_event_is_counted_and_skipped() {
    let huge = token(&"x".repeat(MAX_EVENT));
    let seen = watch(&[(1, &huge), (2, &token("a"))]);
    assert_eq!((seen.oversized, millis(&seen.tokens)), (1, vec![2]));
}

proptest! {
    /// However the bytes are cut, the same events are seen; only when they are complete differs.
    #[test]
    fn chunks_change_no_class(pieces in prop::collection::vec(0_usize..6, 0..30), length in 1_usize..50) {
        let pieces: Vec<String> = pieces.iter().map(|piece| match piece {
            0 => ROLE.to_owned(),
            1 => THOUGHT.to_owned(),
            2 => token("zü"),
            3 => ": ping\r\n\r\n".to_owned(),
            4 => "event: ping\rdata: {}\r\r".to_owned(),
            _ => "data: [DONE]\r\n\r\n".to_owned(),
        }).collect();
        let rules = Rules::default();
        let (mut whole, mut cut) = (Watch::new(&rules), Watch::new(&rules));
        let stream = pieces.concat();
        whole.push(Nanos(1), stream.as_bytes());
        for chunk in stream.as_bytes().chunks(length) {
            cut.push(Nanos(1), chunk);
        }
        prop_assert_eq!(whole.finish(Nanos(2)), cut.finish(Nanos(2)));
    }
}
