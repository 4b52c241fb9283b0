-- Alerts: how each stands, every change of that, and who has been told. A change and what is owed to each receiver are
-- written in one transaction, under one lock, so that neither a crash nor a second instance loses or doubles one.
create table alert (
    fingerprint   uuid primary key,        -- digest of the labels
    slo           text not null,
    labels        jsonb not null,          -- never change: they are the alert's identity
    annotations   jsonb not null,          -- as of the newest evaluation while it fires
    generator_url text,
    firing        boolean not null,
    transitions   bigint not null,         -- how many there have been
    starts_at     timestamptz not null,    -- when it fired last
    ends_at       timestamptz              -- when it was resolved; null while it fires
);

-- History and outbox in one: a row is written once and never changed.
create table alert_transition (
    key           uuid primary key,        -- what a receiver tells repetitions by
    fingerprint   uuid not null,
    number        bigint not null,         -- counted from 1 for each alert
    at            timestamptz not null,
    firing        boolean not null,        -- what follows
    slo           text not null,
    labels        jsonb not null,
    annotations   jsonb not null,
    generator_url text,
    starts_at     timestamptz not null
);

create index alert_transition_at on alert_transition (at);

-- What is owed to a receiver, and what became of it.
create table alert_delivery (
    key          uuid not null,            -- alert_transition.key
    receiver     text not null,            -- kind, host and a digest of the address: never a credential
    fingerprint  uuid not null,
    number       bigint not null,          -- one alert's transitions are delivered in their order
    attempts     integer not null default 0,
    next_at      timestamptz not null,     -- not before; while somebody sends it, until when nobody else does
    delivered_at timestamptz,
    last_error   text,
    primary key (key, receiver)
);

create index alert_delivery_open on alert_delivery (receiver, next_at) where delivered_at is null;

-- Receivers that are told how alerts stand again and again, whatever changed.
create table alert_receiver (
    receiver      text primary key,
    next_at       timestamptz not null,    -- when they are told again
    attempts      integer not null,        -- failures since the last success
    claimed_until timestamptz not null     -- somebody sends until then at most
);

-- What an evaluation has to know of earlier ones.
create table alert_watch (
    slo              text primary key,
    version          integer not null,     -- of the objective: another one begins anew
    no_verdict_since timestamptz,
    client_heard_at  timestamptz,
    server_heard_at  timestamptz
);
