//! A small LLM gateway, simulated: when each request came, what it waited for, and how it ended.
//!
//! It sends each request to one of three places: a pool of its own GPUs with a queue in front, an engine behind HTTP, or
//! an outside provider. In one minute half of the own GPUs are taken away, so that requests queue.

mod pool;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use self::pool::Pool;
use super::fault::{Fault, Faults};
use model::Nanos;

/// How long the play is.
pub const LENGTH: Nanos = Nanos(8 * MINUTE);
/// The minute in which half of the GPUs are away.
pub const SLOW_MINUTE: i64 = 5;

const MINUTE: i64 = 60_000_000_000;
const MILLI: f64 = 1e6;
/// Mean time between two requests.
const MEAN_GAP_MS: f64 = 220.0;
/// What a fault of the network adds on the way there, and again on the way back.
const NETWORK_DELAY_MS: f64 = 150.0;
/// The share of requests that a storm of errors refuses.
const STORM_REFUSES: f64 = 2.0 / 3.0;
/// The share of requests in front of the own GPUs whose clients give up, and after how long.
const HANGING: f64 = 0.5;
const IMPATIENCE: Nanos = Nanos(1_000_000_000);
/// The share of traces that a broken exporter loses.
const LOST: f64 = 0.38;

/// Where a request went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    /// GPUs of the gateway's own, which it queues for.
    Own,
    /// An engine in another process, reached over HTTP, with a clock of its own.
    Engine,
    /// An outside provider that does not disclose its queue.
    Provider,
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    Answered,
    /// Refused with 429 before it reached a backend.
    Refused,
    /// With 500 before it reached a backend.
    Crashed,
    /// With 502, since the provider failed.
    Failed,
    /// The client gave up.
    GivenUp,
}

/// One request as it went.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// When the client sent it, from the start of the play.
    pub at: Nanos,
    /// Where it went.
    pub backend: Backend,
    pub ending: Ending,
    /// Whether the answer was streamed.
    pub streaming: bool,
    /// Tokens of the prompt.
    pub input_tokens: i64,
    /// Tokens of the answer.
    pub output_tokens: i64,
    /// Connection setup, where the connection was new.
    pub setup: Nanos,
    /// From the client to the gateway.
    pub way_there: Nanos,
    /// From the gateway to the client.
    pub way_back: Nanos,
    /// What the gateway did, in order, with small gaps between.
    pub steps: Vec<Step>,
    /// The gateway's whole time.
    pub server_total: Nanos,
    /// From the gateway's start to its first token.
    pub first_token: Option<Nanos>,
    /// Whether the exporter lost the spans.
    pub spans_lost: bool,
    /// After this the client gives up.
    patience: Nanos,
}

/// A stretch of the gateway's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// What it did.
    pub kind: StepKind,
    /// From the gateway's start.
    pub start: Nanos,
    /// How long.
    pub length: Nanos,
}

/// What a gateway does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepKind {
    /// Checks the caller's key.
    Auth,
    /// Builds the prompt.
    Prepare,
    /// Chooses a backend.
    Route,
    /// Waits for a GPU.
    Queue,
    /// Runs the model on its own GPU.
    Generate,
    /// Calls the engine: the waits and work inside are the engine's own.
    CallEngine {
        /// On the wire, both ways together.
        hop: Nanos,
        /// In the engine's queue.
        queue: Nanos,
        /// Up to the first token.
        prefill: Nanos,
    },
    CallProvider,
    /// Writes the end of the answer.
    Write,
}

impl Call {
    /// The client's time from sending to the last byte.
    pub fn client_duration(&self) -> Nanos {
        self.way_there + self.server_total + self.way_back
    }

    /// The client's time from sending to the first token.
    pub fn client_first_token(&self) -> Option<Nanos> {
        Some(self.way_there + self.first_token? + self.way_back)
    }
}

/// How large and how fast a gateway is.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// Requests that the own GPUs work on at one time.
    pub slots: usize,
    /// What is left of them while GPUs are away.
    pub slots_left: usize,
    /// How long models work, as a multiple of what the play's take.
    pub work: f64,
    /// After this a client gives up.
    pub patience: Nanos,
}

impl Pace {
    /// As the play has it.
    const PLAY: Self = Self { slots: 10, slots_left: 5, work: 1.0, patience: Nanos(12_000_000_000) };
}

/// Plays the gateway. The same seed gives the same calls.
pub fn play(seed: u64) -> Vec<Call> {
    let mut gateway = Gateway::new(seed, Pace::PLAY);
    let (slow_from, slow_until) = (Nanos(SLOW_MINUTE * MINUTE), Nanos((SLOW_MINUTE + 1) * MINUTE));
    let mut slots_taken = false;
    let mut calls = Vec::new();
    let mut at = Nanos::ZERO;
    loop {
        at += gateway.gap(MEAN_GAP_MS);
        if at >= LENGTH {
            return calls;
        }
        if at >= slow_from && !slots_taken {
            gateway.pool.take(Pace::PLAY.slots - Pace::PLAY.slots_left, slow_until);
            slots_taken = true;
        }
        calls.push(gateway.call(at));
    }
}

