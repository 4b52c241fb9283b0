//! What many requests with the same labels, state and result are together: counts, and the values of each metric.
//!
//! Cells are the only form in which requests reach an answer. Read from rows they hold the values themselves; read from
//! rollups they hold digests, and an answer cannot tell the difference but by its method.

use std::collections::BTreeMap;

use super::sample::Values;
use model::{Completeness, Flag, Flags, JoinMethod, Metric, Observation, ResultClass, State, Unit};

/// What the requests of a cell have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CellKey {
    /// The stored id of their labels.
    pub labels: i64,
    /// The state of the requests in the join.
    pub state: State,
    /// How they ended; `None` where that is not known.
    pub result: Option<ResultClass>,
}

impl CellKey {
    /// Of the cell to which a request belongs.
    pub fn of(observation: &Observation) -> Self {
        Self { labels: observation.labels, state: observation.state, result: observation.result }
    }

    /// How many of a cell's requests are client records that are settled: the denominator of every coverage.
    pub const fn client_records(&self, counts: &Counts) -> u64 {
        match self.state {
            State::Matched | State::ClientOnly => counts.requests,
            State::Excluded => counts.client,
            State::Pending | State::ServerOnly => 0,
        }
    }
}

/// Whether a client record came. Records that collide are not believed, but one did come.
pub const fn has_record(observation: &Observation) -> bool {
    observation.has_client || observation.flags.has(Flag::TraceIdCollision)
}

/// How many requests a cell holds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Counts {
    /// All requests of the cell.
    pub requests: u64,
    /// Those with a client record.
    pub client: u64,
    /// Those with a server's entry span.
    pub server: u64,
    /// Client records whose traceparent asked for no sampling.
    pub sampled_out: u64,
    /// Client records that are the caller's own spans.
    pub from_spans: u64,
    /// Those whose sides were joined by a request id.
    pub by_request_id: u64,
    /// Streamed ones by whether all of the answer arrived, where that is known.
    pub completeness: BTreeMap<Completeness, u64>,
    /// Those the rhythm of whose stream could be judged.
    pub judged: u64,
    /// How many of these something on the way held back.
    pub suspected_buffering: u64,
    /// Those whose output tokens were counted.
    pub with_output_tokens: u64,
    /// The sum of their output tokens.
    pub output_tokens: u64,
    /// Excluded ones by their reason.
    pub excluded: BTreeMap<Flag, u64>,
}

impl Counts {
    /// Counts one request.
    pub fn add(&mut self, observation: &Observation) {
        self.requests += 1;
        self.client += u64::from(has_record(observation));
        self.server += u64::from(observation.has_server);
        self.sampled_out += u64::from(observation.has_client && observation.flags.has(Flag::SampledOut));
        self.from_spans += u64::from(observation.flags.has(Flag::ClientFromSpan));
        self.by_request_id += u64::from(observation.join_method == JoinMethod::RequestId);
        self.add_stream(observation);
        if observation.state == State::Excluded {
            // An entry span without a valid end excludes too, though its flag alone does not say so.
            let reason = observation.flags.exclusion().unwrap_or(Flag::ClockInvalid);
            *self.excluded.entry(reason).or_default() += 1;
        }
    }

    fn add_stream(&mut self, observation: &Observation) {
        if let Some(completeness) = observation.completeness {
            *self.completeness.entry(completeness).or_default() += 1;
        }
        self.judged += u64::from(observation.tells_rhythm);
        self.suspected_buffering += u64::from(observation.flags.has(Flag::SuspectedBuffering));
        // Records that collide may tell one answer twice.
        let tokens = observation.output_tokens.filter(|_| !observation.flags.has(Flag::TraceIdCollision));
        if let Some(tokens) = tokens.and_then(|tokens| u64::try_from(tokens).ok()) {
            self.with_output_tokens += 1;
            self.output_tokens = self.output_tokens.saturating_add(tokens);
        }
    }

    /// Adds the counts of another cell.
    pub fn merge(&mut self, other: &Self) {
        self.requests += other.requests;
        self.client += other.client;
        self.server += other.server;
        self.sampled_out += other.sampled_out;
        self.from_spans += other.from_spans;
        self.by_request_id += other.by_request_id;
        self.judged += other.judged;
        self.suspected_buffering += other.suspected_buffering;
        self.with_output_tokens += other.with_output_tokens;
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        for (completeness, n) in &other.completeness {
            *self.completeness.entry(*completeness).or_default() += n;
        }
        for (reason, n) in &other.excluded {
            *self.excluded.entry(*reason).or_default() += n;
        }
    }
}

/// What a cell keeps values of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Series {
    /// A metric as it is.
    Of(Metric),
    /// Of requests that were cut off: their TTFT, or where no token came the time for which none did.
    CensoredTtft,
    /// Of requests that were cut off and tell nothing of a time: the longest that it can have been by then.
    Lasted(Metric),
}

impl Series {
    const CENSORED_TTFT: u8 = 255;
    const FIRST_LASTED: u8 = 128;

