//! The router as a reader meets it, over sources without a database; and the document against real answers.

use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::header::{ACCEPT, ALLOW, CONTENT_TYPE};
use axum::http::{Method, Request, StatusCode};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::Value;
use tower::ServiceExt;
use uuid::Uuid;

use super::runs::tests::Log;
use super::slos::tests::Shelf;
use super::source::{DeliveredTransition, SourceError};
use super::*;
use crate::exposition::{ObjectiveMetrics, RequestMetrics};
use crate::receive::budget::Budget;
use crate::receive::events::{self, EventEndpoint};
use crate::receive::intake::{
    EventIntake, RawRecord, ReceivedRecord, RecordIntake, RecordOutcome, Refusal, RejectedRecord, SentRecord,
};
use crate::receive::limits::Limits;
use crate::receive::records::{self, RecordEndpoint};
use crate::store::{AlertTransition, DeliveryState, StoredAlert};
use api::Explained;
use model::{Dimension, Interval, Labels, Observation, Order, Selection, State as RequestState, TraceId, UnixNanos};
use stats::cell::cells;
use stats::{Contents, Question, Window};

mod gate;

const KNOWN: &str = "0000000000000007000000000000012f";
const SEVERAL: &str = "00000000000000070000000000000002";
const AWAY: &str = "00000000000000070000000000000003";
const BROKEN: &str = "00000000000000070000000000000004";
const UNKNOWN: &str = "00000000000000070000000000000005";

struct Fixture;

impl TraceSource for Fixture {
    fn explain(&self, trace: TraceId) -> BoxFuture<'_, Result<Vec<Explained>, SourceError>> {
        let one = trace::tests::explained;
        let answer = match trace.to_string().as_str() {
            KNOWN => Ok(vec![one()]),
            SEVERAL => Ok(vec![one(), one()]),
            AWAY => Err(SourceError::Unavailable("the database is unavailable".into())),
            BROKEN => panic!("a fault in a source"),
            _ => Ok(Vec::new()),
        };
        async { answer }.boxed()
    }
}

/// A window with one matched request and one whose spans never came; away where the run is called so.
impl WindowSource for Fixture {
    fn contents<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Result<Window, SourceError>> {
        let away = question.selection.filters.contains_key(&Dimension::Run);
        let matched = trace::tests::explained().request;
        let mut lone = matched.clone();
        (lone.state, lone.server, lone.phases, lone.network_envelope) = (RequestState::ClientOnly, None, None, None);
        let labels = Labels { client: matched.client_dimensions.clone(), all: matched.dimensions.clone() };
        let observations = [&matched, &lone].map(|request| Observation::of(request, request.window_at, 1));
        let contents = Contents { cells: cells(&observations).into_iter().collect(), dictionary: [(1, labels)].into() };
        let window = Window { served: question.selection.window, contents, unsettled_records: 2 };
        async move { if away { Err(SourceError::Unavailable("the database is unavailable".into())) } else { Ok(window) } }
            .boxed()
    }

    fn list<'a>(
        &'a self,
        selection: &'a Selection,
        _: Order,
        limit: u32,
    ) -> BoxFuture<'a, Result<Vec<Explained>, SourceError>> {
        let away = selection.filters.contains_key(&Dimension::Run);
        let all = vec![trace::tests::explained(); limit.min(3) as usize];
        async move { if away { Err(SourceError::Unavailable("the database is unavailable".into())) } else { Ok(all) } }
            .boxed()
    }
}

/// An alert that fires, told to one receiver and not to another.
impl AlertSource for Fixture {
    fn alerts(&self, firing: Option<bool>) -> BoxFuture<'_, Result<Vec<StoredAlert>, SourceError>> {
        let shown = if firing == Some(false) { Vec::new() } else { vec![fired()] };
        async { Ok(shown) }.boxed()
    }

    fn history(&self, _: Interval, limit: u32) -> BoxFuture<'_, Result<Vec<DeliveredTransition>, SourceError>> {
        let StoredAlert { fingerprint, slo, labels, annotations, generator_url, starts_at, .. } = fired();
        let transition = AlertTransition {
            key: Uuid::from_u128(9),
            fingerprint,
            number: 1,
            at: starts_at,
            firing: true,
            slo,
            labels,
            annotations,
            generator_url,
            starts_at,
        };
        let state = |receiver: &str, delivered_at: Option<UnixNanos>| DeliveryState {
            receiver: receiver.to_owned(),
            attempts: 2,
            delivered_at,
            last_error: delivered_at.is_none().then(|| "it answered 503".to_owned()),
        };
        let deliveries = vec![state("alertmanager:a:9093#1", Some(starts_at)), state("webhook:b:443#2", None)];
        async move { Ok(vec![(transition, deliveries); limit.min(1) as usize]) }.boxed()
    }
}

