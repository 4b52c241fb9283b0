-- A cache of what distributions need: for each minute and label tuple counts and digests, a pure function of the rows
-- of one slice: those that arrived on one day and began in one minute. Keyed by the day of arrival as well, since rows
-- leave by it: a slice has all of its rows or none, and what outlives them is never built again from a part.
create table rollup (
    day     timestamptz not null,    -- start of the day of arrival, UTC
    minute  timestamptz not null,    -- start of the minute of window_at
    dims    bigint not null,         -- dimension.id
    state   smallint not null,
    result  smallint,
    counts  bytea not null,          -- the crate's own versioned encoding
    digests bytea not null           -- likewise; apart, so that counting does not read them
) partition by range (day);

-- Floating-point numbers do not compress: trying to only costs time.
alter table rollup alter column digests set storage external;

create index rollup_window on rollup (dims, minute);
create index rollup_slice on rollup (minute, day);

-- Slices whose rows have changed since their rollup was built. Whoever writes rows adds a mark in the same transaction,
-- without looking for one that is there: writers never wait for each other.
create table rollup_dirty (
    day       timestamptz not null,
    minute    timestamptz not null,
    marked_at timestamptz not null
)
with (
    -- Every row lives for seconds only: clean up often, however large the table once was.
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_scale_factor = 0.2
);

create index rollup_dirty_slice on rollup_dirty (minute, day);
