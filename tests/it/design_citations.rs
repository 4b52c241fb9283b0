//! Every citation of the design page leads to a section, and to a rule, that is there.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;

const PAGE: &str = include_str!("../../docs/design.md");

/// What can be cited: `3`, and `3.5` for rule 5 of section 3.
fn targets(page: &str) -> BTreeSet<String> {
    let section = Regex::new(r"^## (\d+)\. ").expect("a pattern");
    let rule = Regex::new(r"^### Rule (\d+): ").expect("a pattern");
    let mut targets = BTreeSet::new();
    let mut current = String::new();
    for line in page.lines() {
        if let Some(found) = section.captures(line) {
            found[1].clone_into(&mut current);
            targets.insert(current.clone());
        } else if let Some(found) = rule.captures(line) {
            targets.insert(format!("{current}.{}", &found[1]));
        }
    }
    targets
}

/// What a text cites. Comments that go on in the next line are read as one.
fn citations(text: &str) -> Vec<String> {
    let wrapped = Regex::new(r"\n\s*(?://[/!]?)?\s*").expect("a pattern");
    let text = wrapped.replace_all(text, " ");
    let citation =
        Regex::new(r"[Dd]esign, sections? (\d+(?:(?:, | and | to )\d+)*)(?:, rules? (\d+(?:(?:, | and | to )\d+)*))?")
            .expect("a pattern");
    let mut cited = Vec::new();
    for found in citation.captures_iter(&text) {
        let sections = numbers(&found[1]);
        match found.get(2) {
            Some(rules) => cited.extend(numbers(rules.as_str()).iter().map(|rule| format!("{}.{rule}", sections[0]))),
            None => cited.extend(sections.iter().map(ToString::to_string)),
        }
    }
    cited
}

/// `4 to 6` and `4, 5 and 6` are the same.
fn numbers(list: &str) -> Vec<u32> {
    let parse = |text: &str| text.parse().expect("a number");
    match list.split_once(" to ") {
        Some((first, last)) => (parse(first)..=parse(last)).collect(),
        None => list.split(", ").flat_map(|part| part.split(" and ")).map(parse).collect(),
    }
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs" || extension == "md") {
            found.push(path);
        }
    }
}

#[test]
fn every_citation_of_the_design_resolves() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for folder in ["src", "crates", "tests", "benches", "docs"] {
        sources(&root.join(folder), &mut files);
    }
    files.extend(["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(|page| root.join(page)));
    let targets = targets(PAGE);
    let mut count = 0;
    for file in files.iter().filter(|file| !file.ends_with("design_citations.rs")) {
        let text = fs::read_to_string(file).expect("text");
        for cited in citations(&text) {
            count += 1;
            assert!(targets.contains(&cited), "{}: the design has no section {cited}", file.display());
        }
    }
    assert!(count >= 30, "only {count} citations were found: has their form changed?");
}

#[test]
fn what_leads_nowhere_is_found() {
    let targets = targets("## 3. Painting\n\n### Rule 5: clocks\n\n## 4. Dialects\n");
    let has = |text: &str| citations(text).iter().all(|cited| targets.contains(cited));
    assert!(has("//! Clocks (design,\n//! section 3, rule 5) and dialects (design, section 4)."));
    for wrong in ["(design, section 5)", "(design, section 3, rules 5 and 6)", "(design, section 4, rule 5)"] {
        assert!(!has(wrong), "{wrong}");
    }
    assert_eq!(citations("(design, section 3, rules 4 to 6)"), ["3.4", "3.5", "3.6"]);
    assert_eq!(citations("//! Design, section 3: painting"), ["3"]);
    assert_eq!(citations("a design of nine sections"), Vec::<String>::new());
}
