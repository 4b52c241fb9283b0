//! From everything that is known of a trace to its joined requests.

use std::collections::BTreeSet;
use std::ops::Range;

use super::check::{self, Difference};
use super::claim::{Claim, claims};
use super::copies;
use super::entry::Entry;
use super::identity::Claimant;
use super::inputs::TraceInputs;
use super::labels;
use super::rates::rates;
use super::server_side::{self, ServerPart};
use super::tree::{Forest, Place};
use super::view::{self, ExplainedSpan, ExplainedTiming, PhaseSources};
use model::reading::Reading;
use model::{
    ClientRecord, ClientSide, Completeness, Dimensions, Flag, Flags, JoinMethod, Nanos, Request, ServerPhases, Span,
    SpanId, State, StreamSummary, TraceId, UnixNanos, is_placeholder_id,
};

/// How far a trace has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Nothing arrived for the settling time.
    pub settled: bool,
    /// A lone side no longer waits for its other.
    pub deadline_passed: bool,
    /// An event log without its end marker is closed where its last line came no later.
    pub quiet_since: UnixNanos,
    /// Pause of a stream from which it may hang.
    pub hang: Nanos,
    /// Our clock, which tells how long an open stream has been silent.
    pub now: UnixNanos,
}

impl Progress {
    /// All has come that will come.
    pub const FINAL: Self = Self {
        settled: true,
        deadline_passed: true,
        quiet_since: UnixNanos(i64::MAX),
        hang: Nanos(10_000_000_000),
        now: UnixNanos(i64::MAX),
    };

    /// Whether a stream paused for so long that it may hang: between two tokens, or since the last line of a log that
    /// is still open.
    fn suspects_hang(&self, stream: Option<StreamSummary>, open_since: Option<UnixNanos>) -> bool {
        let paused = stream.and_then(|stream| stream.max_gap).is_some_and(|gap| gap >= self.hang);
        paused || open_since.is_some_and(|since| since + self.hang <= self.now)
    }
}

/// A joined request with the spans that explain it.
#[derive(Debug, Clone)]
pub struct Joined {
    pub request: Request,
    pub spans: Vec<ExplainedSpan>,
    /// Which rules decided its phases.
    pub sources: PhaseSources,
    /// The answer's own timing.
    pub timing: Option<ExplainedTiming>,
}

/// What a trace turned out to be.
#[derive(Debug, Clone, Default)]
pub struct Explained {
    /// Its requests, one for each client record: records that collide each have one.
    pub requests: Vec<Joined>,
    /// What to show of a trace that has spans but no request, since no span among them is a server's entry. It is
    /// counted nowhere.
    pub stray: Option<Joined>,
    /// When the last line came of the event log that may still grow and has been silent for longest.
    pub open_since: Option<UnixNanos>,
    /// Request ids that the spans of the server's part tell, the outermost span's first: those that the client most
    /// likely knows.
    pub server_ids: Vec<String>,
}

impl Explained {
    /// What to show of the trace: of records that collide only the first, since none of them can be identified.
    pub fn shown(self) -> Vec<Joined> {
        let mut collided = false;
        let mut shown: Vec<Joined> = self.requests;
        shown.retain(|joined| {
            let again = collided && joined.request.flags.has(Flag::TraceIdCollision);
            collided |= joined.request.flags.has(Flag::TraceIdCollision);
            !again
        });
        shown.extend(self.stray);
        shown
    }
}

