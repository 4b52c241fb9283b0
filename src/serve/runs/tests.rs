//! Runs as a reader meets them, without a database.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use axum::body::Body;
use axum::http::{Method, Request};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::json;

use super::*;
use crate::serve::source::SourceError;
use crate::serve::tests::{Answer, ask, conforms_to, parts, send};

const RUN: &str = "/api/v1/runs/{id}";
pub const FINISH: &str = "/api/v1/runs/{id}/finish";

/// Runs in memory; away for the one called so.
#[derive(Default)]
pub struct Log(Mutex<BTreeMap<String, Run>>);

impl Log {
    fn change(&self, id: &str, change: impl FnOnce(&mut Run)) -> Result<Run, SourceError> {
        if id == "away" {
            return Err(SourceError::Unavailable("the database is unavailable".into()));
        }
        let mut runs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let new = Run { id: id.to_owned(), configuration: None, configured_at: None, end: None };
        let run = runs.entry(id.to_owned()).or_insert(new);
        change(run);
        Ok(run.clone())
    }
}

impl RunSource for Log {
    fn run<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<Run>, SourceError>> {
        let found = match id {
            "away" => Err(SourceError::Unavailable("the database is unavailable".into())),
            id => Ok(self.0.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned()),
        };
        async { found }.boxed()
    }

    fn configure<'a>(
        &'a self,
        id: &'a str,
        configuration: &'a Value,
        at: UnixNanos,
    ) -> BoxFuture<'a, Result<Run, SourceError>> {
        let changed = self.change(id, |run| {
            (run.configuration, run.configured_at) = (Some(configuration.clone()), Some(at));
        });
        async { changed }.boxed()
    }

    fn finish<'a>(&'a self, id: &'a str, end: &'a RunEnd) -> BoxFuture<'a, Result<Run, SourceError>> {
        let changed = self.change(id, |run| run.end = Some(*end));
        async { changed }.boxed()
    }
}

/// Sends a body, and checks that the answer is one that the document promises.
async fn tell(method: Method, template: &str, id: &str, body: &str) -> Answer {
    let (router, document) = parts(&[]);
    let name = method.as_str().to_ascii_lowercase();
    let request = Request::builder().method(method).uri(template.replace("{id}", id)).body(Body::from(body.to_owned()));
    let answer = send(&router, request.expect("a request")).await;
    conforms_to(&document, template, &name, &answer);
    answer
}

#[tokio::test]
async fn a_run_is_configured_finished_and_read() {
    let (router, document) = parts(&[]);
    let send_to = async |method: Method, path: &str, body: &str| {
        let request = Request::builder().method(method).uri(path).body(Body::from(body.to_owned()));
        send(&router, request.expect("a request")).await
    };
    let configured = send_to(Method::PUT, "/api/v1/runs/nightly", r#"{"rate": 20, "target": "joe@example.org"}"#).await;
    conforms_to(&document, RUN, "put", &configured);
    assert_eq!(configured.json()["configuration"], json!({"rate": 20, "target": "[redacted]"}));
    assert_eq!(configured.json()["finished_at"], Value::Null);

    let end = r#"{"finished_at": "2026-01-02T03:04:05Z", "planned_iterations": 1200, "dropped_iterations": 0, "planned_rate": 20}"#;
    let finished = send_to(Method::POST, "/api/v1/runs/nightly/finish", end).await;
    conforms_to(&document, FINISH, "post", &finished);

    let read = ask(&router, Method::GET, "/api/v1/runs/nightly", "*/*").await;
    conforms_to(&document, RUN, "get", &read);
    assert_eq!(read.json(), finished.json());
    assert_eq!(read.json()["finished_at"], "2026-01-02T03:04:05Z");
    assert_eq!((&read.json()["dropped_iterations"], &read.json()["real_rate"]), (&json!(0), &Value::Null));
    assert_eq!(ask(&router, Method::GET, "/api/v1/runs/other", "*/*").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn an_end_without_a_time_is_now() {
    let before = UnixNanos::now();
    let answer = tell(Method::POST, FINISH, "nightly", "{}").await;
    let told = answer.json()["finished_at"].as_str().expect("a time").to_owned();
    assert!(parse_time("finished_at", &told, before).expect("RFC 3339") >= before);
    assert_eq!(answer.json()["planned_iterations"], Value::Null);
}

#[tokio::test]
async fn what_cannot_be_kept_is_refused_with_its_field() {
    let large = format!("{{\"a\": \"{}\"}}", "x".repeat(MAX_BYTES));
    for (method, template, body, status, said) in [
        (Method::PUT, RUN, "[1]", 400, "not a JSON object"),
        (Method::PUT, RUN, "{", 400, "the body is not JSON"),
        (Method::PUT, RUN, r#"{"http": {"prompt": "x"}}"#, 400, "http.prompt holds prompts"),
        (Method::PUT, RUN, &large, 413, "larger than 65536 bytes"),
        (Method::POST, FINISH, r#"{"droped_iterations": 1}"#, 400, "unknown field `droped_iterations`"),
        (Method::POST, FINISH, r#"{"dropped_iterations": -1}"#, 400, "-1"),
        (Method::POST, FINISH, r#"{"planned_iterations": 1, "dropped_iterations": 2}"#, 400, "of 1 planned"),
        (Method::POST, FINISH, r#"{"planned_iterations": 18446744073709551615}"#, 400, "planned_iterations is over"),
        (Method::POST, FINISH, r#"{"real_rate": -0.5}"#, 400, "real_rate is negative"),
        (Method::POST, FINISH, r#"{"finished_at": "yesterday"}"#, 400, "finished_at is"),
        (Method::POST, FINISH, &large, 413, "larger than 65536 bytes"),
    ] {
        let answer = tell(method, template, "nightly", body).await;
        assert_eq!(answer.status.as_u16(), status, "{}", answer.body);
        assert!(answer.json()["detail"].as_str().is_some_and(|detail| detail.contains(said)), "{}", answer.body);
    }
    let bad_name = tell(Method::PUT, RUN, "joe@example.org", "{}").await;
    assert!(bad_name.body.contains("the id is no name of a run"), "{}", bad_name.body);
    assert_eq!(tell(Method::PUT, RUN, "away", "{}").await.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(tell(Method::POST, FINISH, "away", "{}").await.status, StatusCode::SERVICE_UNAVAILABLE);
}
