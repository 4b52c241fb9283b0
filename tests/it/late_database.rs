//! A server that starts before its database does.

use std::net::TcpListener as StdListener;
use std::process::{Child, Command, Stdio};
use std::str::FromStr;
use std::time::{Duration, Instant};

use reqwest::StatusCode;
use serde_json::{Value, json};
use sqlx::postgres::PgConnectOptions;
use tokio::net::{TcpListener, TcpStream, UnixStream};

use crate::common::test_database;

const PATIENCE: Duration = Duration::from_secs(60);

/// Killed with the value.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn free_port() -> u16 {
    StdListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port").port()
}

fn serve(database: &str, http: u16, otlp_http: u16) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tracejoin"));
    command.args(["serve", "--database-url", database, "--otlp-grpc-addr=127.0.0.1:0"]);
    command.arg(format!("--http-addr=127.0.0.1:{http}")).arg(format!("--otlp-http-addr=127.0.0.1:{otlp_http}"));
    command.env_remove("DATABASE_URL").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Asks until the answer has the status, and returns its body.
async fn wait_for(url: &str, status: StatusCode) -> Value {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Ok(answer) = reqwest::get(url).await {
            let found = answer.status();
            let body: Value = answer.json().await.expect("JSON");
            if found == status {
                return body;
            }
            assert!(Instant::now() < end, "{url}: {found} {body}");
        }
        assert!(Instant::now() < end, "{url} does not answer");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Lets connections to a port through to a database.
async fn forward(port: u16, database: PgConnectOptions) {
    let listener = TcpListener::bind(("127.0.0.1", port)).await.expect("the port is free");
    loop {
        let (mut from, _) = listener.accept().await.expect("a connection");
        let database = database.clone();
        tokio::spawn(async move {
            match database.get_socket() {
                Some(folder) => {
                    let socket = folder.join(format!(".s.PGSQL.{}", database.get_port()));
                    let mut to = UnixStream::connect(socket).await.expect("the database");
                    tokio::io::copy_bidirectional(&mut from, &mut to).await
                }
                None => {
                    let to = (database.get_host(), database.get_port());
                    let mut to = TcpStream::connect(to).await.expect("the database");
                    tokio::io::copy_bidirectional(&mut from, &mut to).await
                }
            }
        });
    }
}

#[tokio::test]
async fn a_server_waits_for_its_database_and_says_so() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let database = test_database().await;
    let options = PgConnectOptions::from_str(&database.url).expect("a URL");
    let (port, http, otlp) = (free_port(), free_port(), free_port());
    let name = options.get_database().expect("a name");
    let url = format!("postgres://{}@127.0.0.1:{port}/{name}", options.get_username());
    let _server = Server(serve(&url, http, otlp).spawn().expect("the binary runs"));

    let base = format!("http://127.0.0.1:{http}");
    let problem = wait_for(&format!("{base}/readyz"), StatusCode::SERVICE_UNAVAILABLE).await;
    let detail = problem["detail"].as_str().expect("a detail");
    assert!(detail.contains("Connection refused") && detail.contains(&format!("127.0.0.1:{port}")), "{detail}");
    assert_eq!(wait_for(&format!("{base}/healthz"), StatusCode::OK).await["status"], "alive");
    let client = reqwest::Client::new();
    let record = json!({"trace_id": "0000000000000007000000000000012f", "duration_ms": 5, "status": 200});
    for upload in [format!("{base}/api/v1/records"), format!("http://127.0.0.1:{otlp}/v1/traces")] {
        let refused = client.post(&upload).json(&record).send().await.expect("an answer");
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE, "{upload}");
        assert_eq!(refused.headers()["retry-after"], "2", "{upload}");
    }

    tokio::spawn(forward(port, options));
    wait_for(&format!("{base}/readyz"), StatusCode::OK).await;
    let taken = client.post(format!("{base}/api/v1/records")).json(&record).send().await.expect("an answer");
    assert_eq!(taken.json::<Value>().await.expect("JSON")["accepted"], 1);
}

#[tokio::test]
async fn a_database_that_does_not_exist_ends_the_start_at_once() {
    let database = test_database().await;
    let options = PgConnectOptions::from_str(&database.url).expect("a URL").database("no_such_database");
    let output = {
        use sqlx::ConnectOptions;
        serve(options.to_url_lossy().as_str(), free_port(), free_port()).stderr(Stdio::piped()).output()
    };
    let output = output.expect("the binary runs");
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("cannot use the database of --database-url") && said.contains("no_such_database"), "{said}");
}
