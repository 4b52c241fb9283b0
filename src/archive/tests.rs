use std::fs;
use std::io::{Read, Write};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use proptest::prelude::*;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::*;
use model::{EventKind, Nanos, StreamEvent, TraceId};
use normalise::{self, ExtraKeys};

const DAY: i64 = 86_400_000_000_000;

fn line(seq: i64) -> StreamEvent {
    StreamEvent {
        client_time: Some(Nanos(1_767_323_045_678_250_000 + seq)),
        seq: Some(seq),
        kind: EventKind::Business,
        tokens: Some(3),
        batched: Some(true),
        service_time: None,
    }
}

fn kept(lines: Vec<StreamEvent>) -> KeptLog {
    let lines = lines.into_iter().map(|line| (line, Map::new())).collect();
    KeptLog { trace_id: TraceId::of_request_id("r"), request_id: Some("r".to_owned()), lines }
}

/// What lies in the folder of a day, file by file.
fn texts(dir: &Path, day: &str) -> Vec<String> {
    let files = fs::read_dir(dir.join(day)).expect("a folder");
    let text = |file: std::io::Result<fs::DirEntry>| {
        let mut text = String::new();
        let opened = fs::File::open(file.expect("a file").path()).expect("opened");
        MultiGzDecoder::new(opened).read_to_string(&mut text).expect("whole members");
        text
    };
    files.map(text).collect()
}

fn open(dir: &Path) -> Archive {
    Archive::open(Options { dir: dir.to_owned(), retention: Duration::from_secs(2 * 86_400) }).expect("opened")
}

#[tokio::test]
async fn lines_lie_in_the_folder_of_the_day_on_which_they_were_committed() {
    let dir = tempfile::tempdir().expect("a folder");
    let archive = open(dir.path());
    archive.keep(UnixNanos(DAY - 1), vec![kept(vec![line(1)])]);
    archive.keep(UnixNanos(DAY), vec![kept(vec![line(2), line(3)])]);
    archive.keep(UnixNanos(DAY), Vec::new());
    let other = open(dir.path());
    other.keep(UnixNanos(DAY), vec![kept(vec![line(4)])]);
    archive.close().await;
    other.close().await;
    let of = |day| {
        let mut seqs: Vec<Vec<i64>> = texts(dir.path(), day)
            .iter()
            .map(|text| text.lines().map(|line| seq(line).expect("a number")).collect())
            .collect();
        seqs.sort();
        seqs
    };
    assert_eq!(of("1970-01-01"), [[1]]);
    // Two processes never write to one file.
    assert_eq!(of("1970-01-02"), [vec![2, 3], vec![4]]);
}

fn seq(line: &str) -> Option<i64> {
    serde_json::from_str::<Value>(line).expect("JSON")["event_seq"].as_i64()
}

#[tokio::test]
async fn lines_that_cannot_be_written_are_told_until_some_are() {
    let dir = tempfile::tempdir().expect("a folder");
    let archive = open(dir.path());
    fs::write(dir.path().join("1970-01-01"), "in the way").expect("written");
    archive.keep(UnixNanos(0), vec![kept(vec![line(1)])]);
    wait_until(|| archive.trouble().is_some()).await;
    let told = archive.trouble().expect("told");
    assert!(told.starts_with("event lines are not archived: "), "{told}");
    fs::remove_file(dir.path().join("1970-01-01")).expect("removed");
    archive.keep(UnixNanos(0), vec![kept(vec![line(2)])]);
    wait_until(|| archive.trouble().is_none()).await;
    archive.close().await;
    assert_eq!(texts(dir.path(), "1970-01-01").len(), 1);
}

async fn wait_until(what: impl Fn() -> bool) {
    while !what() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[test]
fn a_folder_that_cannot_be_written_to_is_an_error_that_names_it() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let options = Options { dir: file.path().join("below"), retention: Duration::ZERO };
    let error = Archive::open(options).expect_err("no folder").to_string();
    assert!(error.contains("--archive-dir") && error.contains("below"), "{error}");
}

