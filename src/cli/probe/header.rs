//! Headers with secrets in them.

use anyhow::{Context, bail};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

/// Reads headers of the form `NAME: VALUE`; `${VARIABLE}` in a value stands for what `variable` gives.
///
/// # Errors
/// A header that is none or a variable that is not set. No message holds a value.
pub fn read(texts: &[String], variable: impl Fn(&str) -> Option<String>) -> anyhow::Result<HeaderMap> {
    let mut headers = HeaderMap::new();
    for (at, text) in texts.iter().enumerate() {
        let at = at + 1;
        let (name, value) =
            text.split_once(':').with_context(|| format!("header {at} is not of the form NAME: VALUE"))?;
        let name: HeaderName = name.trim().parse().with_context(|| format!("header {at} has a name that is none"))?;
        let value = expand(value.trim(), &variable).with_context(|| format!("header {name}"))?;
        let value = HeaderValue::from_str(&value);
        let mut value = value.with_context(|| format!("header {name} has a value that no header may have"))?;
        value.set_sensitive(true);
        headers.append(name, value);
    }
    Ok(headers)
}

fn expand(text: &str, variable: &impl Fn(&str) -> Option<String>) -> anyhow::Result<String> {
    let mut expanded = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((name, after)) = after.split_once('}') else { bail!("has a ${{ without its }}") };
        let Some(value) = variable(name) else { bail!("names the variable {name}, which is not set") };
        expanded.push_str(before);
        expanded.push_str(value.trim());
        rest = after;
    }
    expanded.push_str(rest);
    Ok(expanded)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> anyhow::Result<HeaderMap> {
        read(&[text.to_owned()], |name| (name == "KEY").then(|| "hunter2\n".to_owned()))
    }

    #[test]
    fn secrets_come_from_the_environment() {
        let headers = parse("Authorization: Bearer ${KEY}").expect("a header");
        assert_eq!(headers["authorization"].to_str().expect("ASCII"), "Bearer hunter2");
        assert!(!format!("{headers:?}").contains("hunter2"));
        assert_eq!(parse("x: a$b").expect("a header")["x"], "a$b");
    }

    #[test]
    fn what_is_wrong_is_said_without_the_value() {
        for text in ["hunter2", "a b: hunter2", "x: hunter2 ${KEY", "x: hunter2 ${OTHER}", "x: hunter2\u{7f}"] {
            let error = format!("{:#}", parse(text).expect_err("wrong"));
            assert!(!error.contains("hunter2"), "{error}");
        }
        let error = format!("{:#}", parse("x: ${OTHER}").expect_err("not set"));
        assert_eq!(error, "header x: names the variable OTHER, which is not set");
    }
}
