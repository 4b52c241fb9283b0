//! The dialects as a list.

use comfy_table::Table;
use comfy_table::presets::NOTHING;
use serde::Serialize;

use normalise::{Dialects, dialect};

/// Every dialect, in the order in which they are asked.
#[derive(Debug, Serialize)]
pub struct Listed {
    /// Those of the configuration file, asked first.
    own: Vec<Own>,
    /// Those that are built in.
    built_in: Vec<BuiltIn>,
}

#[derive(Debug, Serialize)]
struct Own {
    name: String,
    rules: Vec<String>,
}

#[derive(Debug, Serialize)]
struct BuiltIn {
    name: &'static str,
    recognised_by: &'static str,
    /// The attributes that it reads beside those that all dialects share.
    attributes: &'static [&'static str],
}

impl Listed {
    /// Those that spans would be read by.
    pub fn of(dialects: &Dialects) -> Self {
        let own = dialects
            .own()
            .iter()
            .map(|own| Own { name: own.name.clone(), rules: own.rules.iter().map(|rule| rule.name.clone()).collect() });
        let built_in = dialect::built_in().map(|known| BuiltIn {
            name: known.name,
            recognised_by: known.recognised_by,
            attributes: known.keys,
        });
        Self { own: own.collect(), built_in: built_in.collect() }
    }
}

/// The list for a person.
pub fn table(listed: &Listed) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING).set_header(["dialect", "recognised by"]);
    for own in &listed.own {
        table.add_row([own.name.as_str(), &format!("rules of the configuration file: {}", own.rules.join(", "))]);
    }
    for known in &listed.built_in {
        table.add_row([known.name, known.recognised_by]);
    }
    let lines = table.lines().map(|line| format!("{}\n", line.trim_end()));
    format!("{}\nAsked in this order; a declared llm.phase stands above all.\n", lines.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use normalise::rules::OwnDialect;

    #[test]
    fn the_files_own_stand_before_those_built_in() {
        let rule = serde_json::json!({"name": "slot", "match": {"name": "wait"}, "phase": "queue"});
        let rules = vec![serde_json::from_value(rule).expect("a rule")];
        let dialects = Dialects::new(vec![OwnDialect { name: "acme".to_owned(), rules }]);
        let listed = Listed::of(&dialects);
        let text = table(&listed);
        let at = |name: &str| text.find(name).unwrap_or_else(|| panic!("{name} is missing in\n{text}"));
        assert!(at("acme") < at("sglang") && at("vllm") < at("http.request.method"));
        assert!(text.contains("rules of the configuration file: slot"));
        let json = serde_json::to_value(&listed).expect("JSON");
        assert_eq!(json["own"][0]["rules"][0], "slot");
        assert_eq!(json["built_in"].as_array().map(Vec::len), Some(dialect::built_in().count()));
    }
}