    /// The number under which it is stored.
    pub const fn number(self) -> u8 {
        match self {
            Self::Of(metric) => metric as u8,
            Self::CensoredTtft => Self::CENSORED_TTFT,
            Self::Lasted(metric) => Self::FIRST_LASTED + metric as u8,
        }
    }

    /// From the stored number.
    pub fn from_number(number: u8) -> Option<Self> {
        match number {
            Self::CENSORED_TTFT => Some(Self::CensoredTtft),
            Self::FIRST_LASTED.. => Metric::from_number(number - Self::FIRST_LASTED).map(Self::Lasted),
            _ => Metric::from_number(number).map(Self::Of),
        }
    }

    /// What requests that were cut off tell of a metric: how far it had come by then.
    pub const fn cut_off(metric: Metric) -> Self {
        match metric {
            Metric::Ttft => Self::CensoredTtft,
            _ => Self::Of(metric),
        }
    }
}

/// Whether a result means that the answer was cut off, so that its duration is only a lower bound.
pub const fn is_cut_off(result: Option<ResultClass>) -> bool {
    matches!(result, Some(ResultClass::Timeout | ResultClass::Cancelled | ResultClass::Truncated))
}

/// Whether a value is what its metric says. A record that ends at the headers tells no duration of the whole answer; and
/// a caller's span begins before there is a connection, while these are measured from the start of sending.
fn is_whole(metric: Metric, flags: Flags) -> bool {
    let whole = !(flags.has(Flag::HeadersOnly) && matches!(metric, Metric::Duration | Metric::Wall));
    let from_sending = matches!(
        metric,
        Metric::Duration | Metric::Headers | Metric::Ttft | Metric::TtftEnvelope | Metric::TtftVisible
    );
    whole && !(flags.has(Flag::ClientFromSpan) && from_sending)
}

/// A metric of a request, where it counts in the request's state and is what it says.
pub fn told(metric: Metric, observation: &Observation) -> Option<f64> {
    let counts = metric.counts_in(observation.state) && is_whole(metric, observation.flags);
    observation.readings.get(metric).filter(|_| counts)
}

/// What a request that was cut off tells of a metric: its value by then; of a TTFT without a token, the time for which
/// none came.
pub fn told_by_then(metric: Metric, observation: &Observation) -> Option<f64> {
    let waited = || told(Metric::Duration, observation).filter(|_| metric == Metric::Ttft);
    told(metric, observation).or_else(waited)
}

/// The longest that a time can have been when its request was cut off, from how long the request lasted.
pub fn lasted(metric: Metric, observation: &Observation) -> Option<f64> {
    match metric {
        _ if metric.unit() != Unit::Nanos => None,
        // Before a request is sent, or all of it.
        Metric::ClientQueue | Metric::Wall => None,
        Metric::Setup | Metric::WallEnvelope => told(Metric::Wall, observation),
        _ => told(Metric::Duration, observation).or_else(|| told(Metric::Wall, observation)),
    }
}

/// Counts and values of the requests that share a key.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Cell {
    /// The counts of requests.
    pub counts: Counts,
    /// The values of every series that has any.
    pub series: BTreeMap<Series, Values>,
}

impl Cell {
    /// Adds one request of the cell's key. Only metrics that count in its state are kept.
    pub fn add(&mut self, observation: &Observation) {
        self.counts.add(observation);
        for metric in Metric::ALL.iter().copied() {
            if let Some(value) = told(metric, observation) {
                self.push(Series::Of(metric), value);
            }
        }
        if is_cut_off(observation.result) {
            self.add_cut_off(observation);
        }
    }

    fn add_cut_off(&mut self, observation: &Observation) {
        if let Some(value) = told_by_then(Metric::Ttft, observation) {
            self.push(Series::CensoredTtft, value);
        }
        for metric in Metric::ALL.iter().copied() {
            let untold = told_by_then(metric, observation).is_none();
            if untold && let Some(time) = lasted(metric, observation) {
                self.push(Series::Lasted(metric), time);
            }
        }
    }

    fn push(&mut self, series: Series, value: f64) {
        self.series.entry(series).or_default().push(value);
    }

    /// The same cell with every series as a digest, which is what is stored of it.
    #[must_use]
    pub fn digested(self) -> Self {
        let series = self.series.into_iter().map(|(series, values)| (series, values.digested())).collect();
        Self { counts: self.counts, series }
    }
}

