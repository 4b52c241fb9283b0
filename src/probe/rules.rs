//! What an event says: a token, the end, an error, or nothing that a person waits for.
//!
//! The built-in rules read the streams of OpenAI (chat, completions, responses), Anthropic, TGI, llama.cpp, Gemini and
//! Cohere, and of all servers that speak one of these, vLLM and SGLang among them.

use std::str::FromStr;

use serde_json::Value;
use thiserror::Error;

use super::usage::Usage;
use crate::sse::Event;

/// What kind of token an event carries. Of several in one event the first of these counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TokenKind {
    /// Text that a person sees.
    Visible,
    /// Reasoning, which counts as a token but is not shown.
    Reasoning,
    /// A part of a call of a tool.
    ToolCall,
}

/// What marks the end of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DoneRule {
    /// An event with exactly this data.
    Data(String),
    /// An event of this name, or of this `type` in its JSON.
    Name(String),
    /// A JSON pointer that leads to a value other than null and false.
    Pointer(String),
    /// Nothing does: the stream's end is the answer's.
    Never,
}

/// A text that is no JSON pointer would match nothing, ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a JSON pointer begins with /, as /choices/0/delta/content does")]
pub struct NoPointer;

/// Reads a JSON pointer (RFC 6901).
///
/// # Errors
/// A text that is none.
pub fn pointer(text: &str) -> Result<String, NoPointer> {
    if text.starts_with('/') { Ok(text.to_owned()) } else { Err(NoPointer) }
}

impl FromStr for DoneRule {
    type Err = NoPointer;

    fn from_str(text: &str) -> Result<Self, NoPointer> {
        Ok(match text.split_once(':') {
            Some(("event", name)) => Self::Name(name.to_owned()),
            Some(("pointer", place)) => Self::Pointer(pointer(place)?),
            _ if text == "never" => Self::Never,
            _ => Self::Data(text.to_owned()),
        })
    }
}

/// Where an event tells its number in the stream, from which missing ones are found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sequence {
    /// In the event's id.
    Id,
    /// In its JSON.
    Pointer(String),
}

impl FromStr for Sequence {
    type Err = NoPointer;

    fn from_str(text: &str) -> Result<Self, NoPointer> {
        Ok(if text == "id" { Self::Id } else { Self::Pointer(pointer(text)?) })
    }
}

/// The rules by which events are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// JSON pointers to visible text; empty takes the built-in ones, and data that is no JSON object as text.
    pub content: Vec<String>,
    /// Names of the only events that carry tokens; empty takes all.
    pub token_events: Vec<String>,
    /// Names of events that only keep the connection alive.
    pub heartbeat_events: Vec<String>,
    /// What marks the end; any of them.
    pub done: Vec<DoneRule>,
    /// Where an event tells its number.
    pub sequence: Sequence,
}

/// What one event says.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reading {
    /// The kind of token that it carries.
    pub token: Option<TokenKind>,
    /// Whether it marks the end.
    pub done: bool,
    /// Whether it says that the answer failed.
    pub error: bool,
    /// Whether its name says that it only keeps the connection alive.
    pub heartbeat: bool,
    /// The tokens that it accounts for.
    pub usage: Usage,
    /// Its number in the stream.
    pub sequence: Option<i64>,
    /// The engine's own timing, as vLLM tells it.
    pub metrics: Option<Value>,
    /// The answer's id, which spans tell as `gen_ai.response.id`.
    pub answer_id: Option<String>,
}

/// Where an event tells the id of the answer it is a part of.
const ANSWER_ID: &[&str] = &["/id", "/response/id", "/message/id", "/responseId"];

/// No id is longer; what is, is something else.
const MAX_ID: usize = 128;

/// Pointers to tokens, whatever the event's type.
const TOKENS: &[(&str, TokenKind)] = &[
    // OpenAI chat and completions.
    ("/choices/0/delta/content", TokenKind::Visible),
    ("/choices/0/delta/refusal", TokenKind::Visible),
    ("/choices/0/text", TokenKind::Visible),
    ("/choices/0/delta/reasoning_content", TokenKind::Reasoning),
    ("/choices/0/delta/reasoning", TokenKind::Reasoning),
    ("/choices/0/delta/tool_calls", TokenKind::ToolCall),
    ("/choices/0/delta/function_call", TokenKind::ToolCall),
    // TGI, llama.cpp, Gemini.
    ("/token/text", TokenKind::Visible),
    ("/content", TokenKind::Visible),
    ("/candidates/0/content/parts/0/text", TokenKind::Visible),
    ("/candidates/0/content/parts/0/functionCall", TokenKind::ToolCall),
];

/// Pointers to tokens in events of one type.
const TYPED_TOKENS: &[(&str, &str, TokenKind)] = &[
    // OpenAI responses.
    ("response.output_text.delta", "/delta", TokenKind::Visible),
    ("response.refusal.delta", "/delta", TokenKind::Visible),
    ("response.reasoning_text.delta", "/delta", TokenKind::Reasoning),
    ("response.reasoning_summary_text.delta", "/delta", TokenKind::Reasoning),
    ("response.function_call_arguments.delta", "/delta", TokenKind::ToolCall),
    ("response.custom_tool_call_input.delta", "/delta", TokenKind::ToolCall),
    ("response.mcp_call_arguments.delta", "/delta", TokenKind::ToolCall),
    // Anthropic. A tool's name is generated too.
    ("content_block_delta", "/delta/text", TokenKind::Visible),
    ("content_block_delta", "/delta/thinking", TokenKind::Reasoning),
    ("content_block_delta", "/delta/partial_json", TokenKind::ToolCall),
    ("content_block_start", "/content_block/name", TokenKind::ToolCall),
    // Cohere.
    ("content-delta", "/delta/message/content/text", TokenKind::Visible),
    ("content-delta", "/delta/message/content/thinking", TokenKind::Reasoning),
    ("tool-call-start", "/delta/message/tool_calls", TokenKind::ToolCall),
    ("tool-call-delta", "/delta/message/tool_calls", TokenKind::ToolCall),
];

