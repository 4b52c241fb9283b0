//! What one machine takes in and joins a second, durable in its own PostgreSQL, beside a bare COPY of the same rows.
//!
//!     cargo bench --bench ingest                                       some minutes
//!     cargo bench --bench ingest -- --exporters 16 --rounds 1          one run
//!     cargo test --bench ingest                                        seconds: checks the counts, measures nothing
//!
//! `docs/performance.md` explains the figures.

mod bare_copy;
mod cpu;
mod database;
mod load;
mod report;
mod run;
mod sender;
mod server;

use std::time::Duration;

use clap::Parser;

use self::database::Postgres;
use self::load::{BATCHES, Load, SPANS_PER_BATCH, TRACES};
use self::run::Measured;
use self::sender::Plan;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Share of the rate that all exporters reach together at which acknowledgements are timed.
const PACED: f64 = 0.8;

#[derive(Parser)]
struct Args {
    /// How many exporters send at once, each as fast as it is answered
    #[arg(long, value_delimiter = ',', default_value = "1,4,16")]
    exporters: Vec<usize>,
    /// How often each is measured
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// How long each run sends
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,
    /// Requests a second of the paced runs; by default 80 % of what the last runs before them have joined
    #[arg(long)]
    rate: Option<f64>,
    /// One short run that checks the counts; so does every run without the flag that `cargo bench` gives
    #[arg(long)]
    smoke: bool,
    #[arg(long, hide = true)]
    bench: bool,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    // Fails only where a provider is installed already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let postgres = Postgres::start().await?;
    let measured = if args.smoke || !args.bench { smoke(&postgres).await } else { bench(&postgres, &args).await };
    postgres.stop().await;
    measured
}

/// Long enough to see that everything that was acknowledged is joined, once.
async fn smoke(postgres: &Postgres) -> anyhow::Result<()> {
    let plan = Plan { exporters: 2, length: Duration::from_millis(500), rate: None };
    let measured = run::run(postgres, plan, "smoke").await?;
    println!("{}", report::table(&[vec![measured]]));
    Ok(())
}

async fn bench(postgres: &Postgres, args: &Args) -> anyhow::Result<()> {
    let load = Load::new(chrono::Utc::now());
    let span_bytes = load.span_bytes() / (BATCHES * SPANS_PER_BATCH);
    println!("{span_bytes} bytes a span, {} bytes a client record", load.record_bytes() / TRACES);
    let length = Duration::from_secs_f64(args.seconds);
    let mut groups: Vec<Vec<Measured>> = Vec::new();
    for exporters in &args.exporters {
        groups.push(rounds(postgres, args.rounds, Plan { exporters: *exporters, length, rate: None }).await?);
    }
    if let Some(last) = groups.last() {
        let mut reached: Vec<f64> = last.iter().map(Measured::joined_rate).collect();
        reached.sort_by(f64::total_cmp);
        let rate = args.rate.unwrap_or(PACED * report::median(&reached));
        let plan = Plan { exporters: last[0].plan.exporters, length, rate: Some(rate) };
        groups.push(rounds(postgres, args.rounds, plan).await?);
    }
    println!("{}", report::table(&groups));
    Ok(())
}

async fn rounds(postgres: &Postgres, rounds: usize, plan: Plan) -> anyhow::Result<Vec<Measured>> {
    let mut measured = Vec::new();
    for round in 0..rounds {
        let paced = if plan.rate.is_some() { "_paced" } else { "" };
        let run = run::run(postgres, plan, &format!("bench_{}_{round}{paced}", plan.exporters)).await?;
        eprintln!("{}", report::line(std::slice::from_ref(&run)));
        measured.push(run);
    }
    Ok(measured)
}
