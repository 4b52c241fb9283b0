//! The documentation says what the code does: snippets are read by the code that users would feed them to, tables are
//! compared with what they list.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Arg, Args, Command, FromArgMatches};
use model::{Attributes, Dimension, Flag, Resource, ServerPhase, Span, SpanId, SpanKind, UnixNanos};
use normalise::{self, dialect};
use serde_json::Value;
use serde_json::value::RawValue;
use slo::{Indicator, document};
use tracejoin::config::{Settings, dialects, file};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn source(path: &str) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The code blocks of a language, in order.
fn blocks(text: &str, language: &str) -> Vec<String> {
    let fence = format!("```{language}\n");
    let starts = text.match_indices(&fence).map(|(at, fence)| at + fence.len());
    starts.map(|start| text[start..].split("```").next().unwrap_or_default().to_owned()).collect()
}

/// What stands between two marks.
fn between<'a>(text: &'a str, start: &str, end: &str) -> &'a str {
    let (_, rest) = text.split_once(start).unwrap_or_else(|| panic!("there is no {start:?}"));
    rest.split_once(end).unwrap_or_else(|| panic!("there is no {end:?} after {start:?}")).0
}

fn serve() -> Command {
    Settings::augment_args(Command::new("serve")).args_override_self(true)
}

/// One row of the table of settings.
fn setting(argument: &Arg) -> String {
    let flag = argument.get_long().expect("a long flag");
    let variable = argument.get_env().expect("an environment variable").to_string_lossy().into_owned();
    let defaults: Vec<String> =
        argument.get_default_values().iter().map(|value| format!("`{}`", value.to_string_lossy())).collect();
    let help = argument.get_help().expect("a help text").to_string().replace('\n', " ");
    format!("| `--{flag}` | `{variable}` | {} | {help} |\n", defaults.join(" "))
}

#[test]
fn the_table_of_settings_lists_the_flags() {
    let mut expected = String::from("| flag | environment | default | what |\n| --- | --- | --- | --- |\n");
    expected.extend(serve().get_arguments().map(setting));
    let page = source("docs/settings.md");
    let table = between(&page, "with the flags -->\n", "<!-- end of settings -->");
    assert_eq!(table, expected, "put this in its place:\n{expected}");
}

#[test]
fn the_configuration_file_is_taken() {
    let page = source("docs/settings.md");
    let [example] = blocks(&page, "toml").try_into().expect("one file");
    let mut written = tempfile::NamedTempFile::new().expect("a temporary file");
    std::io::Write::write_all(&mut written, example.as_bytes()).expect("written");
    let flags = file::flags(written.path(), &serve(), |_| false).expect("settings that exist");
    let line = ["serve".into()].into_iter().chain(flags);
    let settings = Settings::from_arg_matches(&serve().get_matches_from(line)).expect("values that are taken");
    assert_eq!(settings.join.settle.as_secs(), 30);
    assert_eq!(settings.storage.retention.as_secs(), 14 * 86_400);
}

#[test]
fn the_example_of_dialect_rules_is_taken_and_reads_spans() {
    let page = source("docs/dialects.md");
    let [example] = blocks(&page, "toml").try_into().expect("one file");
    let mut written = tempfile::NamedTempFile::new().expect("a temporary file");
    std::io::Write::write_all(&mut written, example.as_bytes()).expect("written");
    file::flags(written.path(), &serve(), |_| false).expect("its settings stand beside the rules");
    let dialects = dialects::read(written.path()).expect("rules that are taken");
    let [acme] = dialects.own() else { panic!("one dialect") };
    assert_eq!(acme.rules.len(), 5);
    for (name, phase) in [("wait_slot 3", Some(ServerPhase::GpuQueue)), ("wait_slot x", None)] {
        let mut span = span(name, Attributes::default());
        let service = (Cow::Borrowed("service.name"), model::Value::Str("acme-gateway".to_owned()));
        span.resource = Arc::new(Resource { attributes: Attributes::new(vec![service]), digest: 0 });
        assert_eq!(dialects.read(&span).phase, phase, "{name}");
    }
}

/// The default of a flag that is an address.
fn address(flag: &str) -> String {
    let command = serve();
    let argument = command.get_arguments().find(|argument| argument.get_long() == Some(flag)).expect("a flag");
    argument.get_default_values()[0].to_string_lossy().into_owned()
}

#[test]
fn the_objective_of_the_readme_can_be_applied() {
    let [objective] = blocks(&source("README.md"), "yaml").try_into().expect("one objective");
    let objectives = document::read(&objective).expect("it can be applied");
    assert_eq!(objectives.len(), 1);
}

