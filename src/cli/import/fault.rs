//! A tool's text of a failure as a class of low cardinality; the text itself may quote a prompt and goes nowhere.

use reqwest::StatusCode;

use crate::cli::record_line::RecordLine;
use model::ResultClass;

/// How names of exceptions end. Any other word may be one of a prompt.
const CLASSES: &[&str] = &["Error", "Exception", "Timeout", "Failure", "Cancelled", "Disconnected"];

/// What a text tells of a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The HTTP status, where the text names one.
    pub status: Option<i64>,
    pub class: String,
}

impl Fault {
    /// Notes it in a record. A request may fail after a good status; a failing status says by itself how it ended.
    pub fn note(self, line: &mut RecordLine) {
        line.status = line.status.or(self.status);
        if line.result.is_none() && line.status.is_none_or(|status| status < 400) {
            let timeout = self.class.to_ascii_lowercase().contains("timeout");
            line.result = Some(if timeout { ResultClass::Timeout } else { ResultClass::Error });
        }
        line.error = Some(self.class);
    }
}

/// Reads a message, a Python traceback, or the representation of a Python exception.
pub fn read(text: &str) -> Fault {
    let message = last_line(text);
    if let Some(status) = by_reason(message) {
        return Fault { status: Some(status), class: format!("http_{status}") };
    }
    let name = exception(message).map(str::to_owned);
    Fault { status: by_number(message), class: name.unwrap_or_else(|| plain(message).to_owned()) }
}

/// A traceback ends with the exception itself.
fn last_line(text: &str) -> &str {
    let traceback = text.trim_start().starts_with("Traceback ");
    let last = text.lines().rev().find(|line| !line.trim().is_empty());
    if traceback { last.unwrap_or_default().trim() } else { text.trim() }
}

/// A whole text that is the reason phrase of a failing status.
fn by_reason(message: &str) -> Option<i64> {
    let found = (400..600).find(|status| {
        let reason = StatusCode::from_u16(*status).ok().and_then(|status| status.canonical_reason());
        reason.is_some_and(|reason| reason.eq_ignore_ascii_case(message))
    });
    found.map(i64::from)
}

/// A status as httpx and requests write it: `Client error '429 Too Many Requests' for url`, `503 Server Error: …`.
fn by_number(message: &str) -> Option<i64> {
    let lower = message.to_ascii_lowercase();
    if !lower.contains("client error") && !lower.contains("server error") {
        return None;
    }
    let words = message.split(|letter: char| !letter.is_ascii_alphanumeric());
    words.filter(|word| word.len() == 3).filter_map(|word| word.parse().ok()).find(|status| (400..600).contains(status))
}

/// The name of an exception at the start, without its modules: `aiohttp.ClientError: …`, `ReadTimeout('…')`.
fn exception(message: &str) -> Option<&str> {
    let end = message.find(|letter: char| !(letter.is_ascii_alphanumeric() || matches!(letter, '_' | '.')));
    let (path, rest) = message.split_at(end.unwrap_or(message.len()));
    let name = path.rsplit('.').next()?;
    let is_class = CLASSES.iter().any(|class| name.ends_with(class));
    let is_one_word = rest.is_empty() || rest.starts_with([':', '(']);
    (is_class && is_one_word).then_some(name)
}

fn plain(message: &str) -> &'static str {
    let lower = message.to_ascii_lowercase();
    if lower.contains("timeout") || lower.contains("timed out") {
        "timeout"
    } else if lower.contains("cancel") {
        "cancelled"
    } else {
        "error"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_told_by_their_class() {
        let traceback = "Traceback (most recent call last):\n  File \"x.py\", line 1, in f\n    raise\n\
                         aiohttp.client_exceptions.ClientConnectorError: Cannot connect to host secret:80\n";
        for (text, status, class) in [
            (traceback, None, "ClientConnectorError"),
            ("Service Unavailable", Some(503), "http_503"),
            ("HTTPError('503 Server Error: Service Unavailable for url: /v1')", Some(503), "HTTPError"),
            ("Client error '429 Too Many Requests' for url 'http://127.0.0.1:80/'", Some(429), "error"),
            ("ReadTimeout('')", None, "ReadTimeout"),
            ("ConnectionRefusedError(111, 'Connection refused')", None, "ConnectionRefusedError"),
            ("Never received a valid chunk to calculate TTFT.", None, "error"),
            ("the request timed out after 300 s", None, "timeout"),
            ("Request was cancelled", None, "cancelled"),
            ("Please tell me the secret", None, "error"),
            ("Hello: a prompt of 404 words", None, "error"),
            ("", None, "error"),
        ] {
            assert_eq!(read(text), Fault { status, class: class.to_owned() }, "{text}");
        }
    }
}
