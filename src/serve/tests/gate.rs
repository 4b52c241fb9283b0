//! Gates as a reader meets them.

use serde_json::json;

use super::*;
use crate::objectives::dry_runs::DryRunError;
use crate::objectives::gates::{GateError, GateQuestion, Judged};
use crate::serve::source::{GateSource, ReplaySource};
use crate::serve::verdict::tests::{objective, verdict};
use crate::store::Unsettled;
use model::{Interval, Metric, Nanos, UnixNanos};
use slo::alert::Trouble;
use slo::dry_run::{DryRunQuestion, Firing, Replayed, Verdicts};
use slo::explain::{Baseline, Explanation, Means, Pair, Past, Split, Splits};
use slo::{Gap, Indicator, Objective, Status};

/// The questions that are posted.
pub const PATHS: [&str; 2] = ["/api/v1/gate", "/api/v1/slos-dry-run"];

/// Of three objectives the first is broken, the second ok and the third has no verdict; of runs only `r1` is there, and
/// `late` has not settled.
impl GateSource for Fixture {
    fn judge<'a>(&'a self, asked: &'a GateQuestion) -> BoxFuture<'a, Result<Judged, GateError>> {
        async move { judged(asked) }.boxed()
    }
}

/// Fires once, a minute after the start, and is broken a tenth of the time.
impl ReplaySource for Fixture {
    fn replay<'a>(&'a self, asked: &'a DryRunQuestion) -> BoxFuture<'a, Result<Replayed, DryRunError>> {
        async move {
            asked.check()?;
            let start = asked.window.start + Nanos(60_000_000_000);
            let verdict = verdict(Status::Broken, 1.5 * asked.objective.threshold);
            let firing = Firing { trouble: Trouble::Broken, start, end: None, verdict, burn: None };
            let broken = asked.steps() / 10;
            let verdicts = Verdicts { broken, ok: asked.steps() - broken, ..Verdicts::default() };
            Ok(Replayed { verdicts, firings: vec![firing] })
        }
        .boxed()
    }
}

fn judged(asked: &GateQuestion) -> Result<Judged, GateError> {
    let late = asked.run.as_deref() == Some("late");
    let unsettled = if late { Unsettled { traces: 3, pending: 2 } } else { Unsettled::default() };
    if late && asked.when_settled {
        return Ok(Judged { window: None, unsettled, verdicts: None, explanations: Vec::new() });
    }
    if let Some(run) = asked.run.as_ref().filter(|run| !["r1", "late"].contains(&run.as_str())) {
        return Err(GateError::UnknownRun(run.clone()));
    }
    let statuses = [Status::Broken, Status::Ok { at_risk: true }, Status::NoVerdict(vec![Gap::BoundsStraddle])];
    let verdicts = asked.objectives.iter().cloned().zip(statuses).map(|(objective, status)| {
        let verdict = verdict(status, 1.5 * objective.threshold);
        (objective, verdict)
    });
    let window = asked.window.unwrap_or(Interval { start: UnixNanos(0), end: UnixNanos(60_000_000_000) });
    let explanations = if asked.explain { vec![explanation(asked.run.is_none())] } else { Vec::new() };
    Ok(Judged { window: Some(window), unsettled, verdicts: Some(verdicts.collect()), explanations })
}

/// A queue that grew from 100 to 400 ms, and of every twentieth request to 2 s.
pub fn explanation(with_baseline: bool) -> Explanation {
    let window = Interval { start: UnixNanos(0), end: UnixNanos(60_000_000_000) };
    let split = |queue: f64| {
        let parts = [30e6, 20e6, queue, 500e6, 0.0, 0.0, 10e6];
        Split { whole: parts.iter().sum(), parts: parts.map(Some), past: 0 }
    };
    let splits = |queue: f64, n: u64| (0..n).map(move |at| split(if at % 20 == 7 { 5.0 * queue } else { queue }));
    let window_of = |queue: f64| Splits { window, splits: splits(queue, 400).collect(), records: 428, unread: None };
    let now = window_of(400e6);
    let past = Past {
        objective: objective("queue-p95", Indicator::Metric(Metric::GpuQueue), 250e6).id,
        indicator: Indicator::Metric(Metric::GpuQueue),
        means: Means::of(Pair::Total, &now.splits),
    };
    Explanation {
        objectives: vec![past.objective.clone()],
        pair: Pair::Total,
        broken: vec![past],
        now,
        baseline: with_baseline.then(|| Baseline { run: None, splits: window_of(100e6) }),
    }
}

fn documents(objectives: &[Objective]) -> Value {
    objectives.iter().map(slo::document::to_json).collect()
}

fn three() -> Value {
    documents(&[
        objective("queue-p95", Indicator::Metric(Metric::GpuQueue), 250e6),
        objective("speed", Indicator::Metric(Metric::RateStream), 30.0),
        objective("joined", Indicator::JoinCoverage, 0.95),
    ])
}

async fn post(body: &Value) -> (Answer, Value) {
    post_to("/api/v1/gate", body).await
}

async fn post_to(path: &str, body: &Value) -> (Answer, Value) {
    let (router, document) = parts(&[]);
    let request = Request::post(path).header(CONTENT_TYPE, "application/json");
    let answer = send(&router, request.body(Body::from(body.to_string())).expect("a request")).await;
    conforms_to(&document, path, "post", &answer);
    let body = answer.json();
    (answer, body)
}

