//! The archive of event lines: written after the commit, whole after a kill, and sent again.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use flate2::read::MultiGzDecoder;
use serde_json::{Value, json};

use crate::common::{PATIENCE, Server};
use crate::events::{done, fresh_id, log, truncated, wants, whole};
use crate::expectation::differences;

/// Runs `recompute` and returns its counts and whether it succeeded.
async fn recompute(server: &Server, words: &[&str]) -> (bool, Value) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tracejoin"));
    command.arg("recompute").args(words).args(["--json", "--server", &server.http]);
    let output = tokio::task::spawn_blocking(move || command.output().expect("the binary runs")).await.expect("run");
    let told = serde_json::from_slice(&output.stdout);
    (output.status.success(), told.unwrap_or_else(|_| json!(String::from_utf8_lossy(&output.stderr))))
}

/// The one file of the one day of an archive.
fn only_file(dir: &Path) -> Option<PathBuf> {
    let entries = |path: &Path| -> Vec<PathBuf> {
        fs::read_dir(path).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path())).collect()
    };
    let [day] = entries(dir).try_into().ok()?;
    let [file] = entries(&day).try_into().ok()?;
    Some(file)
}

/// What the archive holds; the last member may not be whole yet.
fn archived(dir: &Path) -> String {
    let mut text = String::new();
    if let Some(file) = only_file(dir) {
        let _ = MultiGzDecoder::new(fs::File::open(file).expect("a file")).read_to_string(&mut text);
    }
    text
}

async fn wait_for_lines(dir: &Path, lines: usize) -> String {
    let end = Instant::now() + PATIENCE;
    loop {
        let text = archived(dir);
        if text.lines().count() >= lines {
            return text;
        }
        assert!(Instant::now() < end, "{lines} lines: {text}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn archived_lines_make_the_same_request_wherever_they_are_sent() {
    let dir = tempfile::tempdir().expect("a folder");
    let folder = dir.path().to_str().expect("UTF-8");
    let server = Server::started(&["--archive-dir", folder, "--archive-extra", "node,ms"]).await;
    let (trace_id, request_id) = (fresh_id(), fresh_id());
    let path = format!("/api/v1/traces/{trace_id}");
    let mut lines = log(&trace_id, &request_id);
    lines[1]["extra"] = json!({"text": "never stored", "node": "a1", "ms": 4, "mail": "ann@example.com"});
    // One at a time, and one twice, while they will be sent again all at once.
    for line in lines.chunks(1) {
        server.log(line).await;
    }
    server.log(&lines[1..2]).await;
    let text = wait_for_lines(dir.path(), 4).await;
    assert_eq!(text.lines().count(), 4, "{text}");
    for secret in ["never stored", "mail", "ann@"] {
        assert!(!text.contains(secret), "{text}");
    }
    assert!(text.contains(r#""extra":{"ms":4,"node":"a1"}"#), "{text}");
    let mut closed = truncated();
    (closed["state"], closed["revision"]) = (json!("client_only"), json!(1));
    server.wait_for(&path, wants(closed.clone())).await;

    let there = json!({"read": 4, "accepted": 0, "duplicates": 4, "results": null, "rejected": {}});
    assert_eq!(recompute(&server, &[folder]).await, (true, there));
    assert_eq!(differences(&closed, &server.get(&path).await.1), [""; 0], "nothing has changed");
    assert_eq!(wait_for_lines(dir.path(), 4).await, text, "what was there already is not archived again");

    // SIGKILL: what was written stays readable, and another database gets the same request from it.
    drop(server);
    assert_eq!(archived(dir.path()), text);
    let other = Server::start().await;
    let today = only_file(dir.path()).expect("a file");
    // As if it had been killed in the middle of the next member.
    let mut torn = fs::OpenOptions::new().append(true).open(&today).expect("opened");
    torn.write_all(&[0x1f, 0x8b, 8, 0, 0]).expect("written");
    let day = today.parent().and_then(Path::file_name).and_then(|day| day.to_str()).expect("a day");
    let (read, taken) = recompute(&other, &[folder, "--to", "2001-01-01"]).await;
    assert!(!read && taken.as_str().is_some_and(|told| told.contains("no archived lines")), "{taken}");
    let (_, taken) = recompute(&other, &[folder, "--from", day, "--to", day]).await;
    assert_eq!((&taken["read"], &taken["accepted"], &taken["duplicates"]), (&json!(4), &json!(4), &json!(0)));
    other.wait_for(&path, wants(closed)).await;
    other.log(&[done(&request_id)]).await;
    other.wait_for(&path, wants(whole())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archive_that_cannot_be_written_holds_up_nobody_and_is_told() {
    let dir = tempfile::tempdir().expect("a folder");
    let folder = dir.path().join("archive");
    let server = Server::started(&["--archive-dir", folder.to_str().expect("UTF-8")]).await;
    assert_eq!(server.get("/readyz").await, (200, json!({"status": "ready"})));
    fs::remove_dir(&folder).expect("removed");
    fs::write(&folder, "in the way").expect("written");
    let answer = server.log(&log(&fresh_id(), &fresh_id())).await;
    assert_eq!(answer["accepted"], 4);
    server
        .wait_for("/readyz", |answer| {
            let told = answer["remarks"][0].as_str().unwrap_or_default();
            if told.starts_with("event lines are not archived") { Vec::new() } else { vec![told.to_owned()] }
        })
        .await;
    let metrics = server.text("/metrics").await;
    assert!(metrics.contains("tracejoin_archive_lines_total{outcome=\"lost\"} 4"), "{metrics}");
}