fn fired() -> StoredAlert {
    let text = |name: &str, text: &str| [(name.to_owned(), text.to_owned())].into();
    StoredAlert {
        fingerprint: Uuid::from_u128(7),
        slo: "queue".to_owned(),
        labels: text("alertname", "TracejoinObjectiveBroken"),
        annotations: text("summary", "gpu_queue broke its objective"),
        generator_url: None,
        firing: true,
        transitions: 1,
        starts_at: UnixNanos(1_767_355_200_000_000_000),
        ends_at: None,
    }
}

/// Takes a record that is an object, refuses any other, and is away for more than two.
impl EventIntake for Fixture {
    fn accept(&self, lines: Vec<RawRecord>) -> BoxFuture<'_, Result<RecordOutcome, Refusal>> {
        RecordIntake::accept(self, lines.into_iter().map(|line| line.map(SentRecord::from)).collect())
    }
}

impl RecordIntake for Fixture {
    fn accept(&self, records: Vec<ReceivedRecord>) -> BoxFuture<'_, Result<RecordOutcome, Refusal>> {
        let mut outcome = RecordOutcome::default();
        for (index, record) in records.iter().enumerate() {
            match record {
                Ok(record) if record.body().is_ok() => outcome.accepted += 1,
                _ => outcome.rejected.push(RejectedRecord { index, field: String::new(), reason: "bad".into() }),
            }
        }
        let (message, retry_after) = ("the database is unavailable".into(), Duration::from_secs(1));
        let away = records.len() > 2;
        async move { if away { Err(Refusal::Unavailable { message, retry_after }) } else { Ok(outcome) } }.boxed()
    }
}

struct Obstacles(Vec<String>);

impl Readiness for Obstacles {
    fn obstacles(&self) -> BoxFuture<'_, Vec<String>> {
        async { self.0.clone() }.boxed()
    }
}

pub(super) fn parts(obstacles: &[&str]) -> (Router, Value) {
    let readiness = Obstacles(obstacles.iter().map(|reason| (*reason).to_owned()).collect());
    let health = crate::telemetry::init_metrics().expect("the only recorder");
    let objectives = ObjectiveMetrics::new(Box::new(Vec::new), Arc::default());
    let exposition = Exposition::new(Arc::new(RequestMetrics::new(1_000, objectives).with_health(health)));
    let (traces, windows) = (Arc::new(Fixture), Arc::new(Fixture));
    let limits = Arc::new(Limits::default());
    let budget = Budget::new(&limits);
    let uploads = records::router(RecordEndpoint::new(Arc::new(Fixture), limits.clone(), budget.clone()))
        .merge(events::router(EventEndpoint::new(Arc::new(Fixture), limits, budget)));
    let (objectives, readiness) = (Arc::new(Shelf::with_one()), Arc::new(readiness));
    let (statuses, gates, alerts) = (objectives.clone(), Arc::new(Fixture), Arc::new(Fixture));
    let runs = Arc::new(Log::default());
    let replays = Arc::new(Fixture);
    let sources =
        Sources { traces, windows, objectives, statuses, gates, replays, runs, alerts, readiness, exposition };
    let (router, document) = router(sources, uploads);
    (router, serde_json::to_value(document).expect("JSON"))
}

pub(super) struct Answer {
    pub(super) status: StatusCode,
    form: String,
    allow: Option<String>,
    pub(super) body: String,
}

impl Answer {
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
}

pub(super) async fn ask(router: &Router, method: Method, path: &str, accept: &str) -> Answer {
    let request = Request::builder().method(method).uri(path).header(ACCEPT, accept).body(Body::empty());
    send(router, request.expect("a request")).await
}