impl Default for Rules {
    fn default() -> Self {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<String>>();
        let ends = ["response.completed", "response.incomplete", "message_stop", "message-end", "done", "end"];
        let pointers = ["/generated_text", "/stop", "/candidates/0/finishReason"];
        let mut done = vec![DoneRule::Data("[DONE]".to_owned())];
        done.extend(names(&ends).into_iter().map(DoneRule::Name));
        done.extend(names(&pointers).into_iter().map(DoneRule::Pointer));
        Self {
            content: Vec::new(),
            token_events: Vec::new(),
            heartbeat_events: names(&["ping", "heartbeat", "keepalive", "keep-alive"]),
            done,
            sequence: Sequence::Pointer("/sequence_number".to_owned()),
        }
    }
}

impl Rules {
    /// Whether an end marker is to be expected at all.
    pub fn expect_done(&self) -> bool {
        self.done.iter().any(|rule| *rule != DoneRule::Never)
    }

    pub fn read(&self, event: &Event) -> Reading {
        let json = serde_json::from_str::<Value>(&event.data).ok().filter(Value::is_object);
        let said = Said { event, json: json.as_ref() };
        let mut reading = Reading {
            done: self.done.iter().any(|rule| said.is_done(rule)),
            error: said.is_error(),
            heartbeat: said.is_named(&self.heartbeat_events),
            sequence: self.sequence(&said),
            ..Reading::default()
        };
        if let Some(json) = said.json {
            reading.usage = Usage::read(json);
            reading.answer_id = answer_id(json);
            reading.metrics = json.get("metrics").filter(|metrics| metrics.is_object()).cloned();
        }
        if !reading.error && !reading.heartbeat {
            reading.token = self.token(&said, reading.done);
        }
        reading
    }

    fn token(&self, said: &Said<'_>, done: bool) -> Option<TokenKind> {
        if !self.token_events.is_empty() && !said.is_named(&self.token_events) {
            return None;
        }
        let Some(json) = said.json else {
            // Text as it is, from a server that wraps it in nothing.
            return (!done && self.content.is_empty()).then_some(TokenKind::Visible);
        };
        if !self.content.is_empty() {
            let told = self.content.iter().any(|pointer| holds(json, pointer));
            return told.then_some(TokenKind::Visible);
        }
        let kind = said.kind();
        let typed = TYPED_TOKENS.iter().filter(|rule| kind == Some(rule.0)).map(|rule| (rule.1, rule.2));
        let found = TOKENS.iter().copied().chain(typed).filter(|(pointer, _)| holds(json, pointer));
        found.map(|(_, kind)| kind).min()
    }

    fn sequence(&self, said: &Said<'_>) -> Option<i64> {
        match &self.sequence {
            Sequence::Id => said.event.id.as_deref()?.parse().ok(),
            Sequence::Pointer(pointer) => said.json?.pointer(pointer)?.as_i64(),
        }
    }
}

/// An event with its JSON.
struct Said<'a> {
    event: &'a Event,
    json: Option<&'a Value>,
}

impl Said<'_> {
    /// The type in the JSON, where many servers tell it besides or instead of the event's name.
    fn kind(&self) -> Option<&str> {
        let told = self.json.and_then(|json| json.get("type")).and_then(Value::as_str);
        told.or(self.event.name.as_deref())
    }

    fn has_name(&self, name: &str) -> bool {
        self.event.name.as_deref() == Some(name) || self.kind() == Some(name)
    }

    fn is_named(&self, names: &[String]) -> bool {
        names.iter().any(|name| self.has_name(name))
    }

    fn is_done(&self, rule: &DoneRule) -> bool {
        match rule {
            DoneRule::Data(data) => self.event.data.trim() == data,
            DoneRule::Name(name) => self.has_name(name),
            DoneRule::Pointer(pointer) => self.json.is_some_and(|json| holds(json, pointer)),
            DoneRule::Never => false,
        }
    }

    /// A failure in the middle of a stream, for which the status is too late.
    fn is_error(&self) -> bool {
        let told = |json: &Value| holds(json, "/error") || json.get("object").is_some_and(|object| object == "error");
        self.has_name("error") || self.has_name("response.failed") || self.json.is_some_and(told)
    }
}

fn answer_id(json: &Value) -> Option<String> {
    let told = ANSWER_ID.iter().find_map(|pointer| json.pointer(pointer)?.as_str())?;
    let is_id = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b':');
    (!told.is_empty() && told.len() <= MAX_ID && told.bytes().all(is_id)).then(|| told.to_owned())
}

/// Whether a pointer leads to something: null, false and what is empty are nothing.
fn holds(json: &Value, pointer: &str) -> bool {
    match json.pointer(pointer) {
        None | Some(Value::Null) => false,
        Some(Value::Bool(bool)) => *bool,
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Array(list)) => !list.is_empty(),
        Some(Value::Object(object)) => !object.is_empty(),
        Some(Value::Number(_)) => true,
    }
}

#[cfg(test)]
mod tests;
