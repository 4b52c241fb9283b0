//! The configuration file's own dialect rules: the tables `[[dialects]]` and `[[dialects.rules]]`.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use thiserror::Error;
use toml::{Table, Value};

use super::file::{self, FileError};
use normalise::Dialects;
use normalise::dialect;
use normalise::rules::{OwnDialect, Rule};

/// Why the dialects of a configuration file cannot be used.
#[derive(Debug, Error)]
pub enum DialectError {
    /// The file itself cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// The table as a whole.
    #[error("{}: dialects {reason}", path.display())]
    Table {
        /// The file.
        path: PathBuf,
        /// What is wrong and what to do.
        reason: &'static str,
    },
    /// A dialect as a whole.
    #[error("{}: dialect {dialect}: {reason}", path.display())]
    Dialect {
        /// The file.
        path: PathBuf,
        /// Its name, or its place.
        dialect: String,
        /// What is wrong and what to do.
        reason: String,
    },
    /// A field of a rule.
    #[error("{}: dialect {dialect}, {rule}: {field}{reason}", path.display())]
    Rule {
        /// The file.
        path: PathBuf,
        /// The dialect's name, or its place.
        dialect: String,
        /// The rule's place, and its name where it has one.
        rule: String,
        /// The field, with a colon; empty where it is the rule as a whole.
        field: String,
        /// What is wrong and what to do.
        reason: String,
    },
}

/// One `[[dialects]]` table; its rules are read one by one, so that each can be named.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: String,
    rules: Vec<Value>,
}

/// Reads the dialects of a configuration file; where it has none, only the built-in ones are left.
///
/// # Errors
/// [`DialectError`], which names the file, the rule and the field.
pub fn read(path: &Path) -> Result<Dialects, DialectError> {
    let mut table = file::table(path)?;
    of_table(&mut table, path)
}

fn of_table(table: &mut Table, path: &Path) -> Result<Dialects, DialectError> {
    let written = match table.remove(file::DIALECTS) {
        None => return Ok(Dialects::default()),
        Some(Value::Array(written)) => written,
        Some(_) => {
            let reason = "is no list of tables; write [[dialects]] with two brackets";
            return Err(DialectError::Table { path: path.to_owned(), reason });
        }
    };
    let mut own: Vec<OwnDialect> = Vec::with_capacity(written.len());
    for (at, value) in (1..).zip(written) {
        let reader = Reader { path, dialect: shown(&value, at) };
        let dialect = reader.dialect(value)?;
        let taken = dialect::built_in().any(|known| known.name.split(", ").any(|name| name == dialect.name));
        if taken || own.iter().any(|known| known.name == dialect.name) {
            return Err(reader.error("there is one of this name already; give it another name"));
        }
        own.push(dialect);
    }
    Ok(Dialects::new(own))
}

/// A table's name in quotation marks, else its place.
fn shown(value: &Value, at: usize) -> String {
    match value.get("name").and_then(Value::as_str) {
        Some(name) => format!("{name:?}"),
        None => at.to_string(),
    }
}

/// Where an error is.
struct Reader<'a> {
    path: &'a Path,
    dialect: String,
}

impl Reader<'_> {
    fn error(&self, reason: impl Into<String>) -> DialectError {
        DialectError::Dialect { path: self.path.to_owned(), dialect: self.dialect.clone(), reason: reason.into() }
    }

    fn dialect(&self, value: Value) -> Result<OwnDialect, DialectError> {
        let written = Written::deserialize(value).map_err(|error| self.error(one_line(&error)))?;
        if written.name.trim().is_empty() {
            return Err(self.error("has an empty name; give one, which is shown beside what its rules decide"));
        }
        if written.rules.is_empty() {
            return Err(self.error("has no rules; add [[dialects.rules]]"));
        }
        let rules = (1..).zip(written.rules).map(|(at, value)| self.rule(value, at)).collect::<Result<_, _>>()?;
        Ok(OwnDialect { name: written.name, rules })
    }

    fn rule(&self, value: Value, at: usize) -> Result<Rule, DialectError> {
        let place = format!("rule {at}");
        let named = value.get("name").and_then(Value::as_str).filter(|name| !name.is_empty());
        let shown = named.map_or_else(|| place.clone(), |name| format!("{place} {name:?}"));
        let wrong = |field: String, reason: String| DialectError::Rule {
            path: self.path.to_owned(),
            dialect: self.dialect.clone(),
            rule: shown.clone(),
            field: if field.is_empty() { field } else { format!("{field}: ") },
            reason,
        };
        let mut rule: Rule = serde_path_to_error::deserialize(value).map_err(|error| {
            // A key that is not known is no part of the path: it stands as a question mark, and in the message.
            let field = error.path().to_string();
            wrong(field.trim_end_matches('?').trim_end_matches('.').to_owned(), one_line(error.inner()))
        })?;
        rule.check().map_err(|error| wrong(error.field.to_owned(), error.reason.to_owned()))?;
        if rule.name.is_empty() {
            rule.name = place;
        }
        Ok(rule)
    }
}