pub(super) async fn send(router: &Router, request: Request<Body>) -> Answer {
    let response = router.clone().oneshot(request).await.expect("infallible");
    let header = |name| response.headers().get(name).map(|value| value.to_str().expect("ASCII").to_owned());
    let (status, allow) = (response.status(), header(ALLOW));
    let form = header(CONTENT_TYPE).unwrap_or_default().split(';').next().unwrap_or_default().to_owned();
    let body = to_bytes(response.into_body(), 4 << 20).await.expect("a body in memory");
    Answer { status, form, allow, body: String::from_utf8(body.to_vec()).expect("UTF-8") }
}

async fn get(path: &str) -> Answer {
    ask(&parts(&[]).0, Method::GET, path, "*/*").await
}

/// Checks one answer against what the document promises for its route.
fn conforms(document: &Value, template: &str, answer: &Answer) {
    conforms_to(document, template, "get", answer);
}

pub(super) fn conforms_to(document: &Value, template: &str, method: &str, answer: &Answer) {
    let promised = &document["paths"][template][method]["responses"][answer.status.as_str()];
    let content = &promised["content"][&answer.form];
    assert!(content.is_object(), "{template}: {} {:?} is not promised: {promised}", answer.status, answer.form);
    if !answer.form.ends_with("json") {
        return;
    }
    let mut schema = content["schema"].clone();
    schema["components"] = document["components"].clone();
    let validator = jsonschema::validator_for(&schema).expect("a valid schema");
    let body = answer.json();
    let faults: Vec<String> = validator.iter_errors(&body).map(|fault| fault.to_string()).collect();
    assert!(faults.is_empty(), "{template}: {faults:?} in {body}");
}

/// The routes that take.
const UPLOADS: [&str; 2] = ["/api/v1/records", "/api/v1/events"];

#[tokio::test]
async fn every_route_answers_as_its_document_says() {
    let (router, document) = parts(&[]);
    let paths = document["paths"].as_object().expect("paths");
    assert!(paths.len() >= 6, "only {} paths are documented", paths.len());
    for (template, operations) in paths {
        if operations["get"].is_null() {
            let mut tested = UPLOADS.iter().chain(&gate::PATHS).chain(&[runs::tests::FINISH]);
            assert!(tested.any(|path| path == template), "{template} takes, and has no test of its own here");
            continue;
        }
        for id in [KNOWN, SEVERAL, AWAY, BROKEN, UNKNOWN, "xyz", "queue"] {
            let path = template.replace("{trace_id}", id).replace("{id}", id);
            let answer = ask(&router, Method::GET, &path, "*/*").await;
            if id != BROKEN || !template.contains("{trace_id}") {
                conforms(&document, template, &answer);
            }
        }
    }
    let text = ask(&router, Method::GET, &format!("/api/v1/traces/{KNOWN}"), "text/plain").await;
    conforms(&document, "/api/v1/traces/{trace_id}", &text);
    let refused = ask(&router, Method::GET, &format!("/api/v1/traces/{KNOWN}?form=text"), "*/*").await;
    conforms(&document, "/api/v1/traces/{trace_id}", &refused);
}

#[tokio::test]
async fn uploads_answer_as_their_document_says() {
    let (router, document) = parts(&[]);
    for (form, body, status) in [
        ("application/x-ndjson", "{}\n7\n", 200),
        ("application/json", "[7]", 400),
        ("application/json", "[{},", 200),
        ("text/csv", "a,b", 415),
        ("application/x-ndjson", "{}\n{}\n{}\n", 503),
    ] {
        for path in UPLOADS {
            let request = Request::post(path).header(CONTENT_TYPE, form).body(Body::from(body));
            let answer = send(&router, request.expect("a request")).await;
            assert_eq!(answer.status.as_u16(), status, "{path} {body}: {}", answer.body);
            conforms_to(&document, path, "post", &answer);
        }
    }
}

#[tokio::test]
async fn questions_about_windows_are_answered_or_refused_as_the_document_says() {
    let (router, document) = parts(&[]);
    for path in ["/api/v1/phases", "/api/v1/phases/series", "/api/v1/coverage", "/api/v1/requests"] {
        for (query, status) in [("?from=-10m&model=m-7b", 200), ("?run=x&from=-10m", 503), ("?modle=x", 400)] {
            let answer = ask(&router, Method::GET, &format!("{path}{query}"), "*/*").await;
            assert_eq!(answer.status.as_u16(), status, "{path}{query}: {}", answer.body);
            conforms(&document, path, &answer);
        }
    }
}

