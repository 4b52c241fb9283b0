//! `tracejoin probe` against servers that follow a script. Assertions are on order, counts and classes; on times only
//! that nothing is faster than its script.

mod command;
mod scripted;

use std::io::Write;
use std::time::Duration;

use axum::body::Bytes;
use model::{Nanos, ResultClass};
use reqwest::Method;
use tracejoin::probe::{Client, DoneRule, HttpVersion, Limits, Observation, Request, Rules, Trust};

use self::scripted::{Authority, DONE, Script, Scripted, Step, send, token, wait};

const LIMITS: Limits = Limits { total: Duration::from_secs(60), stall: Duration::from_secs(60), redirects: 5 };

fn client(limits: Limits, trust: &Trust, version: HttpVersion) -> Client {
    Client::new(Rules::default(), limits, trust, version).expect("a client")
}

fn post(url: &str) -> Request {
    let headers = [("authorization", "Bearer hunter2")]
        .map(|(name, value)| (name.parse().expect("a name"), value.parse().expect("a value")));
    let headers = headers.into_iter().collect();
    Request { method: Method::POST, url: url.parse().expect("a URL"), headers, body: Bytes::from_static(b"{}") }
}

async fn measure(limits: Limits, steps: Vec<Step>) -> Observation {
    let server = Scripted::start([("/", Script { steps, ..Script::default() })]).await;
    client(limits, &Trust::System, HttpVersion::Negotiated).measure(&post(&server.url("/"))).await
}

fn millis(millis: i64) -> Nanos {
    Nanos(millis * 1_000_000)
}

const ROLE: &str = "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\r\n\r\n";
const THOUGHT: &str = "data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"hm\"}}]}\n\n";
const USAGE: &str = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":4}}\n\n";

/// A whole answer, with a letter of two bytes cut in the middle.
fn whole() -> Vec<Step> {
    let cut = token("zü");
    let within = cut.bytes().position(|byte| byte == 0xc3).expect("two bytes") + 1;
    vec![
        send("\u{feff}: hello\n\n"),
        send(ROLE),
        wait(60),
        send(THOUGHT),
        wait(60),
        send(token("a")),
        wait(60),
        send(&cut.as_bytes()[..within]),
        wait(60),
        send(&cut.as_bytes()[within..]),
        wait(60),
        send(format!("{}{USAGE}{DONE}", token("b"))),
    ]
}

fn assert_whole(observation: &Observation) {
    let seen = &observation.seen;
    assert_eq!((observation.result(), &observation.failure), (ResultClass::Ok, &None), "{observation:?}");
    assert_eq!((observation.status, observation.streaming, seen.tokens.len()), (200, Some(true), 4));
    // The comment and the token counts say nothing to the one who waits.
    assert_eq!((seen.connects, seen.heartbeats, seen.reasoning, seen.tool_calls), (1, 2, 1, 0));
    assert_eq!((seen.usage.input, seen.usage.output), (Some(7), Some(4)));
    for (at, token) in seen.tokens.iter().zip([60, 120, 240, 300]) {
        assert!(*at >= millis(token), "a token before its time: {observation:?}");
    }
    assert_eq!(seen.first_visible, seen.tokens.get(1).copied());
    let setup = &observation.setup;
    assert!(setup.dns.is_some() && setup.connect.is_some() && setup.blocked.is_some(), "{setup:?}");
    let order = [
        observation.sending,
        observation.headers,
        seen.first_event,
        observation.ttft(),
        seen.first_visible,
        seen.done,
        observation.closed,
    ];
    assert!(order.iter().all(Option::is_some) && order.is_sorted(), "{order:?}");
    assert_eq!(observation.closed, observation.duration);
    let parts = setup.total().unwrap_or_default() + observation.duration.unwrap_or_default();
    assert_eq!(observation.wall, parts);
}

#[tokio::test]
async fn each_part_is_measured_in_its_order() {
    assert_whole(&measure(LIMITS, whole()).await);
}

#[tokio::test]
async fn http2_is_spoken_by_prior_knowledge() {
    let server = Scripted::start([("/", Script { steps: whole(), ..Script::default() })]).await;
    let observation = client(LIMITS, &Trust::System, HttpVersion::Http2).measure(&post(&server.url("/"))).await;
    assert_whole(&observation);
    assert_eq!(observation.protocol, Some("HTTP/2"));
}

