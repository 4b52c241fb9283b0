-- The dictionary of label tuples. The id is a digest of the tuple, so that every instance computes the same one without
-- asking. Two tuples are kept together: what the client told (the only labels by which coverage may be filtered) and
-- all labels.
create table dimension (
    id        bigint primary key,
    last_used date not null,         -- kept to the day; tuples outlive the rows that name them, then go
    client    jsonb not null,
    labels    jsonb not null
);

-- The overflow bucket: rows whose tuple came when the dictionary was full.
insert into dimension (id, last_used, client, labels) values (0, 'infinity', '{}', '{}');
