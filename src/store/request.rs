//! The `request` table: one joined request a row.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use sha2::{Digest, Sha256};
use sqlx::Row;
use sqlx::postgres::PgRow;
use uuid::Uuid;

use super::copy::CopyRows;
use super::dimension::DimensionTuple;
use model::{
    ClientSide, Completeness, Flag, Flags, JoinMethod, Nanos, Rates, Request, ResultClass, ServerPhases, ServerSide,
    SpanId, State, StreamSummary, TraceId, TtftPhases, UnixNanos,
};

/// A request as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestRow {
    /// The request. Read back, its times are cut to microseconds where they are calendar times, and of its stream only
    /// what aggregation needs is there.
    pub request: Request,
    /// 0 until it is joined, then 1; rises when late data changes the row.
    pub revision: i32,
    /// First arrival of the trace, by our clock.
    pub arrived_at: UnixNanos,
    /// A digest of the request, its `late` flag aside: equal content need not be written again.
    pub content: i64,
    /// Id of its label tuple.
    pub dims: i64,
}

impl RequestRow {
    /// A new row.
    pub fn new(request: Request, arrived_at: UnixNanos, revision: i32) -> Self {
        let dims = DimensionTuple::of(&request).id();
        let content = content_of(&request, dims);
        Self { request, revision, arrived_at, content, dims }
    }
}

/// The columns that COPY writes, in its order: those of the row, then those of the request.
pub(super) const COLUMNS: &str = "arrived_at, dims, content, revision, \
    trace_id, window_at, flags, state, result, join_method, completeness, sides, client_span, entry_span, \
    duration_ns, wall_ns, setup_ns, ttft_ns, ttft_visible_ns, headers_ns, client_queue_ns, status, \
    server_total_ns, server_ttft_ns, network_envelope_ns, wall_envelope_ns, \
    gateway_ns, gpu_queue_ns, generation_ns, prefill_ns, decode_ns, provider_ns, upstream_envelope_ns, unattributed_ns, \
    ttft_envelope_ns, ttft_gateway_ns, ttft_gpu_queue_ns, ttft_generation_ns, ttft_prefill_ns, ttft_decode_ns, \
    ttft_provider_ns, ttft_upstream_envelope_ns, ttft_unattributed_ns, \
    p50_gap_ns, p95_gap_ns, p99_gap_ns, max_gap_ns, business_events, batched_events, gaps_over_1s, missing_seq, \
    rate_e2e, rate_stream, rate_after_first, tpot_ms, generation_ms_per_output_token, input_tokens, output_tokens, \
    server_trace, request_id";

const COLUMN_COUNT: usize = 60;

/// Bits of `sides`: optional parts that no column of their own tells.
pub(super) const CLIENT: i16 = 1;
const STREAM: i16 = 2;
/// The rhythm of the stream could be judged: the flag says how.
pub(super) const RHYTHM: i16 = 4;

/// About the size of an encoded row.
pub(super) const ROW_BYTES: usize = 600;

/// Adds a row to a COPY of [`COLUMNS`].
pub(super) fn encode(row: &RequestRow, rows: &mut CopyRows) {
    rows.row(COLUMN_COUNT);
    rows.timestamp(row.arrived_at.0);
    rows.int8(Some(row.dims));
    rows.int8(Some(row.content));
    rows.int4(Some(row.revision));
    encode_request(&row.request, row.request.flags, rows);
}

fn content_of(request: &Request, dims: i64) -> i64 {
    let mut rows = CopyRows::with_capacity(ROW_BYTES);
    rows.int8(Some(dims));
    encode_request(request, request.flags.without(Flag::Late), &mut rows);
    let digest = Sha256::digest(rows.body());
    let mut head = [0; 8];
    head.copy_from_slice(&digest[..8]);
    i64::from_be_bytes(head)
}

fn encode_request(request: &Request, flags: Flags, rows: &mut CopyRows) {
    rows.field(request.trace_id.as_bytes());
    rows.timestamp(request.window_at.0);
    rows.int8(Some(flags.bits()));
    rows.int2(Some(request.state as i16));
    rows.int2(request.result.map(|result| result as i16));
    rows.int2(Some(request.join_method as i16));
    rows.int2(request.completeness.map(|completeness| completeness as i16));
    let client = request.client.map_or(0, |_| CLIENT);
    let stream = request.stream.map_or(0, |_| STREAM);
    let rhythm = if request.tells_rhythm() { RHYTHM } else { 0 };
    rows.int2(Some(client | stream | rhythm));
    rows.int8(request.client_span.map(span_number));
    rows.int8(request.server.map(|server| span_number(server.entry)));
    encode_client(&request.client.unwrap_or_default(), rows);
    rows.int8(request.server.map(|server| server.total.0));
    nanos(request.server.and_then(|server| server.ttft), rows);
    nanos(request.network_envelope, rows);
    nanos(request.wall_envelope, rows);
    encode_phases(request.phases.as_ref(), rows);
    nanos(request.ttft.map(|ttft| ttft.envelope), rows);
    encode_phases(request.ttft.as_ref().map(|ttft| &ttft.server), rows);
    encode_stream(&request.stream.unwrap_or_default(), rows);
    encode_rates(&request.rates, rows);
    rows.int8(request.input_tokens);
    rows.int8(request.output_tokens);
    match request.server_trace {
        Some(trace_id) => rows.field(trace_id.as_bytes()),
        None => rows.null(),
    }
    match &request.request_id {
        Some(request_id) => rows.field(request_id.as_bytes()),
        None => rows.null(),
    }
}