fn millis(value: f64) -> Nanos {
    Nanos((value * MILLI) as i64)
}

/// The gateway, from one request to the next.
pub struct Gateway {
    random: StdRng,
    pace: Pace,
    pool: Pool,
    faults: Faults,
}

/// Steps under construction.
#[derive(Default)]
struct Course {
    steps: Vec<Step>,
    now: Nanos,
}

impl Course {
    fn add(&mut self, kind: StepKind, length: Nanos, gap: Nanos) {
        self.now += gap;
        self.steps.push(Step { kind, start: self.now, length });
        self.now += length;
    }
}

impl Gateway {
    /// One in which nothing waits. The same seed gives the same calls.
    pub fn new(seed: u64, pace: Pace) -> Self {
        let random = StdRng::seed_from_u64(seed);
        Self { random, pace, pool: Pool::new(pace.slots), faults: Faults::default() }
    }

    /// From now on it has these faults and no others.
    pub fn set_faults(&mut self, faults: Faults, now: Nanos) {
        self.pool.give_back(now);
        if faults.has(Fault::Queue) {
            self.pool.take(self.pace.slots.saturating_sub(self.pace.slots_left), Pool::NEVER);
        }
        self.faults = faults;
    }

    /// The time to the next request: exponential, so that requests come independently of each other.
    pub fn gap(&mut self, mean_ms: f64) -> Nanos {
        millis(-mean_ms * (1.0 - self.random.random::<f64>()).ln())
    }

    fn between(&mut self, low_ms: f64, high_ms: f64) -> Nanos {
        millis(self.random.random_range(low_ms..high_ms))
    }

    /// Times around a middle with a tail, as real ones have: log-normal with a shape of 0.5.
    fn around(&mut self, middle_ms: f64) -> Nanos {
        let normal = (0..12).map(|_| self.random.random::<f64>()).sum::<f64>() - 6.0;
        millis(middle_ms * (0.5 * normal).exp())
    }

    /// What becomes of a request that is sent now. Later requests must not be sent earlier.
    pub fn call(&mut self, at: Nanos) -> Call {
        let backend = match self.random.random_range(0..100) {
            0..65 => Backend::Own,
            65..85 => Backend::Engine,
            _ => Backend::Provider,
        };
        let mut call = Call {
            at,
            backend,
            ending: Ending::Answered,
            streaming: self.random.random_bool(0.7),
            input_tokens: self.random.random_range(60..1_600),
            output_tokens: self.random.random_range(20..260),
            setup: if self.random.random_bool(0.1) { self.around(28.0) } else { Nanos::ZERO },
            way_there: self.way(),
            way_back: self.way(),
            steps: Vec::new(),
            server_total: Nanos::ZERO,
            first_token: None,
            spans_lost: self.random.random_bool(if self.faults.has(Fault::LostSpans) { LOST } else { 0.005 }),
            patience: self.pace.patience,
        };
        let course = self.course(&mut call);
        call.server_total = course.now + self.between(0.05, 0.4);
        call.steps = course.steps;
        give_up(&mut call);
        call
    }

    /// From the client to the gateway, or back.
    fn way(&mut self) -> Nanos {
        let usual = self.around(9.0);
        if self.faults.has(Fault::Network) { usual + self.around(NETWORK_DELAY_MS) } else { usual }
    }

    fn refusal(&mut self) -> Option<Ending> {
        if self.faults.has(Fault::Errors) && self.random.random_bool(STORM_REFUSES) {
            return Some(if self.random.random_bool(0.5) { Ending::Crashed } else { Ending::Refused });
        }
        self.random.random_bool(0.02).then_some(Ending::Refused)
    }

    fn course(&mut self, call: &mut Call) -> Course {
        let mut course = Course::default();
        course.add(StepKind::Auth, self.between(1.0, 5.0), self.between(0.05, 0.4));
        if let Some(refusal) = self.refusal() {
            call.ending = refusal;
            return course;
        }
        course.add(StepKind::Prepare, self.between(1.0, 6.0), self.between(0.02, 0.2));
        course.add(StepKind::Route, self.between(0.2, 1.5), self.between(0.02, 0.2));
        match call.backend {
            Backend::Own => self.own(call, &mut course),
            Backend::Engine => self.engine(call, &mut course),
            Backend::Provider => self.provider(call, &mut course),
        }
        if call.ending == Ending::Answered {
            course.add(StepKind::Write, self.between(0.3, 3.0), self.between(0.02, 0.2));
        }
        course
    }

