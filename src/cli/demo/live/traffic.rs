//! Requests as time passes; what time it is others say.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use opentelemetry_proto::tonic::trace::v1::Span;

use crate::cli::demo::fault::Faults;
use crate::cli::demo::gateway::{Call, Gateway, Pace};
use crate::cli::demo::spans::{Process, spans};
use crate::cli::demo::{Identity, record};
use crate::cli::record_line::RecordLine;
use model::{Nanos, UnixNanos};

/// The own GPUs' work on a request, as a multiple of the play's: 0.4 s in the middle, so that half a minute is enough to
/// see what goes on.
const WORK: f64 = 0.26;
const MEAN_WORK_SECONDS: f64 = 0.4;
/// The share of requests that go to the own GPUs.
const OWN: f64 = 0.65;
/// How busy the own GPUs are, and how much too few are left of them while some are away.
const UTILISATION: f64 = 0.4;
const OVERLOAD: f64 = 1.15;
/// Short, since a request is known at its end only, and a window in whose last fifth none has ended is not full.
const CLIENT_PATIENCE: Nanos = Nanos(4_000_000_000);
const SECOND_MS: f64 = 1_000.0;

/// What a request's two sides have to tell at its end.
#[derive(Default)]
pub struct Ended {
    /// Of the servers.
    pub spans: Vec<(Process, Span)>,
    /// Of the clients.
    pub records: Vec<RecordLine>,
}

/// The gateway's traffic.
pub struct Traffic {
    gateway: Gateway,
    rate: f64,
    faults: Faults,
    run: String,
    start: UnixNanos,
    /// When the next request is sent, from the start.
    next: Nanos,
    under_way: BinaryHeap<Reverse<UnderWay>>,
    sent: usize,
}

/// A request that has not ended, ordered by its end.
#[derive(Debug)]
struct UnderWay {
    end: Nanos,
    call: Call,
}

impl Traffic {
    /// So many requests a second. Times of day count from `start`.
    pub fn new(seed: u64, rate: u32, start: UnixNanos) -> Self {
        Self {
            gateway: Gateway::new(seed, pace(rate)),
            rate: f64::from(rate),
            faults: Faults::default(),
            run: format!("demo-{:08x}", rand::random::<u32>()),
            start,
            next: Nanos::ZERO,
            under_way: BinaryHeap::new(),
            sent: 0,
        }
    }

    /// The run that the records name.
    pub fn run(&self) -> &str {
        &self.run
    }

    /// How many requests have ended.
    pub fn sent(&self) -> usize {
        self.sent
    }

    /// What is wrong from now on, a time after the start.
    pub fn set_faults(&mut self, faults: Faults, now: Nanos) {
        self.begin_until(now);
        self.gateway.set_faults(faults.clone(), now);
        self.faults = faults;
    }

    /// What has ended since it was asked last; it is `now` after the start.
    pub fn ended(&mut self, now: Nanos) -> Ended {
        self.begin_until(now);
        let mut ended = Ended::default();
        while let Some(Reverse(first)) = self.under_way.peek() {
            if first.end > now {
                break;
            }
            let Some(Reverse(UnderWay { call, .. })) = self.under_way.pop() else { break };
            let identity = Identity::random();
            ended.records.push(record::record(&call, &identity, self.start, &self.run));
            if !call.spans_lost {
                ended.spans.extend(spans(&call, &identity, self.start));
            }
        }
        self.sent += ended.records.len();
        ended
    }

    fn begin_until(&mut self, now: Nanos) {
        while self.next <= now {
            let call = self.gateway.call(self.next);
            self.under_way.push(Reverse(UnderWay { end: self.next + call.client_duration(), call }));
            self.next += self.gateway.gap(SECOND_MS / (self.rate * self.faults.traffic()));
        }
    }
}

/// As many GPUs as the rate needs.
fn pace(rate: u32) -> Pace {
    let busy = f64::from(rate) * OWN * MEAN_WORK_SECONDS;
    Pace {
        slots: (busy / UTILISATION).ceil() as usize,
        slots_left: ((busy / OVERLOAD) as usize).max(1),
        work: WORK,
        patience: CLIENT_PATIENCE,
    }
}

impl PartialEq for UnderWay {
    fn eq(&self, other: &Self) -> bool {
        self.end == other.end
    }
}

impl Eq for UnderWay {}

impl PartialOrd for UnderWay {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for UnderWay {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.end.cmp(&other.end)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::cli::demo::fault::Fault;
    use model::ResultClass;

