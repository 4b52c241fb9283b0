-- Exact counts of what kept an objective, by minute: what burn rates and budgets are reckoned from. A cache that is a
-- pure function of the rows of one slice (see 0005_rollup.sql) and one version of an objective. Only slices in which
-- something counts have a row; which slices are counted is told by slo_counting.
create table slo_minute (
    slo      text not null,
    version  integer not null,
    day      timestamptz not null,    -- start of the day of arrival, UTC
    minute   timestamptz not null,    -- start of the minute of window_at
    good     bigint not null,
    bad      bigint not null,
    left_out bigint not null,
    missing  bigint not null
);

create index slo_minute_window on slo_minute (slo, version, minute);

-- The versions that are counted. Minutes from counted_from on are, but for slices with a mark; earlier ones, back to
-- target_from, still have to be.
create table slo_counting (
    slo          text not null,
    version      integer not null,
    counted_from timestamptz not null,
    target_from  timestamptz not null,
    primary key (slo, version)
);

-- Slices whose rows have changed since they were counted: as rollup_dirty, but counted by others, at other times.
create table slo_dirty (
    day       timestamptz not null,
    minute    timestamptz not null,
    marked_at timestamptz not null
)
with (
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_scale_factor = 0.2
);

create index slo_dirty_slice on slo_dirty (minute, day);
