-- One joined request a row. Durations are nanoseconds; null is unknown. Columns stand by alignment, widest first.
-- Partitioned by the trace's first arrival, which never changes, and not by the client's start, which may be absurd.
create table request (
    arrived_at              timestamptz not null,
    window_at               timestamptz not null,   -- the client's start, else the first arrival: decides the window
    dims                    bigint not null,        -- dimension.id
    flags                   bigint not null,        -- a bit each, see the model
    content                 bigint not null,        -- a digest of the row: unchanged content is not rewritten
    client_span             bigint,
    entry_span              bigint,
    duration_ns             bigint,
    wall_ns                 bigint,
    setup_ns                bigint,
    ttft_ns                 bigint,
    ttft_visible_ns         bigint,
    headers_ns              bigint,
    client_queue_ns         bigint,
    server_total_ns         bigint,
    server_ttft_ns          bigint,
    network_envelope_ns     bigint,
    wall_envelope_ns        bigint,
    gateway_ns              bigint,
    gpu_queue_ns            bigint,
    generation_ns           bigint,
    prefill_ns              bigint,
    decode_ns               bigint,
    provider_ns             bigint,
    upstream_envelope_ns    bigint,
    unattributed_ns         bigint,
    ttft_envelope_ns        bigint,
    ttft_gateway_ns         bigint,
    ttft_gpu_queue_ns       bigint,
    ttft_generation_ns      bigint,
    ttft_prefill_ns         bigint,
    ttft_decode_ns          bigint,
    ttft_provider_ns        bigint,
    ttft_upstream_envelope_ns bigint,
    ttft_unattributed_ns    bigint,
    p50_gap_ns              bigint,
    p95_gap_ns              bigint,
    p99_gap_ns              bigint,
    max_gap_ns              bigint,
    rate_e2e                double precision,       -- tokens a second
    rate_stream             double precision,
    rate_after_first        double precision,
    tpot_ms                 double precision,
    generation_ms_per_output_token double precision,
    input_tokens            bigint,
    output_tokens           bigint,
    business_events         integer,
    batched_events          integer,
    gaps_over_1s            integer,
    missing_seq             integer,
    revision                integer not null,       -- rises when late data changed the row
    status                  integer,
    state                   smallint not null,
    result                  smallint,
    join_method             smallint not null,
    completeness            smallint,
    sides                   smallint not null,      -- which optional parts the request has, a bit each
    trace_id                uuid not null
) partition by range (arrived_at);

create index request_trace_id on request (trace_id);
create index request_window on request (dims, window_at);
