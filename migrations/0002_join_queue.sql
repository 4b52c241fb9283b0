-- Work for the joiner: one row for each commit and bucket that it touched, not one for each trace, so that queueing
-- stays cheap beside the COPY that it shares a transaction with.
create table join_queue (
    due_at  timestamptz not null,    -- when the traces will have settled
    since   timestamptz not null,    -- no arrival of these traces is looked for before this
    records integer not null,        -- how many client records came with this row
    bucket  smallint not null,       -- first byte of the key, modulo 16
    keys    bytea not null           -- the traces' keys, 16 bytes each
)
with (
    -- Every row lives for seconds only: clean up often, however large the table once was.
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_scale_factor = 0.2
);

alter table join_queue alter column keys set storage external;

create index join_queue_due on join_queue (bucket, due_at);
