//! The PostgreSQL under test: a private one, made by the program's own code, with a new database for every run.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::str::FromStr;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use model::State;
use sqlx::migrate::MigrateDatabase;
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Connection, PgConnection};
use tempfile::TempDir;
use tracejoin::private_postgres::{Options, PrivatePostgres};

use super::cpu;

/// How long joining may take after the last acknowledgement.
const PATIENCE: Duration = Duration::from_secs(600);

pub struct Postgres {
    server: PrivatePostgres,
    _folder: TempDir,
}

impl Postgres {
    pub async fn start() -> anyhow::Result<Self> {
        // Its account, which is not root, has to pass through the folder.
        let open = Permissions::from_mode(0o755);
        let folder = tempfile::Builder::new().prefix("tracejoin-bench-").permissions(open).tempdir()?;
        let server = PrivatePostgres::start(folder.path(), Options::default()).await?;
        Ok(Self { server, _folder: folder })
    }

    /// An empty database, and nothing left to write from those before it.
    pub async fn database(&self, name: &str) -> anyhow::Result<Database> {
        let options = PgConnectOptions::from_str(&self.server.url())?.database(name);
        let url = options.to_url_lossy().to_string();
        sqlx::Postgres::create_database(&url).await?;
        let mut connection = PgConnection::connect_with(&options).await?;
        sqlx::query("checkpoint").execute(&mut connection).await?;
        Ok(Database { url, connection })
    }

    pub async fn stop(self) {
        self.server.stop().await;
    }
}

pub struct Database {
    pub url: String,
    pub connection: PgConnection,
}

/// What the database holds after a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stored {
    pub rows: u64,
    pub traces: u64,
    pub matched: u64,
    pub arrivals: u64,
    /// Of arrivals and requests with their indexes.
    pub bytes: u64,
}

impl Database {
    /// The process that all others of the database server come from.
    pub async fn postmaster(&mut self) -> anyhow::Result<u32> {
        let own: i32 = sqlx::query_scalar("select pg_backend_pid()").fetch_one(&mut self.connection).await?;
        cpu::parent(own.unsigned_abs())
    }

    /// Waits until no trace is left to be joined that was acknowledged by now; returns when that was. Traces that had
    /// waited for one of their sides stay queued until their join deadline, though they were joined long before.
    pub async fn joined(&mut self, settle: Duration) -> anyhow::Result<Instant> {
        let begun = Instant::now();
        let last_due = chrono::Utc::now() + settle;
        while begun.elapsed() < PATIENCE {
            let query = sqlx::query_scalar("select exists (select from join_queue where due_at <= $1)").bind(last_due);
            let waiting: bool = query.fetch_one(&mut self.connection).await?;
            if !waiting {
                return Ok(Instant::now());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        bail!("traces were left to be joined after {} s", PATIENCE.as_secs())
    }

    pub async fn stored(&mut self) -> anyhow::Result<Stored> {
        let counts = "select count(*), count(distinct trace_id), count(*) filter (where state = $1) from request";
        let query = sqlx::query_as(counts).bind(State::Matched as i16);
        let (rows, traces, matched): (i64, i64, i64) = query.fetch_one(&mut self.connection).await?;
        let arrivals: i64 = sqlx::query_scalar("select count(*) from arrival").fetch_one(&mut self.connection).await?;
        let sizes = "select sum(pg_total_relation_size(relid))::int8 from unnest(array['arrival', 'request']) as name
             cross join lateral pg_partition_tree(name::regclass)";
        let bytes: i64 = sqlx::query_scalar(sizes).fetch_one(&mut self.connection).await?;
        Ok(Stored {
            rows: rows.unsigned_abs(),
            traces: traces.unsigned_abs(),
            matched: matched.unsigned_abs(),
            arrivals: arrivals.unsigned_abs(),
            bytes: bytes.unsigned_abs(),
        })
    }

    /// Gives the disk space back.
    pub async fn drop(self) -> anyhow::Result<()> {
        self.connection.close().await?;
        sqlx::Postgres::force_drop_database(&self.url).await.context("cannot drop a database of the bench")
    }
}
