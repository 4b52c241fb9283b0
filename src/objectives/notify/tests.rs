use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::alertmanager::PostedAlert;
use super::webhook::Event;
use super::*;
use crate::store::{AlertTransition, StoredAlert};

const AT: UnixNanos = UnixNanos(1_767_355_200_000_000_000);

fn texts(name: &str, value: &str) -> BTreeMap<String, String> {
    BTreeMap::from([(name.to_owned(), value.to_owned())])
}

fn alert(ends_at: Option<UnixNanos>) -> StoredAlert {
    StoredAlert {
        fingerprint: Uuid::from_u128(7),
        slo: "queue-p95".to_owned(),
        labels: texts("alertname", "TracejoinObjectiveBroken"),
        annotations: texts("summary", "gpu_queue broke"),
        generator_url: Some("https://tracejoin.example/x".to_owned()),
        firing: ends_at.is_none(),
        transitions: 1,
        starts_at: AT,
        ends_at,
    }
}

fn posted(alert: &StoredAlert, now: UnixNanos, resend: u64) -> Value {
    serde_json::to_value(PostedAlert::of(alert, now, Duration::from_secs(resend))).expect("JSON")
}

#[test]
fn alertmanager_is_told_when_to_forget_what_it_hears_no_more_of() {
    let now = AT + Nanos(60_000_000_000);
    assert_eq!(
        posted(&alert(None), now, 30),
        json!({
            "labels": {"alertname": "TracejoinObjectiveBroken"}, "annotations": {"summary": "gpu_queue broke"},
            "startsAt": "2026-01-02T12:00:00+00:00", "endsAt": "2026-01-02T12:06:00+00:00",
            "generatorURL": "https://tracejoin.example/x",
        })
    );
    assert_eq!(posted(&alert(None), now, 600)["endsAt"], "2026-01-02T12:41:00+00:00", "four times the resend");
    assert_eq!(posted(&alert(Some(now)), now + Nanos(9_000_000_000), 30)["endsAt"], "2026-01-02T12:01:00+00:00");
}

#[test]
fn a_webhook_is_told_the_same_each_time() {
    let StoredAlert { fingerprint, slo, labels, annotations, generator_url, .. } = alert(None);
    let mut transition = AlertTransition {
        key: Uuid::from_u128(9),
        fingerprint,
        number: 1,
        at: AT,
        firing: true,
        slo,
        labels,
        annotations,
        generator_url,
        starts_at: AT,
    };
    insta::assert_json_snapshot!("event", serde_json::to_value(Event::of(&transition)).expect("JSON"));
    (transition.firing, transition.at) = (false, AT + Nanos(1_000_000_000));
    let resolved = serde_json::to_value(Event::of(&transition)).expect("JSON");
    assert_eq!((&resolved["type"], &resolved["data"]["state"]), (&json!("alert.resolved"), &json!("resolved")));
    assert_eq!(resolved["data"]["ends_at"], "2026-01-02T12:00:01+00:00");
}

/// HMAC as RFC 2104 defines it, written out.
fn hmac(key: &[u8], message: &[u8]) -> Vec<u8> {
    let padded = |pad: u8| -> Vec<u8> { (0..64).map(|at| key.get(at).copied().unwrap_or(0) ^ pad).collect() };
    let inner = Sha256::digest([&padded(0x36), message].concat());
    Sha256::digest([padded(0x5c), inner.to_vec()].concat()).to_vec()
}

#[test]
fn a_signature_is_that_of_the_specification() {
    let secret: Vec<u8> = (1..=32).collect();
    let key = Key::read(&format!("whsec_{}", STANDARD.encode(&secret))).expect("a key");
    let expected = format!("v1,{}", STANDARD.encode(hmac(&secret, b"id.1767355200.{\"a\":1}")));
    assert_eq!(key.signature("id", 1_767_355_200, "{\"a\":1}"), expected);
}

#[test]
fn a_bad_key_is_refused_and_not_shown() {
    let short = format!("whsec_{}", STANDARD.encode([7; 23]));
    for text in ["hunter2hunter2hunter2hunter2", "whsec_???", &*short] {
        let error = Key::read(text).err().expect("refused").to_string();
        assert!(error.contains("--webhook-secret") && !error.contains(text), "{error}");
    }
}
