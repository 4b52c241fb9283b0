//! Faults of a gateway, the alerts that they fire and no others, with a real Alertmanager and a real Prometheus.
//!
//! One set of processes plays through all faults, since each needs its windows of half a minute.

use std::collections::BTreeSet;
use std::fs;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::Value;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::alertmanager::{Alert, Alertmanager};
use crate::live::LiveDemo;
use crate::prometheus::{Prometheus, promtool};
use crate::scratch::Scratch;
use crate::setup::{source, take_turn};
use crate::tracejoin::{Store, Tracejoin};

const OBJECTIVES: &str = "src/cli/demo/live/objectives.yaml";
const QUEUE: &str = "demo-queue";
const ENVELOPE: &str = "demo-envelope";
const ERRORS: &str = "demo-errors";
const TIMEOUTS: &str = "demo-timeouts";
const MEDIAN: &str = "median-duration";

/// What a long queue breaks: its own phase, and in the end the patience of clients.
const QUEUED: [&str; 2] = ["gpu_queue", "timeout_share"];

const EVALUATION: Duration = Duration::from_secs(2);
/// The promise: one evaluation and ten seconds after a fault begins its alert is out.
const PROMISE: Duration = Duration::from_secs(EVALUATION.as_secs() + 10);
/// What is added for a machine whose processors are shared: an alert passes through seven processes on its way, and the
/// promise is made for one that has time for them.
const BUSY_MACHINE: Duration = Duration::from_secs(10);
/// Longer than a window of all objectives, twice, and whatever else is to be waited for.
const PATIENCE: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(250);

#[tokio::test(flavor = "multi_thread")]
async fn each_fault_alerts_for_its_own_phase_and_nothing_hides_another() {
    let _turn = take_turn().await;
    let scratch = Scratch::new();
    let mut stage = Stage::set(&scratch).await;
    stage.wait_until_healthy().await;

    stage.a_queue_fires_its_own_alert().await;
    stage.prometheus_fires_by_its_own_rules().await;
    stage.the_alert_survives_a_kill().await;
    stage.the_alert_is_resolved().await;
    stage.the_network_fires_the_envelopes_alert().await;
    stage.a_storm_of_errors_hides_no_latency().await;
    stage.timeouts_hide_no_latency().await;
    stage.lost_spans_leave_no_verdict().await;
}

/// Everything that runs.
struct Stage<'a> {
    scratch: &'a Scratch,
    tracejoin: Tracejoin,
    alertmanager: Arc<Alertmanager>,
    prometheus: Prometheus,
    demo: LiveDemo,
    witness: Witness,
}

impl<'a> Stage<'a> {
    async fn set(scratch: &'a Scratch) -> Self {
        let alertmanager =
            Arc::new(Alertmanager::start(scratch, &documented("alertmanager.yml").replace("10s", "0s")).await);
        let url = alertmanager.url();
        let flags = ["--slo-evaluation", "2s", "--join-deadline", "3s", "--alert-resend", "2s", "--alertmanager", &url];
        let tracejoin = Tracejoin::start_with(scratch, Store::Private, &flags).await;
        let objectives = source(OBJECTIVES).display().to_string();
        tracejoin.command(&["slo", "apply", &objectives]);
        let prometheus = start_prometheus(scratch, &tracejoin, &objectives).await;
        let demo = LiveDemo::start(scratch, &tracejoin).await;
        let witness = Witness::watch(Arc::clone(&alertmanager));
        Self { scratch, tracejoin, alertmanager, prometheus, demo, witness }
    }

    async fn wait_until_healthy(&self) {
        let [envelope, gateway, queue, generation, errors, timeouts] =
            [ENVELOPE, "demo-gateway", QUEUE, "demo-generation", ERRORS, TIMEOUTS];
        for slo in [envelope, gateway, queue, generation, errors, timeouts] {
            self.wait_for_verdict(slo, "ok").await;
        }
        assert_eq!(self.witness.seen(), BTreeSet::new(), "nothing is wrong yet");
    }