#[tokio::test]
async fn a_query_takes_exactly_the_parameters_that_the_document_lists() {
    let (router, document) = parts(&[]);
    for path in [
        "/api/v1/phases",
        "/api/v1/phases/series",
        "/api/v1/coverage",
        "/api/v1/requests",
        "/api/v1/alerts",
        "/api/v1/alerts/history",
    ] {
        let parameters = document["paths"][path]["get"]["parameters"].as_array().expect("parameters");
        let documented: Vec<&Value> = parameters.iter().map(|parameter| &parameter["name"]).collect();
        let answer = ask(&router, Method::GET, &format!("{path}?no_such=1"), "*/*").await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{path}: {}", answer.body);
        let problem = answer.json();
        let accepted: Vec<&Value> = problem["accepted"].as_array().expect("names").iter().collect();
        assert_eq!(accepted, documented, "{path}");
    }
}

#[tokio::test]
async fn a_percentile_stands_beside_its_n_its_interval_and_its_coverage() {
    let answer = get("/api/v1/phases?quantiles=0.5,0.999&group_by=model,pool").await.json();
    assert_eq!(answer["coverage"]["join_coverage"], 0.5);
    assert_eq!(answer["unsettled_records"], 2);
    assert_eq!(answer["coverage"]["coverage_scope"], "filtered");
    let group = &answer["groups"][0];
    assert_eq!(group["dimensions"], serde_json::json!({"model": "m-7b", "pool": null}));
    let queue = &group["phases"]["gpu_queue"];
    let expected = serde_json::json!({
        "n": 1, "p50_ms": 428.0, "p50_ci_ms": [null, null],
        "p50_ci_reason": "the lower end needs n >= 6, the upper n >= 6",
        "p50_bounds_ms": [null, 428.0],
        "p50_bounds_reason": "the missing requests could all lie below every known value",
        "p99_9_ms": 428.0, "p99_9_ci_ms": [428.0, null], "p99_9_ci_reason": "the upper end needs n >= 3688",
        "p99_9_bounds_ms": [428.0, null],
        "p99_9_bounds_reason": "the missing requests could all lie above every known value",
        "phase_coverage": 0.5, "method": "exact", "mean_ms": 428.0, "max_ms": 428.0, "sum_ms": 428.0,
    });
    assert_eq!(queue, &expected);
    assert_eq!(group["client"]["duration"]["p99_9_censored_ms"], 1842.0);
    assert_eq!(group["rates"]["rate_stream"]["p50"], Value::Null);
    assert_eq!(group["phases"]["prefill"], Value::Null);
}

#[tokio::test]
async fn a_list_takes_an_order_and_a_limit() {
    let answer = get("/api/v1/requests?order=-gpu_queue_ms&limit=2").await.json();
    assert_eq!(answer["requests"].as_array().map(Vec::len), Some(2));
    assert_eq!(answer["requests"][0]["phases"]["gpu_queue_ms"], 428.0);
    assert_eq!(get("/api/v1/requests?limit=0").await.status, StatusCode::BAD_REQUEST);
    assert_eq!(get("/api/v1/requests?order=queue").await.status, StatusCode::BAD_REQUEST);
}

#[test]
fn the_document_changes_only_on_purpose() {
    let (_, mut document) = parts(&[]);
    document["info"]["version"] = "[version]".into();
    insta::assert_json_snapshot!(document);
}

#[tokio::test]
async fn a_trace_is_json_unless_text_is_asked_for() {
    let (router, _) = parts(&[]);
    let path = format!("/api/v1/traces/{KNOWN}");
    for (accept, form) in [
        ("*/*", "application/json"),
        ("text/html, application/json;q=0.9", "application/json"),
        ("text/plain", "text/plain"),
        ("application/yaml, text/plain;q=0.5", "text/plain"),
    ] {
        assert_eq!(ask(&router, Method::GET, &path, accept).await.form, form, "{accept}");
    }
    let upper =
        ask(&router, Method::GET, &path.to_uppercase().replace("/API/V1/TRACES", "/api/v1/traces"), "*/*").await;
    assert_eq!(upper.json()["trace_id"], KNOWN);
}