    /// A third of a millisecond a prompt token, nine milliseconds an answer's token.
    fn generation(&mut self, call: &Call) -> (Nanos, Nanos) {
        let prefill = self.around(self.pace.work * (20.0 + 0.3 * call.input_tokens as f64));
        let decode = self.around(self.pace.work * 9.0 * call.output_tokens as f64);
        (prefill, decode)
    }

    fn own(&mut self, call: &mut Call, course: &mut Course) {
        let (prefill, decode) = self.generation(call);
        let gap = self.between(0.02, 0.2);
        if self.faults.has(Fault::Timeouts) && self.random.random_bool(HANGING) {
            call.patience = IMPATIENCE;
            course.add(StepKind::Queue, IMPATIENCE, gap);
            return;
        }
        let asked = call.at + call.way_there + course.now + gap;
        let queue = (self.pool.free_from() - asked).max(self.between(0.02, 0.4));
        // A client that gives up first leaves the queue, and the slot to whoever is next.
        if queue < call.patience {
            self.pool.occupy(asked + queue + prefill + decode);
        }
        course.add(StepKind::Queue, queue, gap);
        course.add(StepKind::Generate, prefill + decode, self.between(0.02, 0.2));
    }

    fn engine(&mut self, call: &Call, course: &mut Course) {
        let (prefill, decode) = self.generation(call);
        let (hop, queue) = (self.around(5.0), self.around(15.0));
        let kind = StepKind::CallEngine { hop, queue, prefill };
        course.add(kind, hop + queue + prefill + decode, self.between(0.02, 0.2));
    }

    fn provider(&mut self, call: &mut Call, course: &mut Course) {
        let (prefill, decode) = self.generation(call);
        let unseen = self.around(self.pace.work * 250.0);
        if self.random.random_bool(0.04) {
            call.ending = Ending::Failed;
        }
        course.add(StepKind::CallProvider, unseen + prefill + decode, self.between(0.02, 0.2));
    }
}

/// Cuts a call at the client's patience, and finds its first token.
fn give_up(call: &mut Call) {
    let patience = (call.patience - call.way_there - call.way_back).max(Nanos::ZERO);
    if call.server_total > patience {
        call.ending = Ending::GivenUp;
        call.server_total = patience;
        call.steps.retain(|step| step.start < patience);
        for step in &mut call.steps {
            step.length = step.length.min(patience - step.start);
        }
    }
    if call.streaming && call.ending == Ending::Answered {
        call.first_token = call.steps.iter().find_map(|step| first_token(step, call.output_tokens));
    }
}

/// Where in a step the first token comes, from the gateway's start.
fn first_token(step: &Step, output_tokens: i64) -> Option<Nanos> {
    // What is not told apart: the first of the answer's tokens, after a share of the time that is its own.
    let share = |length: Nanos| Nanos(length.0 / (output_tokens + 1));
    match step.kind {
        StepKind::Generate | StepKind::CallProvider => Some(step.start + share(step.length)),
        StepKind::CallEngine { hop, queue, prefill } => Some(step.start + hop + queue + prefill),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(call: &Call) -> Option<Nanos> {
        call.steps.iter().find(|step| step.kind == StepKind::Queue).map(|step| step.length)
    }

    fn longest_queue(calls: &[Call], minute: i64) -> Nanos {
        let of_minute = calls.iter().filter(|call| call.at.0 / MINUTE == minute);
        of_minute.filter_map(queue).max().unwrap_or(Nanos::ZERO)
    }

    #[test]
    fn requests_queue_in_the_slow_minute_only() {
        let calls = play(1);
        assert!(longest_queue(&calls, SLOW_MINUTE) > millis(2_000.0));
        for minute in 0..SLOW_MINUTE {
            assert!(longest_queue(&calls, minute) < millis(1_000.0), "minute {minute}");
        }
    }

    #[test]
    fn steps_follow_each_other_inside_the_servers_time() {
        for call in play(2) {
            let mut end = Nanos::ZERO;
            for step in &call.steps {
                assert!(step.start >= end && step.length >= Nanos::ZERO, "{call:?}");
                end = step.start + step.length;
            }
            assert!(end <= call.server_total && call.client_duration() > call.server_total, "{call:?}");
            assert!(call.first_token.is_none_or(|first| first < call.server_total), "{call:?}");
        }
    }

    #[test]
    fn every_ending_and_backend_occurs() {
        let calls = play(3);
        for ending in [Ending::Answered, Ending::Refused, Ending::Failed] {
            assert!(calls.iter().any(|call| call.ending == ending), "{ending:?}");
        }
        for backend in [Backend::Own, Backend::Engine, Backend::Provider] {
            assert!(calls.iter().any(|call| call.backend == backend), "{backend:?}");
        }
        assert_eq!(play(3), calls, "the same seed plays the same");
    }
}
