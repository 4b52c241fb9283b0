//! Prompts by weight, and the bodies that ask them. Nothing here is ever printed: errors tell lines and names only.

use std::path::Path;

use anyhow::{Context, bail, ensure};
use bytes::Bytes;
use rand::distr::Distribution;
use rand::distr::weighted::WeightedIndex;
use serde::Deserialize;
use serde_json::{Value, json};

/// What is asked where only a model is given.
const BUILT_IN: &str = "Count from one to thirty in words, separated by spaces.";

/// Which of OpenAI's bodies to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Form {
    /// /v1/chat/completions
    Chat,
    /// /v1/completions
    Completions,
}

impl Form {
    /// What a path asks for: chat unless it ends in `/completions` without it.
    pub fn of_path(path: &str) -> Self {
        let path = path.trim_end_matches('/');
        let plain = path.ends_with("/completions") && !path.ends_with("/chat/completions");
        if plain { Self::Completions } else { Self::Chat }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prompt {
    /// How often it is asked, relative to the others.
    #[serde(default = "one")]
    weight: f64,
    /// What the user says.
    text: Option<String>,
    /// What goes before it.
    system: Option<String>,
    /// A whole conversation instead of both.
    messages: Option<Vec<Value>>,
    /// The most tokens to ask for.
    max_tokens: Option<u64>,
}

fn one() -> f64 {
    1.0
}

/// A TOML file of prompts.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    prompt: Vec<Prompt>,
}

/// Prompts, drawn by weight.
pub struct Prompts {
    prompts: Vec<Prompt>,
    weights: WeightedIndex<f64>,
}

impl Prompts {
    /// From a file: `.toml` with `[[prompt]]` tables, anything else with one JSON object a line.
    ///
    /// # Errors
    /// A file that cannot be read or holds no prompts, without its text.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let shown = path.display();
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {shown} as text"))?;
        let toml = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("toml"));
        let prompts = if toml { from_toml(&text) } else { from_lines(&text) };
        prompts.and_then(Self::new).with_context(|| format!("{shown} is no file of prompts"))
    }

    /// The one to ask where none is given.
    pub fn built_in() -> Self {
        let text = Some(BUILT_IN.to_owned());
        let prompts = vec![Prompt { weight: one(), text, system: None, messages: None, max_tokens: None }];
        #[expect(clippy::expect_used, reason = "one prompt of weight 1")]
        Self::new(prompts).expect("a prompt")
    }

    fn new(prompts: Vec<Prompt>) -> anyhow::Result<Self> {
        for (at, prompt) in prompts.iter().enumerate() {
            let at = at + 1;
            let asks = prompt.text.is_some() != prompt.messages.is_some();
            ensure!(asks, "prompt {at} needs either text or messages");
            ensure!(prompt.messages.is_none() || prompt.system.is_none(), "prompt {at}: put system among its messages");
        }
        let weights = WeightedIndex::new(prompts.iter().map(|prompt| prompt.weight));
        let weights = weights.context("weights have to be 0 or more, and one of them over 0")?;
        Ok(Self { prompts, weights })
    }

    /// Whether all of them can be asked in a form.
    ///
    /// # Errors
    /// A conversation for a form that has none.
    pub fn check(&self, form: Form) -> anyhow::Result<()> {
        let plain = |prompt: &Prompt| prompt.messages.is_none() && prompt.system.is_none();
        if form == Form::Completions && !self.prompts.iter().all(plain) {
            bail!("a prompt has messages or system, which /completions does not know: use text, or --form chat");
        }
        Ok(())
    }

    /// One of them, by chance.
    pub fn draw(&self) -> &Prompt {
        &self.prompts[self.weights.sample(&mut rand::rng())]
    }
}

/// The parser's own message shows the line, which is text that must not be shown.
fn from_toml(text: &str) -> anyhow::Result<Vec<Prompt>> {
    match toml::from_str::<File>(text) {
        Ok(file) => Ok(file.prompt),
        Err(error) => {
            let line = error.span().map_or(1, |span| text[..span.start].lines().count().max(1));
            bail!(
                "line {line}: write [[prompt]] tables with text (or messages), and weight, system, max_tokens if wanted"
            )
        }
    }
}

fn from_lines(text: &str) -> anyhow::Result<Vec<Prompt>> {
    let mut prompts = Vec::new();
    for (at, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let Ok(prompt) = serde_json::from_str(line) else {
            let at = at + 1;
            bail!("line {at}: write an object with text (or messages), and weight, system, max_tokens if wanted");
        };
        prompts.push(prompt);
    }
    Ok(prompts)
}