#[test]
fn the_collector_snippet_sends_to_the_default_listeners() {
    let page = source("docs/integrations.md");
    let section = between(&page, "## Send traces from a Collector", "\n## ");
    let [snippet] = blocks(section, "yaml").try_into().expect("one configuration");
    let snippet: Value = serde_saphyr::from_str(&snippet).expect("YAML");
    let exporters = &snippet["exporters"];
    assert_eq!(exporters["otlp/tracejoin"]["endpoint"], address("otlp-grpc-addr"));
    assert_eq!(exporters["otlphttp/tracejoin"]["endpoint"], format!("http://{}", address("otlp-http-addr")));
    for exporter in exporters.as_object().expect("exporters").values() {
        let tuned = ["retry_on_failure", "sending_queue", "timeout"].map(|key| exporter.get(key));
        assert_eq!(tuned, [None; 3], "the text says that the defaults are right");
    }
    let used = snippet["service"]["pipelines"]["traces"]["exporters"][0].as_str().expect("an exporter");
    assert!(exporters.get(used).is_some(), "{used} is configured");
}

/// The bodies of `curl --data '…'` or `-d '…'` to a path.
fn uploads(text: &str, path: &str) -> Vec<String> {
    let calls = blocks(text, "sh").into_iter().filter(|block| block.contains("curl") && block.contains(path));
    calls.map(|call| between(&call, "-d '", "'\n").to_owned()).collect()
}

#[test]
fn every_record_shown_is_taken_whole() {
    let mut shown = 0;
    for page in ["README.md", "docs/api.md"] {
        for body in uploads(&source(page), "/api/v1/records") {
            let raw: Box<RawValue> = serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {body}"));
            let parsed = normalise::record(&raw).unwrap_or_else(|error| panic!("{error}: {body}"));
            assert_eq!(parsed.ignored_fields, 0, "fields that no record has: {body}");
            shown += 1;
        }
    }
    assert!(shown >= 2, "{shown} records are shown");
}

#[test]
fn the_k6_script_is_printed_as_it_is_tested() {
    let page = source("clients/k6/README.md");
    let section = between(&page, "## Run the example", "\n## ");
    let [printed] = blocks(section, "js").try_into().expect("one script");
    assert_eq!(printed, source("clients/k6/example.js"));
}

#[test]
fn the_k6_library_has_what_its_page_shows() {
    let page = source("clients/k6/README.md");
    let library = source("clients/k6/tracejoin.js");
    let calls: BTreeSet<&str> = page.split("traced.").skip(1).filter_map(|rest| rest.split('(').next()).collect();
    assert!(calls.len() >= 6, "{calls:?}");
    for call in calls {
        assert!(library.contains(&format!("\n  {call}(")), "{call} is no method");
    }
    assert!(
        library.lines().all(|line| !line.starts_with("import") || line.contains(" from 'k6")),
        "nothing is fetched"
    );
}

fn reading(name: &str, declared: Option<&str>) -> Option<ServerPhase> {
    let declared = declared.map(|phase| (Cow::Borrowed("llm.phase"), model::Value::Str(phase.to_owned())));
    dialect::read(&span(name, Attributes::new(declared.into_iter().collect()))).phase
}

fn span(name: &str, attributes: Attributes) -> Span {
    Span {
        span_id: SpanId::from_slice(&[1; 8]).expect("an id"),
        parent: None,
        name: name.to_owned(),
        kind: SpanKind::Internal,
        start: UnixNanos(0),
        end: Some(UnixNanos(1_000_000)),
        attributes,
        events: Vec::new(),
        error: false,
        repaired: false,
        scope: Arc::default(),
        resource: Arc::default(),
    }
}

#[test]
fn the_native_schema_is_read_as_printed() {
    let page = source("docs/integrations.md");
    let section = between(&page, "## Instrument your own gateway", "\n## ");
    let rows: Vec<Vec<&str>> = section
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| line.split('`').skip(1).step_by(2).collect())
        .collect();
    assert_eq!(rows.len(), 7, "every span name");
    for row in rows {
        assert_eq!(reading(row[0], None).map(ServerPhase::name), Some(row[1]), "{}", row[0]);
    }
    let values = between(section, "attribute `llm.phase`:", ".");
    for value in values.split('`').skip(1).step_by(2) {
        assert!(reading("a span of one's own", Some(value)).is_some(), "llm.phase={value}");
    }
}

#[test]
fn the_api_page_lists_every_path_and_flag() {
    let page = source("docs/api.md");
    let snapshot = source("src/serve/snapshots/tracejoin__serve__tests__the_document_changes_only_on_purpose.snap");
    let (_, document) = snapshot.split_once("---\n{").expect("a snapshot");
    let document: Value = serde_json::from_str(&format!("{{{document}")).expect("the OpenAPI document");
    for path in document["paths"].as_object().expect("paths").keys() {
        assert!(page.contains(&format!("`{path}`")) || page.contains(&format!(" {path}`")), "{path} is missing");
    }
    for flag in Flag::ALL {
        assert!(page.contains(&format!("| `{}` |", flag.name())), "the flag {} is missing", flag.name());
    }
}