    async fn a_queue_fires_its_own_alert(&mut self) {
        let began = self.demo.fault("queue").await;
        let alert = self.wait_for_alert(QUEUE).await;
        let took = began.elapsed();
        println!("the queue's alert was seen in Alertmanager after {took:?}: {:?}", alert.annotations);
        assert!(took <= PROMISE + BUSY_MACHINE, "it took {took:?}");
        let expected = [
            ("alertname", "TracejoinObjectiveBroken"),
            ("phase", "gpu_queue"),
            ("owner", "inference"),
            ("provider", "own"),
        ];
        for (name, value) in expected {
            assert_eq!(alert.labels.get(name).map(String::as_str), Some(value), "{:?}", alert.labels);
        }
        self.exemplars_lead_to_slow_requests(&alert).await;
    }

    /// The traces that an alert names are explained by the server that sent it, and waited.
    async fn exemplars_lead_to_slow_requests(&self, alert: &Alert) {
        let text: String = alert.annotations.values().map(String::as_str).collect::<Vec<_>>().join(" ");
        let ids = trace_ids(&text);
        assert!(!ids.is_empty(), "{:?}", alert.annotations);
        for id in ids {
            let request = self.tracejoin.trace(id).await;
            assert!(request["phases"]["gpu_queue_ms"].as_f64().is_some_and(|queue| queue > 250.0), "{request}");
        }
    }

    async fn prometheus_fires_by_its_own_rules(&self) {
        let firing = until("a rule of Prometheus fires", async || {
            let alerts = self.prometheus.query("ALERTS{alertstate=\"firing\"}").await;
            alerts.iter().any(|alert| alert["metric"]["slo"] == QUEUE).then_some(alerts)
        });
        let firing = firing.await;
        let phases: BTreeSet<&str> = firing.iter().filter_map(|alert| alert["metric"]["phase"].as_str()).collect();
        assert!(phases.contains("gpu_queue") && phases.is_subset(&QUEUED.into()), "{firing:?}");
        let query = "tracejoin_phase_seconds_bucket{phase=\"gpu_queue\"}";
        let (start, end) = (chrono::Utc::now() - chrono::TimeDelta::minutes(5), chrono::Utc::now());
        let (start, end) = (start.to_rfc3339(), end.to_rfc3339());
        let window = [("query", query), ("start", start.as_str()), ("end", end.as_str())];
        let exemplars = self.prometheus.get("query_exemplars", &window).await;
        let id = exemplars[0]["exemplars"][0]["labels"]["trace_id"].as_str();
        let id = id.unwrap_or_else(|| panic!("an exemplar names a trace: {exemplars}"));
        assert_eq!(self.tracejoin.trace(id).await["state"], "matched");
    }

    async fn the_alert_survives_a_kill(&mut self) {
        let before = self.firing(QUEUE).await.expect("it fires");
        self.tracejoin.stop(Signal::SIGKILL).await;
        self.tracejoin.resume(self.scratch).await;
        let after = self.firing(QUEUE).await;
        let after = after.expect("it is kept in the database");
        assert_eq!(after["starts_at"], before["starts_at"], "it is the same alert");
        self.wait_for_verdict(QUEUE, "broken").await;
        assert!(self.in_alertmanager(QUEUE).await.is_some(), "Alertmanager still shows it");
    }

    async fn the_alert_is_resolved(&mut self) {
        self.demo.fault("none").await;
        until("Alertmanager has no alert", async || self.alertmanager.alerts().await.is_empty().then_some(())).await;
        assert_eq!(self.firing(QUEUE).await, None);
        until("no rule of Prometheus fires", async || {
            self.prometheus.query("ALERTS{alertstate=\"firing\"}").await.is_empty().then_some(())
        })
        .await;
        let seen = self.witness.seen();
        let phases: BTreeSet<&str> = seen.iter().map(|(_, phase)| phase.as_str()).collect();
        assert!(phases.is_subset(&QUEUED.into()), "a queue is not slow elsewhere: {seen:?}");
    }