/// What all bodies have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    /// Which of OpenAI's.
    pub form: Form,
    /// The model; servers of one model do without.
    pub model: Option<String>,
    /// The most tokens to ask for.
    pub max_tokens: u64,
}

impl Template {
    /// The body that asks a prompt: streamed, with the token counts at its end.
    pub fn body(&self, prompt: &Prompt) -> Bytes {
        let mut body = json!({
            "stream": true,
            "stream_options": {"include_usage": true},
            "max_tokens": prompt.max_tokens.unwrap_or(self.max_tokens),
        });
        if let Some(model) = &self.model {
            body["model"] = model.as_str().into();
        }
        match self.form {
            Form::Completions => body["prompt"] = prompt.text.as_deref().into(),
            Form::Chat => body["messages"] = messages(prompt),
        }
        Bytes::from(body.to_string())
    }
}

fn messages(prompt: &Prompt) -> Value {
    if let Some(messages) = &prompt.messages {
        return messages.clone().into();
    }
    let system = prompt.system.iter().map(|text| json!({"role": "system", "content": text}));
    let user = prompt.text.iter().map(|text| json!({"role": "user", "content": text}));
    system.chain(user).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn read(name: &str, text: &str) -> anyhow::Result<Prompts> {
        let mut file = tempfile::Builder::new().suffix(name).tempfile().expect("a file");
        file.write_all(text.as_bytes()).expect("written");
        Prompts::read(file.path())
    }

    fn body(prompts: &Prompts, form: Form) -> Value {
        let template = Template { form, model: Some("m-7b".to_owned()), max_tokens: 16 };
        serde_json::from_slice(&template.body(prompts.draw())).expect("JSON")
    }

    #[test]
    fn both_forms_of_file_are_read_and_weights_decide() {
        let toml = read(".toml", "[[prompt]]\nweight = 0\ntext = \"a\"\n[[prompt]]\nsystem = \"s\"\ntext = \"b\"\n");
        let toml = toml.expect("prompts");
        let lines = "{\"weight\": 0, \"text\": \"a\"}\n\n{\"messages\": [{\"role\": \"user\", \"content\": \"b\"}], \"max_tokens\": 9}\n";
        let lines = read(".jsonl", lines).expect("prompts");
        for _ in 0..20 {
            let system = json!({"role": "system", "content": "s"});
            let user = json!({"role": "user", "content": "b"});
            assert_eq!(
                body(&toml, Form::Chat),
                json!({"model": "m-7b", "stream": true, "stream_options": {"include_usage": true}, "max_tokens": 16,
                       "messages": [system, user]})
            );
            assert_eq!(body(&lines, Form::Chat)["messages"], json!([user]));
            assert_eq!(body(&lines, Form::Chat)["max_tokens"], 9);
        }
        assert!(toml.check(Form::Completions).is_err() && lines.check(Form::Completions).is_err());
        assert_eq!(body(&Prompts::built_in(), Form::Completions)["prompt"], BUILT_IN);
    }

    #[test]
    fn what_is_wrong_is_said_without_the_text() {
        for (name, text) in [
            (".toml", "[[prompt]]\ntext = 'hunter2'\nweigth = 'hunter2'\n"),
            (".toml", "[[prompt]]\ntext = 'hunter2\n"),
            (".toml", ""),
            (".jsonl", "{\"text\": \"hunter2\", \"weight\": \"hunter2\"}"),
            (".jsonl", "hunter2"),
            (".jsonl", "{\"text\": \"hunter2\", \"weight\": -1}"),
            (".jsonl", "{\"system\": \"hunter2\"}"),
            (".jsonl", ""),
        ] {
            let Err(error) = read(name, text) else { panic!("{text} is no file of prompts") };
            assert!(!format!("{error:#}").contains("hunter2"), "{error:#}");
        }
        let Err(error) = read(".toml", "[[prompt]]\ntext = 'a'\nweight = 'x'\n") else { panic!("wrong") };
        assert!(format!("{error:#}").contains("line 3"), "{error:#}");
    }

    #[test]
    fn the_path_tells_the_form() {
        for (path, form) in [
            ("/v1/chat/completions", Form::Chat),
            ("/v1/completions/", Form::Completions),
            ("/openai/deployments/m/completions", Form::Completions),
            ("/anything", Form::Chat),
        ] {
            assert_eq!(Form::of_path(path), form, "{path}");
        }
    }
}
