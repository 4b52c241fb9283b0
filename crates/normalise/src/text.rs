//! Texts from outside: bounded, storable, and free of what must never be stored.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Regex};

/// The longest text that is kept of a name or a value, in bytes.
pub const MAX_TEXT: usize = 256;

/// How far beyond [`MAX_TEXT`] a text is searched, so that a key that crosses the cut is found whole.
const SEARCHED: usize = 2 * MAX_TEXT;

/// The shortest run of letters and digits that a name does not need and that may be a key.
const RANDOM_RUN: usize = 24;

/// The shortest text in which a key can be told, `token=x`: most values are shorter, and need no search.
const SHORTEST_KEY: usize = 7;

/// What stands where something was taken out.
pub const REDACTED: &str = "[redacted]";

#[expect(clippy::expect_used, reason = "the pattern is a constant that the tests compile")]
static MAIL: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"[^\s@/:=&?%]+(?:@|%40)[^\s@/:=&?%]+\.[A-Za-z]{2,}").expect("a valid pattern"));

#[expect(clippy::expect_used, reason = "the pattern is a constant that the tests compile")]
static KEY: LazyLock<Regex> = LazyLock::new(|| {
    let forms = [
        r"(?i:bearer)\s+\S{6,}",
        r"(?i:basic)\s+[A-Za-z0-9+/=]{8,}",
        r"(?-u:\b)(?:sk|pk|rk)[-_][A-Za-z0-9_-]{6,}",
        r"(?-u:\b)eyJ[A-Za-z0-9_-]{8,}[A-Za-z0-9_.-]*",
        r"(?-u:\b)(?:gh[pousr]_|github_pat_|hf_|glpat-|xox[a-z]-|AKIA|AIza)[A-Za-z0-9_-]{8,}",
        r"(?i:api[-_]?key|token|secret|password)\s*[=:]\s*\S+",
    ];
    Regex::new(&forms.join("|")).expect("a valid pattern")
});

#[expect(clippy::expect_used, reason = "the pattern is a constant that the tests compile")]
static RUN: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(&format!("[A-Za-z0-9]{{{RANDOM_RUN},}}")).expect("a valid pattern"));

/// A text that may be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clean {
    pub text: String,
    /// Whether it held U+0000, which PostgreSQL refuses and which was replaced by U+FFFD.
    pub repaired: bool,
}

/// A name (of a span, a scope, an error class): without mail addresses, keys and long random tokens.
pub fn name(raw: &str) -> Clean {
    clean(raw, true)
}

/// A value: without mail addresses and keys. Long random tokens stay, since ids are such.
pub fn value(raw: &str) -> Clean {
    clean(raw, false)
}

fn clean(raw: &str, runs: bool) -> Clean {
    let mut text = Cow::Borrowed(cut(raw, SEARCHED));
    if text.contains(['@', '%']) {
        text = replaced(&MAIL, text);
    }
    if text.len() >= SHORTEST_KEY {
        text = replaced(&KEY, text);
    }
    if runs && text.len() >= RANDOM_RUN {
        text = without_runs(text);
    }
    let kept = cut(&text, MAX_TEXT);
    let repaired = kept.contains('\0');
    let text = if repaired { kept.replace('\0', "\u{fffd}") } else { kept.to_owned() };
    Clean { text, repaired }
}

fn replaced<'a>(pattern: &Regex, text: Cow<'a, str>) -> Cow<'a, str> {
    if !pattern.is_match(&text) {
        return text;
    }
    Cow::Owned(pattern.replace_all(&text, REDACTED).into_owned())
}

fn without_runs(text: Cow<'_, str>) -> Cow<'_, str> {
    let random = |run: &str| run.bytes().any(|b| b.is_ascii_digit()) && run.bytes().any(|b| b.is_ascii_alphabetic());
    if !RUN.find_iter(&text).any(|run| random(run.as_str())) {
        return text;
    }
    let replace = |found: &Captures<'_>| if random(&found[0]) { REDACTED.to_owned() } else { found[0].to_owned() };
    Cow::Owned(RUN.replace_all(&text, replace).into_owned())
}

/// The longest start of a text that has at most so many bytes and ends at a character's end.
pub fn cut(text: &str, bytes: usize) -> &str {
    if text.len() <= bytes {
        return text;
    }
    let mut end = bytes;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lose_addresses_and_keys() {
        for (raw, kept) in [
            ("GET /users/joe.doe@example.com/keys", "GET /users/[redacted]/keys"),
            ("mail joe%40example.org", "mail [redacted]"),
            ("use sk-proj-abc123DEF456", "use [redacted]"),
            ("auth Bearer abc.def.ghi", "auth [redacted]"),
            ("GET /x?api_key=hunter2&y=1", "GET /x?[redacted]"),
            ("token=x", "[redacted]"),
            ("jwt eyJhbGciOiJIUzI1NiJ9.e30.c2ln", "jwt [redacted]"),
            ("job 4bf92f3577b34da6a3ce929d0e0e4736", "job [redacted]"),
        ] {
            assert_eq!(name(raw).text, kept, "{raw}");
        }
    }

    #[test]
    fn ordinary_names_stay() {
        for raw in [
            "POST /v1/chat/completions",
            "chat claude-3-5-sonnet@20240620",
            "chat meta-llama/Llama-3.1-70B-Instruct-AWQ-INT4",
            "Scheduler [TP 0] (host:aaaa | pid:2)",
            " Req 1a2b3c4d",
            "inference.acquire_slot",
            "verify bearer token",
        ] {
            assert_eq!(name(raw).text, raw);
        }
    }

    #[test]
    fn values_keep_ids_and_lose_keys() {
        assert_eq!(value("4bf92f3577b34da6a3ce929d0e0e4736").text, "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(value("sk-live-0123456789abcdef").text, "[redacted]");
    }

    #[test]
    fn a_key_across_the_cut_is_found() {
        let raw = format!("{} sk-{}", "x ".repeat(124), "a1".repeat(40));
        assert!(!name(&raw).text.contains("sk-"), "{}", name(&raw).text);
    }

    #[test]
    fn cuts_at_a_character_and_repairs() {
        let raw = "ü".repeat(200);
        assert_eq!(name(&raw).text.len(), MAX_TEXT);
        assert_eq!(cut("aü", 2), "a");
        assert_eq!(value("a\0b"), Clean { text: "a\u{fffd}b".to_owned(), repaired: true });
    }
}