fn encode_client(client: &ClientSide, rows: &mut CopyRows) {
    let ClientSide { duration, wall, setup, ttft, ttft_visible, headers, client_queue, status } = *client;
    for time in [duration, wall, setup, ttft, ttft_visible, headers, client_queue] {
        nanos(time, rows);
    }
    rows.int4(narrow(status));
}

fn encode_phases(phases: Option<&ServerPhases>, rows: &mut CopyRows) {
    let Some(phases) = phases else {
        (0..8).for_each(|_| rows.null());
        return;
    };
    for told in [phases.gateway, phases.gpu_queue, phases.generation, phases.prefill, phases.decode] {
        nanos(told, rows);
    }
    for always in [phases.provider, phases.upstream_envelope, phases.unattributed] {
        nanos(Some(always), rows);
    }
}

fn encode_stream(stream: &StreamSummary, rows: &mut CopyRows) {
    for gap in [stream.p50_gap, stream.p95_gap, stream.p99_gap, stream.max_gap] {
        nanos(gap, rows);
    }
    for count in [stream.business_events, stream.batched_events, stream.gaps_over_1s, stream.missing_seq] {
        rows.int4(narrow(count));
    }
}

fn encode_rates(rates: &Rates, rows: &mut CopyRows) {
    let Rates { rate_e2e, rate_stream, rate_after_first, tpot_ms, generation_ms_per_output_token } = *rates;
    for rate in [rate_e2e, rate_stream, rate_after_first, tpot_ms, generation_ms_per_output_token] {
        rows.float8(rate);
    }
}

fn nanos(duration: Option<Nanos>, rows: &mut CopyRows) {
    rows.int8(duration.map(|duration| duration.0));
}

/// Counts and statuses beyond 2³¹ are not believable: stored as unknown.
fn narrow(count: Option<i64>) -> Option<i32> {
    count.and_then(|count| i32::try_from(count).ok())
}

fn span_number(id: SpanId) -> i64 {
    i64::from_be_bytes(*id.as_bytes())
}

/// Reads a row that has all of [`COLUMNS`].
pub(super) fn decode(row: &PgRow, labels: Arc<DimensionTuple>) -> Result<RequestRow, sqlx::Error> {
    let trace_id: Uuid = row.try_get("trace_id")?;
    let window_at: DateTime<Utc> = row.try_get("window_at")?;
    let arrived_at: DateTime<Utc> = row.try_get("arrived_at")?;
    let sides: i16 = row.try_get("sides")?;
    let DimensionTuple { client: client_dimensions, labels: dimensions } = Arc::unwrap_or_clone(labels);
    let server_trace: Option<Uuid> = row.try_get("server_trace")?;
    let server_trace = server_trace.map(|id| TraceId::from_bytes(id.into_bytes())).transpose();
    let request = Request {
        trace_id: TraceId::from_bytes(trace_id.into_bytes()).map_err(|error| invalid("trace_id", error))?,
        server_trace: server_trace.map_err(|error| invalid("server_trace", error))?,
        request_id: row.try_get("request_id")?,
        client_span: read_span(row, "client_span")?,
        window_at: UnixNanos::from_datetime(window_at),
        state: State::from_number(row.try_get("state")?).ok_or_else(|| invalid("state", "an unknown number"))?,
        result: row.try_get::<Option<i16>, _>("result")?.and_then(ResultClass::from_number),
        flags: Flags::from_bits(row.try_get("flags")?),
        join_method: read_join_method(row)?,
        client: if sides & CLIENT != 0 { Some(read_client(row)?) } else { None },
        server: read_server(row)?,
        network_envelope: read_nanos(row, "network_envelope_ns")?,
        wall_envelope: read_nanos(row, "wall_envelope_ns")?,
        phases: read_phases(row, "")?,
        ttft: read_ttft(row)?,
        rates: read_rates(row)?,
        stream: if sides & STREAM != 0 { Some(read_stream(row)?) } else { None },
        completeness: row.try_get::<Option<i16>, _>("completeness")?.and_then(Completeness::from_number),
        input_tokens: row.try_get("input_tokens")?,
        output_tokens: row.try_get("output_tokens")?,
        client_dimensions,
        dimensions,
    };
    Ok(RequestRow {
        request,
        revision: row.try_get("revision")?,
        arrived_at: UnixNanos::from_datetime(arrived_at),
        content: row.try_get("content")?,
        dims: row.try_get("dims")?,
    })
}