#[tokio::test]
async fn certificates_are_checked() {
    let authority = Authority::new();
    let server = Scripted::start_tls([("/", Script { steps: whole(), ..Script::default() })], &authority).await;
    let request = post(&format!("https://localhost:{}/", server.address.port()));
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(authority.pem.as_bytes()).expect("written");
    let ours = Trust::File(file.path().to_owned());

    for (version, protocol) in [(HttpVersion::Negotiated, "HTTP/2"), (HttpVersion::Http1, "HTTP/1.1")] {
        let observation = client(LIMITS, &ours, version).measure(&request).await;
        assert_whole(&observation);
        assert_eq!(observation.protocol, Some(protocol));
        assert!(observation.setup.tls.is_some());
    }
    assert_whole(&client(LIMITS, &Trust::Anyone, HttpVersion::Negotiated).measure(&request).await);

    let distrusted = client(LIMITS, &Trust::System, HttpVersion::Negotiated).measure(&request).await;
    assert_eq!(distrusted.failure.as_ref().map(|failure| failure.class()), Some("tls"));
    assert_eq!((distrusted.result(), distrusted.status, distrusted.duration), (ResultClass::Error, 0, None));
    assert!(distrusted.setup.connect.is_some());
}

#[tokio::test]
async fn a_stream_that_falls_silent_is_given_up_and_what_came_is_kept() {
    let limits = Limits { stall: Duration::from_millis(300), ..LIMITS };
    let observation = measure(limits, vec![send(token("a")), wait(20), send(token("b")), Step::Hang]).await;
    assert_eq!(observation.failure.as_ref().map(|failure| failure.class()), Some("stalled"));
    assert_eq!((observation.result(), observation.seen.tokens.len()), (ResultClass::Timeout, 2));
    let last = observation.seen.tokens[1];
    assert!(observation.duration.is_some_and(|duration| duration >= last + millis(300)), "{observation:?}");
    assert_eq!((observation.status, observation.closed), (200, None));
}

#[tokio::test]
async fn an_answer_that_takes_too_long_is_given_up() {
    let limits = Limits { total: Duration::from_millis(300), ..LIMITS };
    let script = Script { delay: Duration::from_secs(600), ..Script::default() };
    let server = Scripted::start([("/", script)]).await;
    let silent = client(limits, &Trust::System, HttpVersion::Negotiated).measure(&post(&server.url("/"))).await;
    assert_eq!((silent.result(), silent.status, silent.headers), (ResultClass::Timeout, 0, None));
    assert!(silent.wall >= millis(299) && silent.sending.is_some(), "{silent:?}");

    let endless = (0..1000).flat_map(|_| [wait(50), send(": still here\n\n")]).collect();
    let chatty = measure(limits, endless).await;
    assert_eq!((chatty.result(), chatty.status, chatty.ttft()), (ResultClass::Timeout, 200, None));
    assert!(chatty.seen.heartbeats > 0);
}

#[tokio::test]
async fn a_broken_answer_is_truncated_once_it_has_begun() {
    let begun = measure(LIMITS, vec![send(token("a")), Step::Break]).await;
    assert_eq!(begun.failure.as_ref().map(|failure| failure.class()), Some("reset"));
    assert_eq!((begun.result(), begun.seen.tokens.len()), (ResultClass::Truncated, 1));
    let empty = measure(LIMITS, vec![send(ROLE), Step::Break]).await;
    assert_eq!((empty.result(), empty.seen.tokens.len()), (ResultClass::Error, 0));
}

#[tokio::test]
async fn an_answer_without_its_end_marker_is_truncated_unless_none_is_due() {
    let server = Scripted::start([("/", Script { steps: vec![send(token("a"))], ..Script::default() })]).await;
    let request = post(&server.url("/"));
    let truncated = client(LIMITS, &Trust::System, HttpVersion::Negotiated).measure(&request).await;
    assert_eq!((truncated.result(), truncated.done_received()), (ResultClass::Truncated, Some(false)));

    let rules = Rules { done: vec![DoneRule::Never], ..Rules::default() };
    let client = Client::new(rules, LIMITS, &Trust::System, HttpVersion::Negotiated).expect("a client");
    let whole = client.measure(&request).await;
    assert_eq!((whole.result(), whole.done_received()), (ResultClass::Ok, None));
}

