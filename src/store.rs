//! All the SQL: pool, migrations, group commit, partitions, retention, queries.