    async fn the_network_fires_the_envelopes_alert(&mut self) {
        self.witness.forget();
        let began = self.demo.fault("network").await;
        let alert = self.wait_for_alert(ENVELOPE).await;
        let took = began.elapsed();
        println!("the envelope's alert was seen in Alertmanager after {took:?}");
        assert!(took <= PROMISE + BUSY_MACHINE, "it took {took:?}");
        assert_eq!(alert.labels.get("phase").map(String::as_str), Some("network_envelope"));
        // Two more evaluations, in which others could follow.
        sleep(2 * EVALUATION).await;
        assert_eq!(self.witness.seen(), [(ENVELOPE.to_owned(), "network_envelope".to_owned())].into());
    }

    /// The storm's answers come in milliseconds: they may not pull down what a queue has pushed up.
    async fn a_storm_of_errors_hides_no_latency(&mut self) {
        let median = source("tests/real/alerting/median.yaml").display().to_string();
        self.tracejoin.command(&["slo", "apply", &median]);
        self.demo.fault("queue errors").await;
        self.wait_for_alert(ERRORS).await;
        // So many that the median of all of them is a refusal's few milliseconds.
        let [refused, others] = until("most requests of half a minute were refused", async || {
            let [refused, others] = self.count_by_result("error").await;
            (2 * refused > 3 * others).then_some([refused, others])
        })
        .await;
        let verdict = self.wait_for_verdict(MEDIAN, "broken").await;
        println!("{refused} refused, {others} others, and the median's verdict is {verdict}");
        sleep(2 * EVALUATION).await;
        assert_eq!(self.verdict(MEDIAN).await["verdict"], "broken", "errors improve no latency");
        assert_eq!(self.verdict(QUEUE).await["verdict"], "broken", "nor that of a phase");
    }

    /// Those whose clients gave up waited longest: what is left without them is fast.
    async fn timeouts_hide_no_latency(&mut self) {
        self.demo.fault("timeouts").await;
        self.wait_for_alert(TIMEOUTS).await;
        let p95 = until("whole answers did not wait", async || {
            let answer = self.phases("&result=ok").await;
            let p95 = answer["groups"][0]["phases"]["gpu_queue"]["p95_ms"].as_f64();
            p95.filter(|p95| *p95 < 250.0)
        });
        let p95 = p95.await;
        let verdict = self.verdict(QUEUE).await;
        println!("the p95 of whole answers is {p95} ms, and the queue's verdict is {verdict}");
        assert_eq!(verdict["verdict"], "broken", "who gave up in the queue counts there");
    }

    async fn lost_spans_leave_no_verdict(&mut self) {
        self.demo.fault("lost-spans").await;
        let coverage = until("most of half a minute lost its spans", async || {
            let coverage = self.phases("").await["coverage"]["join_coverage"].as_f64();
            coverage.filter(|coverage| *coverage < 0.7)
        })
        .await;
        let verdict = self.wait_for_verdict(QUEUE, "no_verdict").await;
        println!("coverage is {coverage}, and the queue's verdict is {verdict}");
        let reasons = verdict["reasons"].as_array().expect("reasons");
        assert!(reasons.iter().any(|reason| reason["reason"] == "low_coverage"), "{verdict}");
        assert!(self.firing(QUEUE).await.is_some(), "what is not known resolves nothing");
    }

    async fn verdict(&self, slo: &str) -> Value {
        self.tracejoin.get_json(&format!("/api/v1/slos/{slo}/status")).await["verdict"].take()
    }

    async fn wait_for_verdict(&self, slo: &str, verdict: &str) -> Value {
        until(&format!("{slo} is {verdict}"), async || {
            let status = self.verdict(slo).await;
            (status["verdict"] == verdict).then_some(status)
        })
        .await
    }

    async fn in_alertmanager(&self, slo: &str) -> Option<Alert> {
        let alerts = self.alertmanager.alerts().await;
        alerts.into_iter().find(|alert| alert.labels.get("slo").is_some_and(|name| name == slo))
    }

