-- Objectives, with everything that they ever were. A change is a new version and nothing is updated in place, so a verdict
-- or an alert of the past can still be read beside what it was judged by. There are few of them, and few changes.
create table objective (
    id text not null,
    version int4 not null,             -- from 1, without gaps, also across a deletion
    budget text,                       -- the id of the budget of which it is the whole or a part
    document jsonb,                    -- as the objectives' own code writes it; null: deleted
    changed_at timestamptz not null,
    changed_by text not null,
    primary key (id, version)
);
