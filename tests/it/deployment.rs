//! The files for containers, parsed, since no engine runs here: they fit together and use flags that exist.

use std::fs;
use std::path::PathBuf;

use clap::Parser;
use serde_json::Value;
use tracejoin::config::Settings;

/// The flags of `serve`.
#[derive(Parser)]
struct Serve {
    #[command(flatten)]
    settings: Settings,
}

fn source(path: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn yaml(path: &str) -> Value {
    serde_saphyr::from_str(&source(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn strings(list: &Value) -> Vec<&str> {
    list.as_array().expect("a list").iter().map(|item| item.as_str().expect("a string")).collect()
}

fn parse(arguments: &[&str]) -> Settings {
    let (command, flags) = arguments.split_first().expect("a command");
    assert_eq!(*command, "serve");
    Serve::try_parse_from([&["tracejoin"], flags].concat()).expect("flags of serve").settings
}

#[test]
fn compose_starts_tracejoin_where_the_collector_sends() {
    let compose = yaml("docker-compose.yml");
    let settings = parse(&strings(&compose["services"]["tracejoin"]["command"]));
    assert!(settings.listen.otlp_grpc_addr.ip().is_unspecified(), "reachable from other containers");

    let collector = yaml("deploy/otel-collector.yaml");
    let endpoint = format!("tracejoin:{}", settings.listen.otlp_grpc_addr.port());
    assert_eq!(collector["exporters"]["otlp"]["endpoint"], endpoint);

    let published = format!("127.0.0.1:{0}:{0}", settings.listen.http_addr.port());
    assert_eq!(strings(&compose["services"]["tracejoin"]["ports"]), [published]);
}

#[test]
fn compose_gives_the_collector_its_configuration_and_ports() {
    let compose = yaml("docker-compose.yml");
    let service = &compose["services"]["collector"];
    let mount = strings(&service["volumes"])[0];
    let (file, target) = mount.trim_end_matches(":ro").split_once(':').expect("from:to");
    assert_eq!(strings(&service["command"]), [format!("--config={target}")]);

    let collector = yaml(file);
    let protocols = &collector["receivers"]["otlp"]["protocols"];
    for (protocol, published) in ["grpc", "http"].into_iter().zip(strings(&service["ports"])) {
        let endpoint = protocols[protocol]["endpoint"].as_str().expect("an address");
        let (_, port) = endpoint.rsplit_once(':').expect("address:port");
        assert_eq!(published, format!("127.0.0.1:{port}:{port}"));
    }
    for part in ["receivers", "processors", "exporters"] {
        for name in strings(&collector["service"]["pipelines"]["traces"][part]) {
            assert!(collector[part].get(name).is_some(), "{part} {name} is configured");
        }
    }
    let exporter = &collector["exporters"]["otlp"];
    assert!(exporter.get("retry_on_failure").is_none() && exporter.get("sending_queue").is_none(), "defaults");
}

#[test]
fn compose_s_database_is_the_one_that_tracejoin_is_told() {
    let compose = yaml("docker-compose.yml");
    let postgres = &compose["services"]["postgres"]["environment"];
    let text = |key: &str| postgres[key].as_str().expect("a string");
    let expected =
        format!("postgres://{}:{}@postgres/{}", text("POSTGRES_USER"), text("POSTGRES_PASSWORD"), text("POSTGRES_DB"));
    assert_eq!(compose["services"]["tracejoin"]["environment"]["DATABASE_URL"], expected);
}

#[test]
fn the_image_runs_the_command_that_is_tested() {
    let dockerfile = source("Dockerfile");
    let list = |instruction: &str| -> Vec<String> {
        let text = dockerfile.lines().find_map(|line| line.strip_prefix(instruction)).expect(instruction);
        serde_json::from_str(text).expect("a JSON list")
    };
    assert_eq!(list("ENTRYPOINT "), ["tracejoin"]);
    let command = list("CMD ");
    parse(&command.iter().map(String::as_str).collect::<Vec<_>>());
    let exposed = dockerfile.lines().find_map(|line| line.strip_prefix("EXPOSE ")).expect("EXPOSE");
    for port in exposed.split(' ') {
        assert!(dockerfile.contains(&format!("_ADDR=0.0.0.0:{port}")), "{port} is listened on");
    }
}