    async fn wait_for_alert(&self, slo: &str) -> Alert {
        until(&format!("Alertmanager shows {slo}"), async || self.in_alertmanager(slo).await).await
    }

    /// The alert as the server itself shows it.
    async fn firing(&self, slo: &str) -> Option<Value> {
        let answer = self.tracejoin.get_json("/api/v1/alerts?state=firing").await;
        let alerts = answer["alerts"].as_array().expect("a list").iter();
        alerts.clone().find(|alert| alert["labels"]["slo"] == slo).cloned()
    }

    /// The last half minute of the own GPUs.
    async fn phases(&self, more: &str) -> Value {
        self.tracejoin.get_json(&format!("/api/v1/phases?from=-30s&provider=own{more}")).await
    }

    /// How many requests ended so, and how many otherwise.
    async fn count_by_result(&self, result: &str) -> [u64; 2] {
        let answer = self.phases("&result=all").await;
        let groups = answer["groups"].as_array().expect("groups");
        let count = |so: bool| {
            let of = groups.iter().filter(|group| (group["dimensions"]["result"] == result) == so);
            of.filter_map(|group| group["n"].as_u64()).sum()
        };
        [count(true), count(false)]
    }
}

/// Prometheus, with the documentation's configuration and the rules that the program writes.
async fn start_prometheus(scratch: &Scratch, tracejoin: &Tracejoin, objectives: &str) -> Prometheus {
    let rules = std::process::Command::new(env!("CARGO_BIN_EXE_tracejoin")).args(["slo", "rules", objectives]).output();
    let rules = rules.expect("the binary runs");
    assert!(rules.status.success(), "{}", String::from_utf8_lossy(&rules.stderr));
    let file = scratch.join("tracejoin-rules.yml");
    fs::write(&file, rules.stdout).expect("written");
    promtool(&["check", "rules"], &file);
    let configuration = documented("prometheus.yml").replace("127.0.0.1:8080", &tracejoin.addresses.http.to_string());
    // Half a minute of the documented pace would be two readings.
    Prometheus::start(scratch, &configuration.replace("15s", "1s")).await
}

/// A file that the documentation shows, by the comment in its first line.
fn documented(name: &str) -> String {
    let page = fs::read_to_string(source("docs/alerts.md")).expect("the page");
    let start = format!("```yaml\n# {name}\n");
    let (_, rest) = page.split_once(&start).unwrap_or_else(|| panic!("the page shows no {name}"));
    rest.split("```").next().unwrap_or_default().to_owned()
}

/// Remembers every alert that Alertmanager showed, however short.
struct Witness {
    seen: Arc<Mutex<BTreeSet<(String, String)>>>,
    watching: JoinHandle<()>,
}

impl Witness {
    fn watch(alertmanager: Arc<Alertmanager>) -> Self {
        let seen = Arc::new(Mutex::new(BTreeSet::new()));
        let noted = Arc::clone(&seen);
        let watching = tokio::spawn(async move {
            loop {
                for alert in alertmanager.alerts().await {
                    let label = |name: &str| alert.labels.get(name).cloned().unwrap_or_default();
                    noted.lock().expect("not poisoned").insert((label("slo"), label("phase")));
                }
                sleep(POLL).await;
            }
        });
        Self { seen, watching }
    }

    /// Objectives and their phases.
    fn seen(&self) -> BTreeSet<(String, String)> {
        self.seen.lock().expect("not poisoned").clone()
    }

    fn forget(&self) {
        self.seen.lock().expect("not poisoned").clear();
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        self.watching.abort();
    }
}

/// The 32 hexadecimal digits of each trace id in a text.
fn trace_ids(text: &str) -> BTreeSet<&str> {
    let words = text.split(|letter: char| !letter.is_ascii_hexdigit());
    words.filter(|word| word.len() == 32).collect()
}

async fn until<T>(what: &str, check: impl AsyncFn() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = check().await {
            return found;
        }
        assert!(Instant::now() < deadline, "it did not come to this: {what}");
        sleep(POLL).await;
    }
}