#[test]
fn every_dialect_has_its_row() {
    let page = source("docs/dialects.md");
    for entry in fs::read_dir(root().join("crates/normalise/src/dialect")).expect("a folder") {
        let path = entry.expect("an entry").path();
        let code = fs::read_to_string(&path).unwrap_or_default();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if code.contains("pub fn read(span: &Span)") {
            assert!(page.contains(&format!("crates/normalise/src/dialect/{name})")), "{name} is missing");
        }
    }
}

#[test]
fn objectives_that_are_shown_can_be_applied() {
    let examples = fs::read_dir(root().join("examples/slo")).expect("a folder");
    let files = examples.map(|entry| fs::read_to_string(entry.expect("an entry").path()).expect("a file"));
    let shown: Vec<String> = files.chain(blocks(&source("docs/slo.md"), "yaml")).collect();
    assert!(shown.len() >= 7, "{} are shown", shown.len());
    for text in shown {
        let read = document::read(&text).unwrap_or_else(|errors| panic!("{errors:#?}\n{text}"));
        assert!(!read.is_empty(), "{text}");
    }
}

#[test]
fn every_indicator_and_label_is_explained() {
    let page = source("docs/slo.md");
    let indicators = between(&page, "## Indicators", "\n## ");
    for indicator in Indicator::all() {
        assert!(indicators.contains(&format!("`{indicator}`")), "{indicator} is missing");
    }
    let fields = between(&page, "## Fields", "\n## ");
    for dimension in Dimension::ALL.iter().filter(|label| **label != Dimension::ColdStart) {
        assert!(fields.contains(&format!("`{}`", dimension.name())), "{} is missing", dimension.name());
    }
}

/// Words of a command line, with what stands in single quotes kept whole.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (at, part) in line.split('\'').enumerate() {
        match at % 2 {
            0 => words.extend(part.split_whitespace().map(str::to_owned)),
            _ => words.push(part.to_owned()),
        }
    }
    words
}

/// The arguments of a line that calls tracejoin, perhaps with variables set before it.
fn call(line: &str) -> Option<Vec<String>> {
    let mut words = words(line.split(" #").next()?).into_iter().skip_while(|word| word.contains('='));
    let program = words.next()?;
    let ours = program == "tracejoin" || program.ends_with("/tracejoin");
    ours.then(|| [program].into_iter().chain(words).collect())
}

#[test]
fn every_command_shown_is_one() {
    let pages = [
        "README.md",
        "docs/alerts.md",
        "docs/deployment.md",
        "docs/integrations.md",
        "docs/load-tools.md",
        "docs/settings.md",
        "docs/slo.md",
        "docs/streaming.md",
        "clients/k6/README.md",
        "clients/python/README.md",
    ]
    .map(|page| blocks(&source(page), "sh"))
    .concat();
    let calls: Vec<_> = pages.iter().flat_map(|block| block.lines().filter_map(call)).collect();
    assert!(calls.len() >= 6, "{} commands are shown", calls.len());
    for call in calls {
        let parsed = tracejoin::cli::parse(call.iter().map(Into::into));
        parsed.unwrap_or_else(|error| panic!("{}: {error}", call.join(" ")));
    }
}

#[test]
fn the_readme_stays_short() {
    let words = source("README.md").split_whitespace().count();
    assert!(words < 1800, "README.md has {words} words: move some to docs/");
}

/// The anchor that a page of Markdown gives a heading: its words in small letters, without punctuation.
fn anchor_of(heading: &str) -> String {
    let kept = heading.trim_start_matches('#').trim().chars();
    let kept = kept.filter(|letter| letter.is_alphanumeric() || [' ', '-', '_'].contains(letter));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

#[test]
fn links_between_pages_lead_somewhere() {
    let pages = [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "docs/api.md",
        "docs/deployment.md",
        "docs/dialects.md",
        "docs/limits.md",
        "docs/settings.md",
        "docs/slo.md",
        "docs/streaming.md",
        "docs/verdicts.md",
        "docs/alerts.md",
        "docs/integrations.md",
        "docs/load-tools.md",
        "clients/k6/README.md",
        "clients/python/README.md",
    ];
    for page in pages {
        let folder = Path::new(page).parent().expect("a folder").to_owned();
        let text = source(page);
        let targets: BTreeSet<&str> = text.split("](").skip(1).filter_map(|rest| rest.split(')').next()).collect();
        for target in targets.into_iter().filter(|target| !target.contains("://")) {
            let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
            let file = if path.is_empty() { root().join(page) } else { root().join(&folder).join(path) };
            assert!(file.exists(), "{page}: {target} leads nowhere");
            let text = fs::read_to_string(&file).unwrap_or_default();
            let mut headings = text.lines().filter(|line| line.starts_with('#')).map(anchor_of);
            assert!(anchor.is_empty() || headings.any(|of| of == anchor), "{page}: no heading {anchor}");
        }
    }
}