/// The first line of an error; those below repeat where it is.
fn one_line(error: &toml::de::Error) -> String {
    error.message().lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Dialects, String> {
        let mut table: Table = text.parse().expect("TOML");
        of_table(&mut table, Path::new("t.toml")).map_err(|error| error.to_string())
    }

    fn refused(rule: &str) -> String {
        let text = format!("[[dialects]]\nname = \"acme\"\n[[dialects.rules]]\n{rule}");
        read(&text).expect_err("refused")
    }

    #[test]
    fn a_file_without_dialects_has_the_built_in_ones() {
        assert!(read("settle = \"1s\"").expect("taken").own().is_empty());
    }

    #[test]
    fn rules_are_named_by_their_place_where_they_have_no_name() {
        let text = "[[dialects]]\nname = \"acme\"\n\
                    [[dialects.rules]]\nmatch = { name = \"a\" }\n\
                    [[dialects.rules]]\nname = \"b\"\nmatch = { kind = [\"client\", \"server\"] }";
        let dialects = read(text).expect("taken");
        let names: Vec<&str> = dialects.own()[0].rules.iter().map(|rule| rule.name.as_str()).collect();
        assert_eq!(names, ["rule 1", "b"]);
    }

    #[test]
    fn errors_name_the_file_the_rule_the_field_and_what_to_do() {
        for (rule, said) in [
            ("name = \"x\"", "t.toml: dialect \"acme\", rule 1 \"x\": missing field `match`"),
            ("match = {}", "rule 1: match: is empty, so it would match every span; give scope, name"),
            ("match = { name = \"a\" }\nphase = \"gpu\"", "rule 1: phase: unknown variant `gpu`, expected one of"),
            ("match = { name = \"a\" }\nphsae = \"queue\"", "rule 1: phsae: unknown field `phsae`, expected one of"),
            ("match = { nam = \"a\" }", "match.nam: unknown field `nam`, expected one of `scope`"),
            ("match = { name = \"regex:(\" }", "match.name: \"(\" is no regular expression"),
            ("match = { kind = \"sever\" }", "match.kind: \"sever\" is no kind; give server, client"),
            (
                "match = { has = [\"gen_ai.prompt\"] }",
                "match.has[0]: \"gen_ai.prompt\" holds prompts, answers, addresses or credentials, which are never stored",
            ),
            ("match = { attributes = { \"input.value\" = \"x\" } }", "\"input.value\" holds prompts"),
            ("match = { attributes = { a = [1] } }", "match.attributes.a: is not a text, a number or a boolean"),
            (
                "match = { name = \"a\" }\ndurations = [{ key = \"a\", unit = \"sec\", phase = \"queue\" }]",
                "durations[0].unit: unknown variant `sec`, expected one of `s`, `ms`",
            ),
            (
                "match = { name = \"a\" }\ndurations = [{ key = \"a\", phase = \"queue\" }]",
                "durations.unit: goes with a key; give s, ms",
            ),
            (
                "match = { name = \"a\" }\ndurations = [{ phase = \"queue\" }]",
                "durations: has one source; give either key",
            ),
            ("match = { name = \"a\" }\nsub = \"decode\"", "rule 1: sub: is a part of a generation"),
            ("match = { name = \"a\" }\nfirst_token = {}", "first_token: has one source; give either event"),
            (
                "match = { name = \"a\" }\nfirst_token = { attribute = \"a\" }",
                "first_token.unit: goes with an attribute; give s, ms",
            ),
            ("match = { name = \"a\" }\nlabels = { tenant = \"a\" }", "labels: unknown variant `tenant`"),
            ("match = { name = \"a\" }\nlabels = { pool = \"user.email\" }", "labels: \"user.email\" holds"),
            ("match = { name = \"a\" }\nignore = true\nroot = true", "ignore: hides the span"),
        ] {
            let error = refused(rule);
            assert!(error.contains(said), "{rule}: {error}");
        }
    }

    #[test]
    fn dialects_need_a_name_of_their_own_and_rules() {
        for (text, said) in [
            ("dialects = 1", "t.toml: dialects is no list of tables; write [[dialects]]"),
            ("[[dialects]]\nname = \"a\"\nrules = []", "dialect \"a\": has no rules"),
            ("[[dialects]]\nrules = []", "dialect 1: missing field `name`"),
            ("[[dialects]]\nname = \"vllm\"\n[[dialects.rules]]\nmatch = { name = \"a\" }", "another name"),
        ] {
            let error = read(text).expect_err("refused");
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