/// Sorts requests into cells.
pub fn cells<'a>(observations: impl IntoIterator<Item = &'a Observation>) -> BTreeMap<CellKey, Cell> {
    let mut cells: BTreeMap<CellKey, Cell> = BTreeMap::new();
    for observation in observations {
        cells.entry(CellKey::of(observation)).or_default().add(observation);
    }
    cells
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use model::{Readings, Slice, UnixNanos};

    fn observation(state: State, result: ResultClass, value: f64) -> Observation {
        let mut readings = Readings::NONE;
        readings.set(Metric::Duration, Some(value));
        readings.set(Metric::GpuQueue, Some(value / 3.0));
        let flags = Flags::NONE;
        let slice = Slice::of(UnixNanos(0), UnixNanos(0));
        Observation {
            labels: 7,
            slice,
            state,
            result: Some(result),
            flags,
            has_client: true,
            has_server: true,
            join_method: JoinMethod::TraceId,
            completeness: None,
            tells_rhythm: false,
            output_tokens: None,
            readings,
        }
    }

    #[test]
    fn stored_numbers_lead_back() {
        let all = Metric::ALL.iter().flat_map(|metric| [Series::Of(*metric), Series::Lasted(*metric)]);
        for series in all.chain([Series::CensoredTtft]) {
            assert_eq!(Series::from_number(series.number()), Some(series));
        }
        assert_eq!((Series::from_number(100), Series::from_number(200)), (None, None));
    }

    #[test]
    fn a_cell_keeps_only_what_counts_in_its_state() {
        let lone = observation(State::ClientOnly, ResultClass::Ok, 9.0);
        let cell = &cells([&lone])[&CellKey::of(&lone)];
        assert_eq!(cell.series.keys().copied().collect::<Vec<_>>(), [Series::Of(Metric::Duration)]);
        let excluded = observation(State::Excluded, ResultClass::Ok, 9.0);
        let cell = &cells([&excluded])[&CellKey::of(&excluded)];
        assert_eq!((cell.series.len(), cell.counts.excluded.get(&Flag::ClockInvalid)), (0, Some(&1)));
    }

    #[test]
    fn a_record_that_ends_at_the_headers_has_no_duration_of_the_whole() {
        let mut headers = observation(State::Matched, ResultClass::Ok, 9.0);
        headers.flags.set(Flag::HeadersOnly);
        let cell = &cells([&headers])[&CellKey::of(&headers)];
        assert_eq!(cell.series.keys().copied().collect::<Vec<_>>(), [Series::Of(Metric::GpuQueue)]);
    }

    #[test]
    fn a_callers_span_tells_no_time_from_the_start_of_sending() {
        let mut span = observation(State::Matched, ResultClass::Ok, 9.0);
        span.flags.set(Flag::ClientFromSpan);
        for metric in [Metric::Wall, Metric::Headers, Metric::Ttft, Metric::TtftEnvelope, Metric::TtftGpuQueue] {
            span.readings.set(metric, Some(5.0));
        }
        let cell = &cells([&span])[&CellKey::of(&span)];
        let kept = [Metric::GpuQueue, Metric::Wall, Metric::TtftGpuQueue].map(Series::Of);
        assert_eq!(cell.series.keys().copied().collect::<Vec<_>>(), kept);
        assert_eq!((cell.counts.client, cell.counts.from_spans), (1, 1));
    }

    #[test]
    fn streams_are_counted_and_the_tokens_of_a_collision_are_not() {
        let mut streamed = observation(State::Matched, ResultClass::Ok, 9.0);
        streamed.completeness = Some(Completeness::Missing);
        (streamed.tells_rhythm, streamed.output_tokens) = (true, Some(180));
        streamed.flags.set(Flag::SuspectedBuffering);
        let mut collided = observation(State::Excluded, ResultClass::Ok, 9.0);
        collided.output_tokens = Some(180);
        collided.flags.set(Flag::TraceIdCollision);
        let mut counts = Counts::default();
        counts.add(&streamed);
        counts.add(&collided);
        assert_eq!(counts.completeness, BTreeMap::from([(Completeness::Missing, 1)]));
        assert_eq!((counts.judged, counts.suspected_buffering), (1, 1));
        assert_eq!((counts.with_output_tokens, counts.output_tokens), (1, 180));
        let mut twice = counts.clone();
        twice.merge(&counts);
        assert_eq!((twice.judged, twice.output_tokens, twice.completeness[&Completeness::Missing]), (2, 360, 2));
    }

    #[test]
    fn a_cut_off_request_without_a_token_is_censored_at_its_duration() {
        let mut timeout = observation(State::ClientOnly, ResultClass::Timeout, 60.0);
        let series = |observation: &Observation| cells([observation])[&CellKey::of(observation)].series.clone();
        assert_eq!(series(&timeout)[&Series::CensoredTtft], Values::Exact(vec![60.0]));
        timeout.readings.set(Metric::Ttft, Some(2.0));
        assert_eq!(series(&timeout)[&Series::CensoredTtft], Values::Exact(vec![2.0]));
    }

    proptest! {
        #[test]
        fn the_order_of_rows_does_not_change_what_is_stored(
            rows in prop::collection::vec((0_usize..5, 0_usize..5, 0.0_f64..1e12), 1..300),
            seed in any::<u64>(),
        ) {
            let build = |(state, result, value): &(usize, usize, f64)| {
                observation(State::ALL[*state], ResultClass::ALL[*result], *value)
            };
            let straight: Vec<Observation> = rows.iter().map(build).collect();
            let mut shuffled = straight.clone();
            shuffled.rotate_left(seed as usize % straight.len());
            shuffled.reverse();
            let digested = |rows: &[Observation]| -> Vec<_> {
                cells(rows).into_iter().map(|(key, cell)| (key, cell.digested())).collect()
            };
            prop_assert_eq!(digested(&straight), digested(&shuffled));
        }
    }
}
