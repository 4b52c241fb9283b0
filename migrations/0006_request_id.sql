-- Event logs and joining by a request id need no new table: `arrival` has two more kinds of row, 2 for lines of an event
-- log and 3 for an alias, and a key may be the digest of a request id. Lines and aliases have an identity too.
--
-- Requests that are joined by a request id, since a proxy replaced the trace id: which trace the server's part has, and
-- by what it was found. A new nullable column takes no space in rows that have none.
alter table request add column server_trace uuid;   -- where it is not trace_id
alter table request add column request_id text;     -- what the client told
