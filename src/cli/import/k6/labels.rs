//! Which tags of k6 become which labels of a record.

use super::point::Labels;
use crate::cli::record_line::RecordLine;
use model::Dimension;

/// One `--tag`: a tag of k6, and the label that it becomes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TagRule {
    tag: String,
    dimension: Dimension,
}

/// What can be told by a tag. Ranges of length are made from counts.
fn told_by_tags() -> impl Iterator<Item = Dimension> {
    let ranges = [Dimension::InputRange, Dimension::OutputRange];
    Dimension::ALL.iter().copied().filter(move |dimension| !ranges.contains(dimension))
}

impl std::str::FromStr for TagRule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (tag, name) = text.split_once('=').unwrap_or((text, text));
        let known = told_by_tags().find(|dimension| dimension.name() == name);
        match known {
            Some(dimension) if !tag.is_empty() => Ok(Self { tag: tag.to_owned(), dimension }),
            _ => {
                let names: Vec<_> = told_by_tags().map(Dimension::name).collect();
                Err(format!("give TAG=DIMENSION, such as tier=priority; the dimensions are {}", names.join(", ")))
            }
        }
    }
}

/// Fills in the labels of a record: by the rules, else from the tag that has the label's own name.
pub fn fill(line: &mut RecordLine, labels: &Labels, rules: &[TagRule]) {
    for dimension in told_by_tags() {
        let ruled = rules.iter().filter(|rule| rule.dimension == dimension).find_map(|rule| labels.any(&rule.tag));
        let Some(value) = ruled.or_else(|| labels.any(dimension.name())) else { continue };
        let value = value.to_owned();
        match dimension {
            Dimension::Run => line.run = Some(value),
            Dimension::Scenario => line.scenario = Some(value),
            other => drop(line.dimensions.insert(other, value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_goes_before_the_tag_of_the_labels_own_name() {
        let mut labels = Labels::default();
        for (tag, value) in
            [("scenario", "steady"), ("model", "m-small"), ("tier", "gold"), ("llm", "m-7b"), ("x", "y")]
        {
            labels.tags.insert(tag.to_owned(), value.to_owned());
        }
        let rules: Vec<TagRule> = ["tier=priority", "llm=model"].map(|rule| rule.parse().expect(rule)).into();
        let mut line = RecordLine::default();
        fill(&mut line, &labels, &rules);
        assert_eq!(line.scenario.as_deref(), Some("steady"));
        let want = [(Dimension::Model, "m-7b".to_owned()), (Dimension::Priority, "gold".to_owned())];
        assert_eq!(line.dimensions, want.into());
    }

    #[test]
    fn a_rule_needs_a_tag_and_a_dimension() {
        assert_eq!("model".parse(), Ok(TagRule { tag: "model".to_owned(), dimension: Dimension::Model }));
        for text in ["", "=model", "tier=colour", "tier=input_range"] {
            let error = text.parse::<TagRule>().expect_err(text);
            assert!(error.contains("priority"), "{error}");
        }
    }
}
