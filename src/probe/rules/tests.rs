use serde_json::{Value, json};

use super::*;

fn event(name: Option<&str>, data: &str) -> Event {
    Event { name: name.map(str::to_owned), data: data.to_owned(), ..Event::default() }
}

fn read(data: Value) -> Reading {
    Rules::default().read(&event(None, &data.to_string()))
}

fn delta(delta: Value) -> Value {
    json!({"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

#[test]
fn what_holds_nothing_is_no_token() {
    for data in [
        delta(json!({"role": "assistant"})),
        delta(json!({"role": "assistant", "content": "", "refusal": null})),
        delta(json!({"content": null, "tool_calls": []})),
        delta(json!({})),
        json!({"choices": [], "usage": {"prompt_tokens": 4, "completion_tokens": 9}}),
        json!({"choices": [{"index": 0, "text": ""}]}),
        json!({"type": "message_start", "message": {"content": [], "usage": {"input_tokens": 4}}}),
        json!({"type": "content_block_start", "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "delta": {"type": "signature_delta", "signature": "abc"}}),
        json!({"type": "response.created", "response": {"error": null}}),
        json!({"type": "response.output_text.done", "text": "all of it"}),
        json!({"type": "ping"}),
    ] {
        let reading = read(data.clone());
        assert_eq!((reading.token, reading.done, reading.error), (None, false, false), "{data}");
    }
}

#[test]
fn tokens_of_each_kind_are_found_in_each_dialect() {
    use TokenKind::{Reasoning, ToolCall, Visible};
    for (data, kind) in [
        (delta(json!({"content": " "})), Visible),
        (delta(json!({"role": "assistant", "content": "Hi"})), Visible),
        (delta(json!({"content": "a", "reasoning": "b"})), Visible),
        (delta(json!({"content": "", "reasoning_content": "b"})), Reasoning),
        (delta(json!({"reasoning": "b"})), Reasoning),
        (delta(json!({"tool_calls": [{"index": 0, "function": {"name": "f", "arguments": ""}}]})), ToolCall),
        (json!({"choices": [{"index": 0, "text": "a"}]}), Visible),
        (json!({"type": "response.output_text.delta", "delta": "a"}), Visible),
        (json!({"type": "response.reasoning_summary_text.delta", "delta": "a"}), Reasoning),
        (json!({"type": "response.function_call_arguments.delta", "delta": "{"}), ToolCall),
        (json!({"type": "content_block_delta", "delta": {"type": "text_delta", "text": "a"}}), Visible),
        (json!({"type": "content_block_delta", "delta": {"type": "thinking_delta", "thinking": "a"}}), Reasoning),
        (json!({"type": "content_block_delta", "delta": {"partial_json": "{"}}), ToolCall),
        (json!({"type": "content_block_start", "content_block": {"type": "tool_use", "name": "f"}}), ToolCall),
        (json!({"token": {"id": 7, "text": "a"}, "generated_text": null}), Visible),
        (json!({"content": "a", "stop": false}), Visible),
        (json!({"candidates": [{"content": {"parts": [{"text": "a"}]}}]}), Visible),
        (json!({"type": "content-delta", "delta": {"message": {"content": {"text": "a"}}}}), Visible),
    ] {
        let reading = read(data.clone());
        assert_eq!((reading.token, reading.done, reading.error), (Some(kind), false, false), "{data}");
    }
}

#[test]
fn each_dialect_has_its_end_marker() {
    let rules = Rules::default();
    assert!(rules.read(&event(None, "[DONE]")).done);
    assert!(rules.read(&event(Some("done"), "bye")).done);
    assert!(rules.read(&event(Some("message_stop"), "{}")).done);
    for data in [
        json!({"type": "response.completed", "response": {}}),
        json!({"type": "message_stop"}),
        json!({"token": {"text": "a"}, "generated_text": "all of it"}),
        json!({"content": "", "stop": true, "tokens_predicted": 9}),
    ] {
        assert!(read(data.clone()).done, "{data}");
    }
    assert!(!read(delta(json!({"content": "[DONE]"}))).done, "in the text it marks nothing");
    assert_eq!(rules.read(&event(None, "[DONE]")).token, None);
}

#[test]
fn errors_in_the_middle_are_seen() {
    let rules = Rules::default();
    assert!(rules.read(&event(Some("error"), "anything")).error);
    for data in [
        json!({"error": {"message": "out of memory", "code": 500}}),
        json!({"error": "overloaded", "error_type": "overloaded"}),
        json!({"object": "error", "message": "out of memory"}),
        json!({"type": "error", "error": {"type": "overloaded_error"}}),
        json!({"type": "response.failed", "response": {}}),
    ] {
        assert!(read(data.clone()).error, "{data}");
    }
}

#[test]
fn plain_text_is_a_token_and_a_heartbeat_is_none() {
    let rules = Rules::default();
    for text in ["Hello", "5", "\"quoted\"", "[1]", "{not JSON"] {
        assert_eq!(rules.read(&event(None, text)).token, Some(TokenKind::Visible), "{text}");
    }
    let ping = rules.read(&event(Some("ping"), "2026-01-02"));
    assert_eq!((ping.token, ping.heartbeat), (None, true));
}

#[test]
fn rules_can_be_set() {
    let rules = Rules {
        content: vec!["/answer/part".to_owned()],
        token_events: vec!["token".to_owned()],
        heartbeat_events: vec!["tick".to_owned()],
        done: vec!["event:bye".parse().expect("a rule"), "pointer:/last".parse().expect("a rule")],
        sequence: "id".parse().expect("a rule"),
    };
    let token = |name, data: Value| rules.read(&event(name, &data.to_string())).token;
    assert_eq!(token(Some("token"), json!({"answer": {"part": "a"}})), Some(TokenKind::Visible));
    assert_eq!(token(None, json!({"answer": {"part": "a"}})), None, "of another name");
    assert_eq!(token(Some("token"), delta(json!({"content": "a"}))), None, "the built-in rules do not apply");
    assert_eq!(rules.read(&event(Some("token"), "text")).token, None);
    assert!(rules.read(&event(Some("tick"), "x")).heartbeat);
    assert!(rules.read(&event(Some("bye"), "x")).done && rules.read(&event(None, r#"{"last": true}"#)).done);
    assert!(!rules.read(&event(None, "[DONE]")).done);
    let numbered = Event { id: Some("12".to_owned()), data: "x".to_owned(), ..Event::default() };
    assert_eq!(rules.read(&numbered).sequence, Some(12));
    assert!(rules.expect_done());
    assert_eq!("pointer:last".parse::<DoneRule>(), Err(NoPointer));
    assert_eq!("sequence_number".parse::<Sequence>(), Err(NoPointer));
    assert!(!Rules { done: vec!["never".parse().expect("a rule")], ..rules }.expect_done());
}

#[test]
fn the_engines_own_timing_is_kept() {
    let reading = read(json!({"choices": [], "metrics": {"queue_time_ms": 3.5, "time_to_first_token_ms": 20}}));
    assert_eq!(reading.metrics, Some(json!({"queue_time_ms": 3.5, "time_to_first_token_ms": 20})));
    assert_eq!(read(json!({"metrics": "none"})).metrics, None);
}

#[test]
fn the_answers_id_is_one_or_it_is_not_taken() {
    let id = |data: Value| read(data).answer_id;
    assert_eq!(id(json!({"id": "chatcmpl-12ab", "choices": []})).as_deref(), Some("chatcmpl-12ab"));
    assert_eq!(id(json!({"type": "message_start", "message": {"id": "msg_01"}})).as_deref(), Some("msg_01"));
    assert_eq!(id(json!({"type": "response.created", "response": {"id": "resp_1"}})).as_deref(), Some("resp_1"));
    for other in [json!(""), json!(7), json!("some words"), json!("a".repeat(129)), json!("joe@example.org")] {
        assert_eq!(id(json!({"id": other})), None, "{other}");
    }
}