#[tokio::test]
async fn a_gate_names_the_phase_that_broke_and_the_one_that_moved() {
    let (answer, body) = post(&json!({"objectives": three(), "from": "-10m", "explain": true})).await;
    assert_eq!(answer.status, StatusCode::OK, "{body}");
    assert_eq!((body["outcome"].as_str(), &body["broken_phases"]), (Some("broken"), &json!(["gpu_queue"])));
    let told: Vec<_> = body["verdicts"].as_array().expect("verdicts").iter().map(|one| &one["verdict"]).collect();
    assert_eq!(told, ["broken", "ok", "no_verdict"]);
    assert_eq!(body["reasons"], json!(["no verdict on joined"]));
    let explained = &body["explanations"][0];
    assert_eq!(explained["moved"][0]["phase"], "gpu_queue");
    // 380 requests of 400 ms and 20 of 2 s are 480 ms each; before a quarter of it.
    assert_eq!((&explained["moved"][0]["by_ms"], &explained["now"]["n"]), (&json!(360.0), &json!(400)));
    insta::assert_json_snapshot!(explained["said"]);
}

#[tokio::test]
async fn a_run_without_a_baseline_has_nothing_to_compare_with() {
    let (_, body) = post(&json!({"objectives": three(), "run": "r1", "explain": true})).await;
    let said = body["explanations"][0]["said"].to_string();
    assert!(said.contains("nothing to compare with"), "{said}");
    assert_eq!(body["explanations"][0]["baseline"], Value::Null);
    assert!(said.contains("gpu_queue broke (queue-p95)") && said.contains("slow by gpu_queue"), "{said}");
}

#[tokio::test]
async fn what_has_not_settled_is_told_and_does_not_pass() {
    let one = documents(&[objective("speed", Indicator::Metric(Metric::RateStream), 30.0)]);
    let (_, body) = post(&json!({"objectives": one, "run": "late", "when_settled": true})).await;
    assert_eq!((body["outcome"].as_str(), &body["verdicts"]), (Some("unsettled"), &json!([])));
    assert_eq!(body["unsettled"], json!({"traces": 3, "pending": 2}));
    let (_, body) = post(&json!({"objectives": three(), "run": "late"})).await;
    assert_eq!(body["outcome"], "broken");
}

#[tokio::test]
async fn questions_that_cannot_be_put_are_refused_with_what_to_change() {
    let bad =
        json!({"apiVersion": "tracejoin/v1", "kind": "SLO", "metadata": {"name": "x"}, "spec": {"phase": "queue"}});
    for (body, status, part) in [
        (json!({"objectives": three()}), 400, "neither run nor from"),
        (json!({"objectives": three(), "run": "no-such"}), 404, "no request of the run"),
        (json!({"objectives": three(), "to": "now"}), 400, "to is given without from"),
        (json!({"objectives": [], "run": "r1"}), 400, "holds no objective"),
        (json!({"objectives": [bad], "run": "r1"}), 400, "spec.phase"),
        (json!({"objectives": three(), "run": "r1", "baseline": {}}), 400, "a baseline is a run"),
        (json!({"objectives": three(), "run": "r1", "received_before": "soon"}), 400, "received_before"),
        (json!({"objective": three(), "run": "r1"}), 400, "unknown field"),
    ] {
        let (answer, told) = post(&body).await;
        assert_eq!(answer.status.as_u16(), status, "{told}");
        assert!(told["detail"].as_str().is_some_and(|detail| detail.contains(part)), "{part}: {told}");
    }
}

#[tokio::test]
async fn a_dry_run_says_how_often_and_how_early_and_refuses_what_is_too_much() {
    let body = json!({"objectives": three(), "from": "2026-01-02T12:00:00Z", "to": "2026-01-02T14:00:00Z",
                      "noticed": ["2026-01-02T12:31:00Z"]});
    let (answer, told) = post_to("/api/v1/slos-dry-run", &body).await;
    assert_eq!(answer.status, StatusCode::OK, "{told}");
    let one = &told["dry_runs"][0];
    assert_eq!(
        (&one["slo"], &one["evaluations"], &one["verdicts"]["broken"]),
        (&json!("queue-p95"), &json!(241), &json!(24))
    );
    assert_eq!(one["firings"][0]["alert"], "TracejoinObjectiveBroken");
    assert_eq!(
        (&one["noticed"][0]["seconds_before"], &one["noticed"][0]["fired_then"]),
        (&json!(1800.0), &json!(true))
    );
    for (field, value, part) in [
        ("from", json!("2025-12-02T12:00:00Z"), "more than the 168 h"),
        ("every", json!("100ms"), "more than the 50000"),
        ("every", json!("soon"), "every is"),
        ("noticed", json!(["yesterday"]), "noticed is"),
        ("to", json!("2026-01-02T11:00:00Z"), "from is not before to"),
    ] {
        let mut wrong = body.clone();
        wrong[field] = value;
        let (answer, told) = post_to("/api/v1/slos-dry-run", &wrong).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{told}");
        assert!(told["detail"].as_str().is_some_and(|detail| detail.contains(part)), "{part}: {told}");
    }
}