#[tokio::test]
async fn every_failure_is_a_problem_that_says_what_to_change() {
    let (router, _) = parts(&[]);
    for (path, status, told) in [
        ("/api/v2/traces", 404, "/openapi.json"),
        (&*format!("/api/v1/traces/{UNKNOWN}"), 404, "check the id"),
        ("/api/v1/traces/12", 400, "give 32 hexadecimal digits"),
        ("/api/v1/traces/%ff", 400, "UTF-8"),
        (&*format!("/api/v1/traces/{KNOWN}?x=1"), 400, "takes none"),
        (&*format!("/api/v1/traces/{AWAY}"), 503, "the database is unavailable"),
        (&*format!("/api/v1/traces/{BROKEN}"), 500, "its log says why"),
    ] {
        let answer = ask(&router, Method::GET, path, "*/*").await;
        assert_eq!((answer.status.as_u16(), answer.form.as_str()), (status, "application/problem+json"), "{path}");
        let detail = answer.json()["detail"].as_str().expect("a detail").to_owned();
        assert!(detail.contains(told), "{path}: {detail}");
    }
}

#[tokio::test]
async fn a_wrong_method_is_told_which_ones_there_are() {
    let (router, _) = parts(&[]);
    let answer = ask(&router, Method::DELETE, "/healthz", "*/*").await;
    assert_eq!((answer.status, answer.form.as_str()), (StatusCode::METHOD_NOT_ALLOWED, "application/problem+json"));
    assert_eq!(answer.allow.as_deref(), Some("GET,HEAD"));
}

#[tokio::test]
async fn readiness_gives_its_reasons() {
    assert_eq!(get("/readyz").await.json(), serde_json::json!({"status": "ready"}));
    let (router, document) = parts(&["the database is unavailable"]);
    let answer = ask(&router, Method::GET, "/readyz", "*/*").await;
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(answer.json()["reasons"], serde_json::json!(["the database is unavailable"]));
    conforms(&document, "/readyz", &answer);
    assert_eq!(ask(&router, Method::GET, "/healthz", "*/*").await.status, StatusCode::OK);
}

#[tokio::test]
async fn answers_are_measured_by_route_and_not_by_path() {
    get(&format!("/api/v1/traces/{UNKNOWN}")).await;
    get("/no/such/path").await;
    let text = get("/metrics").await.body;
    assert!(text.contains("route=\"/api/v1/traces/{trace_id}\",status=\"404\""), "{text}");
    assert!(text.contains("route=\"none\",status=\"404\""), "{text}");
    assert!(!text.contains(UNKNOWN));
}

#[tokio::test]
async fn pages_need_nothing_from_elsewhere() {
    for path in ["/", "/docs"] {
        let answer = get(path).await;
        assert_eq!((answer.status, answer.form.as_str()), (StatusCode::OK, "text/html"));
        assert!(!answer.body.contains("http://") && !answer.body.contains("https://"), "{path} names another host");
    }
}

#[tokio::test]
async fn alerts_stand_with_their_state_and_what_became_of_telling_them() {
    let (router, document) = parts(&[]);
    let answer = ask(&router, Method::GET, "/api/v1/alerts?state=firing", "*/*").await;
    conforms(&document, "/api/v1/alerts", &answer);
    let alert = &answer.json()["alerts"][0];
    assert_eq!((&alert["state"], &alert["ends_at"]), (&Value::from("firing"), &Value::Null));
    assert_eq!(alert["starts_at"], "2026-01-02T12:00:00Z");
    assert_eq!(get("/api/v1/alerts?state=resolved").await.json()["alerts"], serde_json::json!([]));
    let refused = get("/api/v1/alerts?state=broken").await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    assert_eq!(refused.json()["accepted"], serde_json::json!(["firing", "resolved"]));

    let answer = ask(&router, Method::GET, "/api/v1/alerts/history?from=-1d&limit=5", "*/*").await;
    conforms(&document, "/api/v1/alerts/history", &answer);
    let deliveries = &answer.json()["transitions"][0]["deliveries"];
    assert_eq!(deliveries[0]["last_error"], Value::Null);
    assert_eq!(
        (&deliveries[1]["delivered_at"], &deliveries[1]["last_error"]),
        (&Value::Null, &Value::from("it answered 503"))
    );
    assert_eq!(get("/api/v1/alerts/history?model=m").await.status, StatusCode::BAD_REQUEST);
}
