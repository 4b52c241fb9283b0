-- What arrived, as it arrived: one row for all spans of a trace in one upload, one row a client record.
-- Append-only, so that an acknowledged batch is one COPY and a commit; a duplicate is dropped when the trace is joined,
-- and a unique index would cost four times the insert itself.
-- Nullable columns come without a cost: the null bitmap of up to eight columns fits the padding of the row header.
create table arrival (
    received_at timestamptz not null,
    identity    bigint,              -- client records only: a digest of the record's identity and measured fields
    key         uuid not null,       -- the trace id
    kind        smallint not null,   -- 0 spans, 1 client record
    body        bytea not null,      -- the crate's own versioned encoding
    constraint arrival_body_bounded check (octet_length(body) <= 16777216)
) partition by range (received_at);

-- Ids and varints do not compress: trying to only costs time.
alter table arrival alter column body set storage external;

-- The key is never unique here: a trace arrives in several uploads.
create index arrival_key on arrival (key);