#[tokio::test]
async fn an_error_in_the_middle_of_a_stream_is_an_error() {
    let failed = "event: error\ndata: {\"error\":{\"message\":\"the secret\"}}\n\n";
    let observation = measure(LIMITS, vec![send(token("a")), send(failed), send(DONE)]).await;
    assert_eq!(observation.failure.as_ref().map(|failure| failure.class()), Some("stream_error"));
    assert_eq!((observation.result(), observation.seen.tokens.len()), (ResultClass::Error, 1));
    assert!(!format!("{observation:?}").contains("secret"));
}

#[tokio::test]
async fn an_answer_ends_with_its_marker_even_where_the_server_holds_on() {
    let limits = Limits { stall: Duration::from_millis(200), ..LIMITS };
    let observation = measure(limits, vec![send(token("a")), send(DONE), Step::Hang]).await;
    assert_eq!((observation.result(), observation.closed), (ResultClass::Ok, None));
    assert_eq!(observation.duration, observation.seen.done);
}

#[tokio::test]
async fn redirects_are_followed_and_keys_stay_with_their_host() {
    let far = Scripted::start([("/far", Script { steps: whole(), ..Script::default() })]).await;
    let to = |status, location: String| Script {
        status,
        headers: vec![("location", location)],
        delay: Duration::from_millis(80),
        ..Script::default()
    };
    let near = Scripted::start([
        ("/start", to(307, "/next".to_owned())),
        ("/next", to(308, far.url("/far"))),
        ("/loop", to(307, "/loop".to_owned())),
        ("/nowhere", Script { status: 307, ..Script::default() }),
        ("/get", to(303, "/next".to_owned())),
    ])
    .await;
    let client = client(LIMITS, &Trust::System, HttpVersion::Negotiated);
    let observation = client.measure(&post(&near.url("/start"))).await;
    assert_whole(&observation);
    assert_eq!(observation.redirects, 2);
    assert!(observation.redirected >= millis(160) && observation.setup.blocked >= Some(observation.redirected));

    let hops: Vec<_> = near.received().into_iter().chain(far.received()).collect();
    let paths: Vec<&str> = hops.iter().map(|hop| hop.path.as_str()).collect();
    assert_eq!(paths, ["/start", "/next", "/far"]);
    assert!(hops.iter().all(|hop| hop.method == Method::POST && hop.body.as_ref() == b"{}"));
    let keys: Vec<&str> = hops.iter().map(|hop| hop.header("authorization")).collect();
    assert_eq!(keys, ["Bearer hunter2", "Bearer hunter2", ""]);
    let parents: Vec<&str> = hops.iter().map(|hop| hop.header("traceparent")).collect();
    let trace = format!("00-{}-", observation.trace_id);
    assert!(parents.iter().all(|parent| parent.starts_with(&trace)), "{parents:?}");
    assert_eq!(parents[2], format!("{trace}{}-01", observation.span_id));
    assert!(parents[0] != parents[1] && parents[1] != parents[2], "{parents:?}");

    for path in ["/loop", "/nowhere"] {
        let lost = client.measure(&post(&near.url(path))).await;
        assert_eq!(lost.failure.as_ref().map(|failure| failure.class()), Some("redirect"), "{path}");
    }
    client.measure(&post(&near.url("/get"))).await;
    let last = far.received().pop().expect("a request");
    assert_eq!((last.method, last.body.len()), (Method::GET, 0), "303 asks for a GET");
}

#[tokio::test]
async fn failures_before_the_answer_have_their_class() {
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = closed.local_addr().expect("bound");
    drop(closed);
    let client = client(LIMITS, &Trust::System, HttpVersion::Negotiated);
    let refused = client.measure(&post(&format!("http://{address}/"))).await;
    assert_eq!(refused.failure.as_ref().map(|failure| failure.class()), Some("connection_refused"));
    let unknown = client.measure(&post("http://name.invalid/")).await;
    assert_eq!(unknown.failure.as_ref().map(|failure| failure.class()), Some("dns"));
    for observation in [refused, unknown] {
        assert_eq!((observation.result(), observation.status), (ResultClass::Error, 0));
        assert_eq!((observation.duration, observation.sending), (None, None));
    }
    let busy = Scripted::start([("/", Script { status: 429, ..Script::default() })]).await;
    let busy = client.measure(&post(&busy.url("/"))).await;
    assert_eq!((busy.result(), busy.status, busy.failure), (ResultClass::Error, 429, None));
}