/// Joins spans to those who claim a request of them. What the inputs hold of records and logs is in the claimants
/// already.
pub fn assemble(
    inputs: TraceInputs,
    claimants: Vec<Claimant>,
    progress: Progress,
    read: &dyn Fn(&Span) -> Reading,
) -> Explained {
    let copies = copies::choose(inputs.fragments, inputs.span_limit);
    let client_spans: BTreeSet<SpanId> = claimants.iter().filter_map(|claimant| claimant.span_id).collect();
    let mut forest = Forest::grow(copies.spans, read, &client_spans);
    let mut flags = copies.flags;
    flags.extend(forest.flags);
    flags.set_if(inputs.oversized, Flag::TraceTooLarge);
    let claims = claims(&forest, claimants, inputs.trace_id);
    let held = forest.places();
    let alone = claims.len() == 1;
    let mut trace = Trace {
        trace_id: inputs.trace_id,
        first_arrival: inputs.first_arrival,
        progress,
        flags,
        has_spans: !held.is_empty(),
    };
    if claims.is_empty() {
        let unclaimed = Claim::unclaimed(Entry::Missing);
        let stray = Joined {
            request: trace.request(unclaimed, Flags::NONE, None),
            spans: view::spans(&forest, held, None),
            sources: PhaseSources::new(),
            timing: None,
        };
        return Explained { stray: trace.has_spans.then_some(stray), ..Explained::default() };
    }
    let parts: Vec<(Claim, Flags, Option<ServerPart>)> = claims
        .into_iter()
        .map(|claim| {
            let mut own = Flags::NONE;
            let part =
                claim.measured().map(|(entry, record)| server_side::measure(&mut forest, entry, record, &mut own));
            (claim, own, part)
        })
        .collect();
    let server_ids = parts.first().map(|(claim, ..)| request_ids(&forest, claim.entry)).unwrap_or_default();
    trace.flags.set_if(has_detached(&forest, &parts), Flag::DetachedSpans);
    let requests = parts
        .into_iter()
        .map(|(claim, own, part)| {
            let spans = match (&part, claim.entry) {
                (Some(part), Entry::Span(entry)) if !alone => {
                    view::spans(&forest, shown_below(&forest, entry, &held).into_iter(), Some(part))
                }
                (part, _) if alone => view::spans(&forest, held.clone(), part.as_ref()),
                _ => Vec::new(),
            };
            let sources = part.as_ref().map(|part| view::sources(&forest, part)).unwrap_or_default();
            let timing = view::timing(claim.record.as_ref(), part.as_ref());
            Joined { request: trace.request(claim, own, part), spans, sources, timing }
        })
        .collect();
    Explained { requests, stray: None, open_since: None, server_ids }
}

/// The spans of a request among several: those below its entry, and what is passed over there for its invalid clock.
fn shown_below(forest: &Forest, entry: Place, held: &Range<Place>) -> Vec<Place> {
    let mut below: Vec<Place> = forest.subtree(entry).into_iter().filter(|place| held.contains(place)).collect();
    let known: BTreeSet<Place> = below.iter().copied().collect();
    let is_passed_over = |place: &Place| {
        let node = forest.node(*place);
        node.interval.is_none() && node.parent.is_some_and(|parent| known.contains(&parent))
    };
    below.extend(held.clone().filter(is_passed_over));
    below
}

/// How many request ids of a server's part are kept.
const MAX_SERVER_IDS: usize = 4;

/// The request ids that an entry span and those below it tell.
fn request_ids(forest: &Forest, entry: Entry) -> Vec<String> {
    let Entry::Span(entry) = entry else { return Vec::new() };
    let mut ids: Vec<String> = Vec::new();
    for place in forest.subtree(entry) {
        for id in &forest.node(place).reading.request_ids {
            if ids.len() < MAX_SERVER_IDS && !ids.contains(id) && !is_placeholder_id(id) {
                ids.push(id.clone());
            }
        }
    }
    ids
}

/// Whether a server's or classified span lies neither in a request nor above one.
fn has_detached(forest: &Forest, parts: &[(Claim, Flags, Option<ServerPart>)]) -> bool {
    let mut entries = BTreeSet::new();
    for (claim, ..) in parts {
        match claim.entry {
            Entry::Span(entry) => _ = entries.insert(entry),
            // Which of them would be detached is not known either.
            Entry::Ambiguous => return false,
            Entry::Missing => {}
        }
    }
    let mut placed = vec![false; forest.places().len()];
    let mut callers = BTreeSet::new();
    for entry in entries {
        let own = &forest.node(entry).domain;
        let above = forest.ancestors(entry).map(|up| &forest.node(up).domain);
        callers.extend(above.filter(|domain| *domain != own));
        for place in forest.subtree(entry).into_iter().chain(forest.ancestors(entry)) {
            placed[place] = true;
        }
    }
    forest.places().any(|place| {
        let node = forest.node(place);
        // What a caller does beside this request is no server's.
        let tells = (node.reading.phase.is_some() || !node.reading.laid.is_empty()) && !callers.contains(&node.domain);
        !placed[place] && node.interval.is_some() && (node.is_server() || node.is_engine() || tells)
    })
}

/// What all requests of a trace share.
struct Trace {
    trace_id: TraceId,
    first_arrival: UnixNanos,
    progress: Progress,
    flags: Flags,
    has_spans: bool,
}