    const HALF_A_MINUTE: i64 = 30_000_000_000;

    /// What ends within each half minute, each with faults of its own.
    fn half_minutes<const N: usize>(faults: [&[Fault]; N]) -> [Ended; N] {
        let mut traffic = Traffic::new(7, 10, UnixNanos(0));
        let mut now = 0;
        faults.map(|faults| {
            traffic.set_faults(faults.iter().copied().collect(), Nanos(now));
            now += HALF_A_MINUTE;
            traffic.ended(Nanos(now))
        })
    }

    /// The share of all requests that waited in front of the own GPUs for longer than a quarter of a second.
    fn share_that_queued(ended: &Ended) -> f64 {
        let lengths = ended.spans.iter().filter(|(_, span)| span.name == "inference.acquire_slot");
        let long = lengths.filter(|(_, span)| span.end_time_unix_nano - span.start_time_unix_nano > 250_000_000);
        long.count() as f64 / ended.records.len() as f64
    }

    fn share_of(ended: &Ended, class: ResultClass) -> f64 {
        let count = ended.records.iter().filter(|record| record.result == Some(class)).count();
        count as f64 / ended.records.len() as f64
    }

    /// The times of the entry spans by trace, in ns.
    fn servers(ended: &Ended) -> HashMap<Vec<u8>, u64> {
        let entries = ended.spans.iter().filter(|(_, span)| span.name.starts_with("POST /v1"));
        entries.map(|(_, span)| (span.trace_id.clone(), span.end_time_unix_nano - span.start_time_unix_nano)).collect()
    }

    /// The share of joined requests that the network cost more than 120 ms.
    fn share_with_a_slow_network(ended: &Ended) -> f64 {
        let servers = servers(ended);
        let slow = ended.records.iter().filter(|record| {
            let (Some(trace), Some(duration)) = (record.trace_id, &record.duration_ms) else { return false };
            let server = servers.get(trace.as_bytes().as_slice());
            server.is_some_and(|server| duration.0.0 - server.cast_signed() > 120_000_000)
        });
        slow.count() as f64 / servers.len() as f64
    }

    #[test]
    fn requests_queue_while_slots_are_away_and_soon_after_no_more() {
        let [before, during, _, after] = half_minutes([&[], &[Fault::Queue], &[], &[]]);
        assert!((200..400).contains(&before.records.len()), "{}", before.records.len());
        assert!(share_that_queued(&before) < 0.02, "{}", share_that_queued(&before));
        assert!(share_that_queued(&during) > 0.4, "{}", share_that_queued(&during));
        assert!(share_that_queued(&after) < 0.02, "{}", share_that_queued(&after));
    }

    #[test]
    fn a_storm_of_errors_comes_on_top_of_what_is_answered() {
        let [before, during] = half_minutes([&[], &[Fault::Errors]]);
        let answered = |ended: &Ended| share_of(ended, ResultClass::Ok) * ended.records.len() as f64;
        assert!((0.55..0.75).contains(&share_of(&during, ResultClass::Error)));
        assert!((0.75..1.25).contains(&(answered(&during) / answered(&before))), "as many are answered");
        for refusal in [429, 500] {
            assert!(during.records.iter().any(|record| record.status == Some(refusal)), "{refusal}");
        }
    }

    #[test]
    fn impatient_clients_give_up_in_the_queue() {
        let [ended] = half_minutes([&[Fault::Timeouts]]);
        assert!((0.2..0.45).contains(&share_of(&ended, ResultClass::Timeout)));
        assert!((0.2..0.45).contains(&share_that_queued(&ended)), "they waited there");
    }

    #[test]
    fn the_network_is_slow_for_all_and_faults_add_up() {
        let [before, during, both] = half_minutes([&[], &[Fault::Network], &[Fault::Network, Fault::Queue]]);
        assert!(share_with_a_slow_network(&before) < 0.01);
        assert!(share_with_a_slow_network(&during) > 0.95);
        assert!(share_that_queued(&during) < 0.02);
        assert!(share_with_a_slow_network(&both) > 0.95 && share_that_queued(&both) > 0.4);
    }

    #[test]
    fn a_broken_exporter_loses_traces() {
        let [ended] = half_minutes([&[Fault::LostSpans]]);
        let kept = servers(&ended).len() as f64 / ended.records.len() as f64;
        assert!((0.55..0.70).contains(&kept), "{kept}");
    }
}
