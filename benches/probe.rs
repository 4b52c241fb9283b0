//! How exactly the probe tells when tokens arrived, with 50 streams at once.
//!
//!     cargo bench --bench probe     half a minute
//!     cargo test --bench probe      seconds: checks the counts, measures nothing
//!
//! A server on a thread of its own notes when it hands each token to its connection, by the clock that the probe reads
//! too. `docs/streaming.md` has the figures.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, ensure};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::header::{CONTENT_TYPE, HeaderName};
use axum::routing::get;
use clap::Parser;
use futures::future::join_all;
use futures::{StreamExt, stream};
use nix::time::{ClockId, clock_gettime};
use reqwest::Method;
use reqwest::header::HeaderMap;
use tokio::time::Instant;
use tracejoin::probe::{Client, HttpVersion, Limits, Request, Rules, Trust};

const STREAMS: usize = 50;
const STEP: Duration = Duration::from_millis(20);

#[derive(Parser)]
struct Args {
    /// Tokens of each stream
    #[arg(long, default_value_t = 300)]
    tokens: usize,
    /// How often it is measured
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    #[arg(long, hide = true)]
    bench: bool,
}

/// When each token of each stream was written, and the processor time of the server's thread in nanoseconds.
#[derive(Default)]
struct Written {
    times: Mutex<Vec<Vec<Instant>>>,
    processor: AtomicU64,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let (tokens, rounds) = if args.bench { (args.tokens, args.rounds) } else { (10, 1) };
    let written = Arc::new(Written::default());
    let address = serve(Arc::clone(&written), tokens)?;
    println!("{STREAMS} streams at once, {tokens} tokens each, one in {} ms", STEP.as_millis());
    let mut p99s = Vec::new();
    for round in 1..=rounds {
        *written.times.lock().expect("not poisoned") = vec![Vec::new(); STREAMS];
        let (start, used) = (Instant::now(), processor(ClockId::CLOCK_PROCESS_CPUTIME_ID)?);
        let served = written.processor.load(Ordering::Acquire);
        let mut errors = run(address, &written, tokens).await?;
        let wall = start.elapsed().as_nanos() as f64;
        let used = processor(ClockId::CLOCK_PROCESS_CPUTIME_ID)? - used;
        let served = written.processor.load(Ordering::Acquire) - served;
        let share = used.saturating_sub(served) as f64 / wall;
        errors.sort_by(f64::total_cmp);
        let at = |q: f64| errors[((q * errors.len() as f64).ceil() as usize).max(1) - 1];
        let (p50, p99, max) = (at(0.5), at(0.99), at(1.0));
        println!(
            "round {round}: error p50 {p50:.3} p99 {p99:.3} max {max:.3} ms; the probe used {:.1} % of a core",
            share * 100.0
        );
        p99s.push(p99);
    }
    p99s.sort_by(f64::total_cmp);
    println!("p99 in the median of {rounds}: {:.3} ms", p99s[p99s.len() / 2]);
    Ok(())
}

/// The difference of each token's arrival from its writing, in milliseconds, beside the way that a token of its stream
/// usually takes.
async fn run(address: SocketAddr, written: &Written, tokens: usize) -> anyhow::Result<Vec<f64>> {
    let minutes = Duration::from_secs(300);
    let limits = Limits { total: minutes, stall: minutes, redirects: 0 };
    let client = Client::new(Rules::default(), limits, &Trust::System, HttpVersion::Http1)?;
    let requests: Vec<Request> = (0..STREAMS)
        .map(|number| {
            let url = format!("http://{address}/{number}").parse().context("a URL")?;
            Ok(Request { method: Method::GET, url, headers: HeaderMap::new(), body: Bytes::new() })
        })
        .collect::<anyhow::Result<_>>()?;
    let observations = join_all(requests.iter().map(|request| client.measure(request))).await;
    let times = written.times.lock().expect("not poisoned");
    let mut errors = Vec::new();
    for (observation, times) in observations.iter().zip(times.iter()) {
        let seen = &observation.seen.tokens;
        ensure!(observation.failure.is_none() && seen.len() == tokens && times.len() == tokens, "{observation:?}");
        let ways = seen.iter().zip(times).map(|(seen, at)| seen.as_millis() - (*at - times[0]).as_secs_f64() * 1e3);
        let mut ways: Vec<f64> = ways.collect();
        ways.sort_by(f64::total_cmp);
        let usual = ways[ways.len() / 2];
        errors.extend(ways.into_iter().map(|way| (way - usual).abs()));
    }
    Ok(errors)
}

/// Serves on a thread of its own, so that the processor time of the two can be told apart.
fn serve(written: Arc<Written>, tokens: usize) -> anyhow::Result<SocketAddr> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::spawn(move || {
        runtime.block_on(async move {
            let router = Router::new().route("/{number}", get(answer)).with_state((Arc::clone(&written), tokens));
            tokio::spawn(async move {
                loop {
                    let used = processor(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap_or_default();
                    written.processor.store(used, Ordering::Release);
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            });
            let listener = tokio::net::TcpListener::from_std(listener)?;
            axum::serve(listener, router).await
        })
    });
    Ok(address)
}

async fn answer(
    State((written, tokens)): State<(Arc<Written>, usize)>,
    Path(number): Path<usize>,
) -> ([(HeaderName, &'static str); 1], Body) {
    // Streams begin apart from each other, as they do in the world.
    let first = STEP * (number as u32) / (STREAMS as u32);
    let events = stream::iter(0..tokens).then(move |token| {
        let written = Arc::clone(&written);
        async move {
            tokio::time::sleep(if token == 0 { STEP + first } else { STEP }).await;
            written.times.lock().expect("not poisoned")[number].push(Instant::now());
            Bytes::from_static(b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"word\"}}]}\n\n")
        }
    });
    let last = stream::once(async { Bytes::from_static(b"data: [DONE]\n\n") });
    ([(CONTENT_TYPE, "text/event-stream")], Body::from_stream(events.chain(last).map(Ok::<_, Infallible>)))
}

/// Processor time used so far, in nanoseconds.
fn processor(clock: ClockId) -> anyhow::Result<u64> {
    Ok(u64::try_from(Duration::from(clock_gettime(clock)?).as_nanos())?)
}