fn invalid(column: &str, error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> sqlx::Error {
    sqlx::Error::ColumnDecode { index: column.to_owned(), source: error.into() }
}

fn read_nanos(row: &PgRow, column: &str) -> Result<Option<Nanos>, sqlx::Error> {
    Ok(row.try_get::<Option<i64>, _>(column)?.map(Nanos))
}

fn read_span(row: &PgRow, column: &str) -> Result<Option<SpanId>, sqlx::Error> {
    let number: Option<i64> = row.try_get(column)?;
    let id = number.map(|number| SpanId::from_bytes(number.to_be_bytes())).transpose();
    id.map_err(|error| invalid(column, error))
}

fn read_count(row: &PgRow, column: &str) -> Result<Option<i64>, sqlx::Error> {
    Ok(row.try_get::<Option<i32>, _>(column)?.map(i64::from))
}

pub(super) fn read_join_method(row: &PgRow) -> Result<JoinMethod, sqlx::Error> {
    JoinMethod::from_number(row.try_get("join_method")?).ok_or_else(|| invalid("join_method", "an unknown number"))
}

fn read_client(row: &PgRow) -> Result<ClientSide, sqlx::Error> {
    Ok(ClientSide {
        duration: read_nanos(row, "duration_ns")?,
        wall: read_nanos(row, "wall_ns")?,
        setup: read_nanos(row, "setup_ns")?,
        ttft: read_nanos(row, "ttft_ns")?,
        ttft_visible: read_nanos(row, "ttft_visible_ns")?,
        headers: read_nanos(row, "headers_ns")?,
        client_queue: read_nanos(row, "client_queue_ns")?,
        status: read_count(row, "status")?,
    })
}

fn read_server(row: &PgRow) -> Result<Option<ServerSide>, sqlx::Error> {
    let (Some(entry), Some(total)) = (read_span(row, "entry_span")?, read_nanos(row, "server_total_ns")?) else {
        return Ok(None);
    };
    Ok(Some(ServerSide { entry, total, ttft: read_nanos(row, "server_ttft_ns")? }))
}

/// `prefix` is empty for the total's phases and `ttft_` for those up to the first token.
fn read_phases(row: &PgRow, prefix: &str) -> Result<Option<ServerPhases>, sqlx::Error> {
    let told = |phase: &str| read_nanos(row, &format!("{prefix}{phase}_ns"));
    let (Some(provider), Some(upstream_envelope), Some(unattributed)) =
        (told("provider")?, told("upstream_envelope")?, told("unattributed")?)
    else {
        return Ok(None);
    };
    Ok(Some(ServerPhases {
        gateway: told("gateway")?,
        gpu_queue: told("gpu_queue")?,
        generation: told("generation")?,
        prefill: told("prefill")?,
        decode: told("decode")?,
        provider,
        upstream_envelope,
        unattributed,
    }))
}

fn read_ttft(row: &PgRow) -> Result<Option<TtftPhases>, sqlx::Error> {
    let (Some(envelope), Some(server)) = (read_nanos(row, "ttft_envelope_ns")?, read_phases(row, "ttft_")?) else {
        return Ok(None);
    };
    Ok(Some(TtftPhases { envelope, server }))
}

fn read_rates(row: &PgRow) -> Result<Rates, sqlx::Error> {
    Ok(Rates {
        rate_e2e: row.try_get("rate_e2e")?,
        rate_stream: row.try_get("rate_stream")?,
        rate_after_first: row.try_get("rate_after_first")?,
        tpot_ms: row.try_get("tpot_ms")?,
        generation_ms_per_output_token: row.try_get("generation_ms_per_output_token")?,
    })
}

fn read_stream(row: &PgRow) -> Result<StreamSummary, sqlx::Error> {
    Ok(StreamSummary {
        business_events: read_count(row, "business_events")?,
        batched_events: read_count(row, "batched_events")?,
        gaps_over_1s: read_count(row, "gaps_over_1s")?,
        missing_seq: read_count(row, "missing_seq")?,
        p50_gap: read_nanos(row, "p50_gap_ns")?,
        p95_gap: read_nanos(row, "p95_gap_ns")?,
        p99_gap: read_nanos(row, "p99_gap_ns")?,
        max_gap: read_nanos(row, "max_gap_ns")?,
        ..StreamSummary::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_columns_is_that_of_their_list() {
        assert_eq!(COLUMNS.split(',').count(), COLUMN_COUNT);
    }
}
