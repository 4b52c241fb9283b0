//! Requests by a schedule. The model is open: when the next one starts does not depend on when the last one ends, since
//! a client that waits for a slow answer leaves out just those requests that would have been slow.

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::args::{Pace, Plan};
use super::delivery::{Delivered, Delivery};
use super::figures::Figures;
use super::record::record;
use crate::cli::serve::Signals;
use crate::probe::Observation;
use model::{Nanos, ResultClass, UnixNanos};

/// What became of the starts.
#[derive(Debug, Default)]
struct Starts {
    due: u64,
    sent: u64,
    /// While the most requests were under way.
    skipped: u64,
    /// While this process could not run.
    missed: u64,
    ended: [u64; ResultClass::ALL.len()],
}

/// A request that has ended.
struct Ended {
    observation: Observation,
    queued: Nanos,
}

/// Sends requests until there were as many as wanted, or it is told to stop. A second signal leaves those under way.
pub async fn run(plan: Plan, pace: Pace) -> anyhow::Result<ExitCode> {
    let mut signals = Signals::listen()?;
    let mut delivery = plan.api.as_ref().map(|api| Delivery::start(api, plan.retry_for)).transpose()?;
    let plan = Arc::new(plan);
    let mut starts = Starts::default();
    let mut running = JoinSet::new();
    let begin = Instant::now();
    let mut stopping = false;
    loop {
        let over = stopping || pace.count.is_some_and(|count| starts.due >= count);
        if over && running.is_empty() {
            break;
        }
        let next = begin + scaled(pace.every, starts.due);
        tokio::select! {
            biased;
            () = signals.next() => {
                if stopping {
                    break;
                }
                stopping = true;
                eprintln!("stopping; {} requests are under way", running.len());
            }
            () = sleep_until(next), if !over => starts.start(&plan, pace, next, &mut running),
            Some(ended) = running.join_next() => {
                let ended: Ended = ended?;
                starts.ended[ended.observation.result() as usize] += 1;
                report(&plan, &ended, delivery.as_mut())?;
            }
        }
    }
    let left = running.len() as u64;
    running.shutdown().await;
    let delivered = match delivery {
        Some(delivery) => Some(delivery.finish().await?),
        None => None,
    };
    starts.print(left, delivered.as_ref(), plan.json)?;
    let lost = left + delivered.map_or(0, |delivered| delivered.lost + delivered.refused);
    Ok(if lost == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// So many times a duration; the end of time where that is beyond it.
fn scaled(every: Duration, times: u64) -> Duration {
    let nanos = every.as_nanos().saturating_mul(times.into());
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

impl Starts {
    fn start(&mut self, plan: &Arc<Plan>, pace: Pace, due: Instant, running: &mut JoinSet<Ended>) {
        self.due += 1;
        // A machine that slept does not make up for it with a burst.
        if due.elapsed() > pace.every {
            self.missed += 1;
            return;
        }
        if running.len() >= pace.max_in_flight {
            self.skipped += 1;
            return;
        }
        self.sent += 1;
        let plan = Arc::clone(plan);
        running.spawn(async move {
            let request = plan.request();
            let queued = Nanos::from(due.elapsed());
            Ended { observation: plan.client.measure(&request).await, queued }
        });
    }

    /// The account of all starts and records: in JSON the last line, else for a person.
    fn print(&self, left: u64, delivered: Option<&Delivered>, json: bool) -> anyhow::Result<()> {
        let ended = ResultClass::ALL.into_iter().zip(self.ended);
        if json {
            let results: serde_json::Map<_, _> = ended.map(|(class, n)| (class.name().to_owned(), n.into())).collect();
            let summary = serde_json::json!({
                "due": self.due, "sent": self.sent, "skipped": self.skipped, "missed": self.missed, "abandoned": left,
                "results": results, "delivered": delivered.map(|delivered| delivered.taken),
                "refused": delivered.map(|delivered| delivered.refused),
                "not_delivered": delivered.map(|delivered| delivered.lost),
            });
            writeln!(std::io::stdout().lock(), "{}", serde_json::json!({ "summary": summary }))?;
        }
        let ended: Vec<String> = ResultClass::ALL
            .into_iter()
            .zip(self.ended)
            .filter(|(_, n)| *n > 0)
            .map(|(class, n)| format!("{n} {}", class.name()))
            .collect();
        eprintln!("{} starts were due, {} sent: {}", self.due, self.sent, ended.join(", "));
        for (count, what) in [
            (self.skipped, "starts were skipped: --max-in-flight requests were under way"),
            (self.missed, "starts were missed: this process could not run in time"),
            (left, "requests were abandoned under way, and not recorded"),
            (delivered.map_or(0, |delivered| delivered.refused), "records were refused by the server"),
            (delivered.map_or(0, |delivered| delivered.lost), "records were not delivered"),
        ] {
            if count > 0 {
                eprintln!("{count} {what}");
            }
        }
        if let Some(reason) = delivered.and_then(|delivered| delivered.reason.as_ref()) {
            eprintln!("the last reason: {reason}");
        }
        Ok(())
    }
}

fn report(plan: &Plan, ended: &Ended, delivery: Option<&mut Delivery>) -> anyhow::Result<()> {
    let record = record(&ended.observation, &plan.labels, Some(ended.queued));
    if let Some(delivery) = delivery {
        delivery.add(&record)?;
    }
    let figures = Figures::new(&ended.observation, &record);
    let mut out = std::io::stdout().lock();
    if plan.json {
        writeln!(out, "{}", figures.json())?;
    } else {
        writeln!(out, "{} {}", time(ended.observation.started_at), figures.line())?;
    }
    Ok(out.flush()?)
}

fn time(at: UnixNanos) -> String {
    at.to_datetime().to_rfc3339_opts(chrono::SecondsFormat::Millis, true)
}
