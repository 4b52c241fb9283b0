-- Runs of load generators: how each was set up, and what came of its plan. Few rows, kept for good, so that a report can
-- still show the configuration of a run whose requests are gone.
create table run (
    id text primary key,               -- the label `run` of its records
    configuration jsonb,               -- null: never told
    configured_at timestamptz,
    finished_at timestamptz,           -- null: not finished
    planned_iterations int8,
    dropped_iterations int8,           -- of the planned ones
    planned_rate float8,               -- iterations a second
    real_rate float8
);
create index on run (finished_at);