impl Trace {
    fn request(&self, claim: Claim, own: Flags, part: Option<ServerPart>) -> Request {
        let mut flags = self.flags;
        flags.extend(own);
        flags.set_if(claim.collides, Flag::TraceIdCollision);
        flags.set_if(claim.entry == Entry::Ambiguous, Flag::AmbiguousEntry);
        flags.set_if(claim.entry == Entry::Missing && self.has_spans, Flag::NoEntrySpan);
        flags.set_if(claim.from_span, Flag::ClientFromSpan);
        let record = claim.record.as_ref();
        flags.set_if(record.is_some_and(|record| record.sampled == Some(false)), Flag::SampledOut);
        flags.set_if(record.is_some_and(has_derived_id), Flag::TraceIdUnknown);
        let difference = match (record, &part) {
            (Some(record), Some(part)) => check::compare(record, part, &mut flags),
            (None, Some(part)) => Difference { excluded: part.side.is_none(), ..Difference::default() },
            _ => Difference { excluded: claim.collides || claim.entry == Entry::Ambiguous, ..Difference::default() },
        };
        let phases = part.as_ref().and_then(|part| part.phases);
        if let Some(phases) = phases {
            flag_unknown(&phases, &mut flags);
        }
        let details = part.as_ref().map(|part| part.details.clone()).unwrap_or_default();
        let client_dimensions = record.map(labels::of_client).unwrap_or_default();
        let input_tokens = record.and_then(|record| record.input_tokens).or(details.input_tokens);
        let output_tokens = record.and_then(|record| record.output_tokens).or(details.output_tokens);
        let stream = record.and_then(|record| record.stream);
        let rhythm = stream.zip(record).and_then(|(s, record)| s.suspected_buffering(record.ttft, record.duration));
        flags.set_if(rhythm == Some(true), Flag::SuspectedBuffering);
        flags.set_if(self.progress.suspects_hang(stream, claim.open_since), Flag::SuspectedHang);
        Request {
            trace_id: self.trace_id,
            server_trace: None,
            request_id: record.and_then(|record| record.request_id.clone()),
            client_span: claim.span_id,
            window_at: record.and_then(|record| record.started_at).unwrap_or(self.first_arrival),
            state: self.state(&claim, difference.excluded),
            result: claim.result().or(part.as_ref().and_then(|part| part.result)),
            flags,
            join_method: JoinMethod::TraceId,
            client: record.map(client_side),
            server: part.as_ref().and_then(|part| part.side),
            network_envelope: difference.network_envelope,
            wall_envelope: difference.wall_envelope,
            phases,
            ttft: difference.ttft,
            rates: rates(record, output_tokens, phases.and_then(|phases| phases.generation)),
            stream,
            completeness: stream.and_then(|s| Completeness::from_parts(s.done_received, s.missing_seq)),
            input_tokens,
            output_tokens,
            dimensions: if record.is_some() || part.is_some() {
                labels::complete(&client_dimensions, &details)
            } else {
                Dimensions::default()
            },
            client_dimensions,
        }
    }

    /// pending > excluded > matched > `client_only` or `server_only`. A record may still come to replace a caller's span.
    fn state(&self, claim: &Claim, excluded: bool) -> State {
        let lone = claim.record.is_none() || claim.from_span || claim.entry == Entry::Missing;
        if !self.progress.settled || claim.open_since.is_some() || (lone && !self.progress.deadline_passed) {
            State::Pending
        } else if excluded {
            State::Excluded
        } else if claim.record.is_none() {
            State::ServerOnly
        } else if claim.entry == Entry::Missing {
            State::ClientOnly
        } else {
            State::Matched
        }
    }
}

/// Whether the id under which a record is kept stands for its request id.
fn has_derived_id(record: &ClientRecord) -> bool {
    record.request_id.as_deref().map(TraceId::of_request_id) == Some(record.trace_id)
}

fn client_side(record: &ClientRecord) -> ClientSide {
    ClientSide {
        duration: record.duration,
        wall: record.wall,
        setup: record.setup.total(),
        ttft: record.ttft,
        ttft_visible: record.ttft_visible,
        headers: record.headers,
        client_queue: record.client_queue,
        status: record.status,
    }
}

fn flag_unknown(phases: &ServerPhases, flags: &mut Flags) {
    flags.set_if(phases.gateway.is_none(), Flag::GatewayUnknown);
    flags.set_if(phases.gpu_queue.is_none(), Flag::QueueUnknown);
    flags.set_if(phases.generation.is_none(), Flag::GenerationUnknown);
}
