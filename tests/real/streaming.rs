//! The probe behind a real nginx, with and without buffering: its figures against what the server wrote, and when.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::routing::post;
use futures::{StreamExt, stream};
use model::{Nanos, ResultClass, rhythm};
use reqwest::Method;
use reqwest::header::HeaderMap;
use tokio::net::TcpListener;
use tokio::time::Instant;
use tracejoin::probe::{Client, HttpVersion, Limits, Observation, Request, Rules, Trust};

use crate::differences::quantile;
use crate::nginx::Nginx;
use crate::scratch::Scratch;
use crate::setup::take_turn;

const TOKENS: usize = 80;
const PREFILL: Duration = Duration::from_millis(150);
const STEP: Duration = Duration::from_millis(20);
/// Twice the model pauses to think.
const PAUSE: Duration = Duration::from_millis(500);
const PAUSES: [usize; 2] = [30, 55];

/// An event passes from the server's task through two connections and nginx to the probe, in well under a millisecond;
/// on a busy machine each of the three may wait for a slice of the processor. Half of the tokens must not show it, and nine
/// in ten must be nearer to their own writing than to the next.
const MEDIAN_TOLERANCE_MS: f64 = 2.0;
const P90_TOLERANCE_MS: f64 = STEP.as_millis() as f64 / 2.0;

const ROUNDS: usize = 3;

/// When each token was handed to the connection, of one request after the other, by the clock that the probe reads too.
type Written = Arc<Mutex<Vec<Vec<Instant>>>>;

async fn answer(State(written): State<Written>) -> ([(axum::http::HeaderName, &'static str); 1], Body) {
    let request = {
        let mut written = written.lock().expect("not poisoned");
        written.push(Vec::new());
        written.len() - 1
    };
    let tokens = stream::iter(0..TOKENS).then(move |token| {
        let written = Arc::clone(&written);
        async move {
            let pause = if PAUSES.contains(&token) { PAUSE } else { Duration::ZERO };
            tokio::time::sleep(if token == 0 { PREFILL } else { STEP + pause }).await;
            written.lock().expect("not poisoned")[request].push(Instant::now());
            event(token)
        }
    });
    let role = "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n";
    let first = stream::once(async { Bytes::from_static(role.as_bytes()) });
    let last = stream::once(async { Bytes::from_static(b"data: [DONE]\n\n") });
    let whole = first.chain(tokens).chain(last).map(Ok::<_, std::convert::Infallible>);
    ([(CONTENT_TYPE, "text/event-stream")], Body::from_stream(whole))
}

/// As long as an engine's events are, so that nginx's buffers of 4 KiB take some twenty of them.
fn event(token: usize) -> Bytes {
    let id = "chatcmpl-0123456789abcdef0123456789abcdef";
    let choice =
        format!("{{\"index\":0,\"delta\":{{\"content\":\" word{token}\"}},\"logprobs\":null,\"finish_reason\":null}}");
    Bytes::from(format!(
        "data: {{\"id\":\"{id}\",\"object\":\"chat.completion.chunk\",\"created\":1767323045,\"model\":\"m-7b\",\"choices\":[{choice}]}}\n\n"
    ))
}

async fn serve(written: Written) -> SocketAddr {
    let router = Router::new().route("/v1/chat/completions", post(answer)).with_state(written);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("its address");
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

async fn measure(url: String) -> Observation {
    let minute = Duration::from_secs(60);
    let limits = Limits { total: minute, stall: minute, redirects: 0 };
    let client = Client::new(Rules::default(), limits, &Trust::System, HttpVersion::Http1).expect("a client");
    let url = url.parse().expect("a URL");
    let request = Request { method: Method::POST, url, headers: HeaderMap::new(), body: Bytes::from_static(b"{}") };
    let observation = client.measure(&request).await;
    assert_eq!((observation.result(), &observation.failure), (ResultClass::Ok, &None));
    assert_eq!(observation.seen.tokens.len(), TOKENS);
    observation
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// How far each token's arrival is from its writing, beside the way that a token usually takes.
fn differences(seen: &[Nanos], written: &[Instant]) -> Vec<f64> {
    let ways = seen.iter().zip(written).map(|(seen, at)| seen.as_millis() - millis(*at - written[0]));
    let mut ways: Vec<f64> = ways.collect();
    let usual = quantile(&mut ways.clone(), 0.5);
    for way in &mut ways {
        *way = (*way - usual).abs();
    }
    ways
}

#[tokio::test(flavor = "multi_thread")]
async fn the_probe_sees_what_nginx_lets_through() {
    let _turn = take_turn().await;
    let scratch = Scratch::new();
    let written = Written::default();
    let nginx = Nginx::start(&scratch, serve(Arc::clone(&written)).await);

    let mut all = Vec::new();
    for _ in 0..ROUNDS {
        let direct = measure(nginx.url("/direct/v1/chat/completions")).await;
        let script = written.lock().expect("not poisoned").pop().expect("a request");
        assert!(direct.ttft() >= Some(Nanos::from_millis(millis(PREFILL)).expect("finite")), "{:?}", direct.ttft());
        assert!(direct.seen.first_event < direct.ttft(), "the role comes before the first token");
        assert_eq!(rhythm::buffering(&direct.seen.tokens), None, "a pause of the model is no buffer");
        all.extend(differences(&direct.seen.tokens, &script));
    }
    let (p50, p90, max) = (quantile(&mut all, 0.5), quantile(&mut all, 0.9), quantile(&mut all, 1.0));
    println!("without buffering: |measured − written| p50 {p50:.3} p90 {p90:.3} max {max:.3} ms, n {}", all.len());
    assert!(p50 <= MEDIAN_TOLERANCE_MS, "half of the tokens differ by more than {p50} ms");
    assert!(p90 <= P90_TOLERANCE_MS, "one token in ten differs by more than {p90} ms");

    for _ in 0..ROUNDS {
        let held = measure(nginx.url("/buffered/v1/chat/completions")).await;
        let script = written.lock().expect("not poisoned").pop().expect("a request");
        let buffering = rhythm::buffering(&held.seen.tokens).expect("buffering is recognised");
        println!("with buffering: {buffering:?}, {} of {TOKENS} events batched", held.seen.batched());
        assert!(held.seen.batched() * 2 > TOKENS as u64, "most tokens come in one read with others");
        // The first token waits until the buffer is full, which takes a dozen events at least.
        let filled = millis(PREFILL) + millis(script[12] - script[0]);
        assert!(held.ttft().is_some_and(|ttft| ttft.as_millis() >= filled), "{:?} before {filled} ms", held.ttft());
    }
}