#[tokio::test]
async fn days_past_their_retention_go_and_what_is_not_ours_stays() {
    let dir = tempfile::tempdir().expect("a folder");
    let archive = open(dir.path());
    let today = UnixNanos::now();
    for days in [0, 1, 2, 3, 4] {
        archive.keep(UnixNanos(today.0 - days * DAY), vec![kept(vec![line(1)])]);
    }
    archive.close().await;
    fs::create_dir(dir.path().join("notes")).expect("made");
    let all = days(dir.path()).expect("readable");
    assert_eq!(all.len(), 5);
    fs::write(all[0].1.join("note.txt"), "mine").expect("written");
    let archive = open(dir.path());
    archive.tidy();
    archive.close().await;
    let left: Vec<_> = days(dir.path()).expect("readable").into_iter().map(|(day, _)| day).collect();
    let mut wanted = vec![all[0].0];
    wanted.extend(all[2..].iter().map(|(day, _)| *day));
    assert_eq!(left, wanted, "two whole days and today, and the one that holds a file of somebody else");
    assert_eq!(fs::read_dir(&all[0].1).expect("a folder").count(), 1, "our own file is gone");
    assert!(dir.path().join("notes").is_dir());
}

#[test]
fn a_member_follows_a_whole_one() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("file");
    let mut file = member::MemberFile::create(&path).expect("made");
    file.append(b"one\n").expect("written");
    file.append(b"two\n").expect("written");
    assert!(file.is_whole() && file.is_there());
    fs::OpenOptions::new().append(true).open(&path).expect("opened").write_all(b"torn").expect("written");
    assert!(!file.is_whole());
    fs::remove_file(&path).expect("removed");
    assert!(!file.is_there());
}

#[test]
fn only_known_fields_are_written() {
    let mut log = kept(vec![line(1)]);
    log.lines[0].1.insert("node".to_owned(), json!("a1"));
    let mut text = Vec::new();
    log.write(&mut text).expect("JSON");
    let written: Value = serde_json::from_slice(&text).expect("one line");
    // A trace id that only stands for the request id would not be one to send again.
    let wanted = json!({"request_id": "r", "event_seq": 1, "event_type": "business",
                        "client_time_ms": 1_767_323_045_678.25, "token_count": 3, "batch_flag": true,
                        "extra": {"node": "a1"}});
    assert_eq!(written, wanted);
}

fn sent() -> impl Strategy<Value = String> {
    let clock = || prop::option::of(prop_oneof![0.0_f64..1e6, 1.7e12..1.8e12, (0_u32..1 << 30).prop_map(f64::from)]);
    let number = || prop::option::of(0_i64..1 << 40);
    let id = prop_oneof![
        Just(json!({"request_id": "r"})),
        Just(json!({"trace_id": "dddddddddddddddddddddddddddddddd"})),
        Just(json!({"request_id": "a b", "trace_id": "dddddddddddddddddddddddddddddddd"})),
    ];
    let kind = prop::sample::select(EventKind::ALL.to_vec());
    (id, kind, clock(), clock(), number(), number(), any::<Option<bool>>()).prop_map(
        |(mut line, kind, client, service, seq, tokens, batched)| {
            line["event_type"] = json!(kind.name());
            (line["client_time_ms"], line["service_time_ms"]) = (json!(client), json!(service));
            (line["event_seq"], line["token_count"], line["batch_flag"]) = (json!(seq), json!(tokens), json!(batched));
            line.to_string()
        },
    )
}

proptest! {
    #[test]
    fn an_archived_line_reads_back_as_it_came(sent in sent()) {
        let read = |text: &str| {
            let raw: &RawValue = serde_json::from_str(text).expect("JSON");
            normalise::event(raw, &ExtraKeys::default()).expect("a line")
        };
        let came = read(&sent);
        let of_request = came.request_id.as_deref().map(TraceId::of_request_id);
        let log = KeptLog {
            trace_id: came.trace_id.or(of_request).expect("one of the two"),
            request_id: came.request_id.clone(),
            lines: vec![(came.event, Map::new())],
        };
        let mut text = Vec::new();
        log.write(&mut text).expect("JSON");
        prop_assert_eq!(read(std::str::from_utf8(&text).expect("UTF-8")), came);
    }
}
