//! Connecting to the database, and what all of the store shares.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use sqlx::Connection;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool, PgPoolOptions};

use super::arrival::Arrival;
use super::dimension::Dictionary;
use super::error::{StoreError, SubmitError};
use super::options::StoreOptions;
use super::partition;
use super::session::prepare_session;
use super::writer::Writer;
use model::UnixNanos;

/// The database. Cheap to clone.
#[derive(Clone)]
pub struct Store {
    pub(super) pool: PgPool,
    pub(super) options: Arc<StoreOptions>,
    pub(super) dictionary: Arc<Dictionary>,
    writer: Writer,
}

impl Store {
    /// Where a database is, without user and password: `host:port`.
    ///
    /// # Errors
    /// [`StoreError::Url`].
    pub fn address(url: &str) -> Result<String, StoreError> {
        let options = PgConnectOptions::from_str(url).map_err(StoreError::Url)?;
        Ok(format!("{}:{}", options.get_host(), options.get_port()))
    }

    /// Connects, checks the server, brings the schema up to date and starts the writers. Safe to run in several
    /// processes at once.
    ///
    /// # Errors
    /// All of [`StoreError`].
    pub async fn connect(url: &str, options: StoreOptions) -> Result<Self, StoreError> {
        let address = PgConnectOptions::from_str(url).map_err(StoreError::Url)?.application_name("tracejoin");
        // A pool tries until its time is up and then says that it was; the first connection says why it fails.
        PgConnection::connect_with(&address).await?.close().await?;
        let pool = PgPoolOptions::new()
            .max_connections(options.max_connections)
            .acquire_timeout(Duration::from_secs(5))
            .after_connect(|connection, _| Box::pin(prepare_session(connection)))
            .connect_with(address.clone())
            .await?;
        let mut connection = pool.acquire().await?;
        check_server(&mut connection, options.allow_fsync_off).await?;
        // sqlx takes an advisory lock around this, so that instances that start together take turns.
        sqlx::migrate!("./migrations").run(&mut *connection).await?;
        partition::ensure(&mut connection, UnixNanos::now()).await?;
        drop(connection);
        let writer = Writer::start(address, &options);
        let dictionary = Arc::new(Dictionary::new(options.max_dimension_tuples));
        Ok(Self { pool, options: Arc::new(options), dictionary, writer })
    }

    /// Takes a batch and resolves after its commit: all of it is durable, or an error says why it may not be. Waits for
    /// at most four seconds.
    ///
    /// # Errors
    /// All of [`SubmitError`]; nothing of the batch may then be acknowledged.
    pub async fn submit(&self, arrivals: Vec<Arrival>) -> Result<(), SubmitError> {
        self.writer.submit(arrivals).await
    }

    /// Whether the last commit found no database: what needs it may then be refused at once.
    pub fn is_unavailable(&self) -> bool {
        self.writer.is_unavailable()
    }

    /// Whether the database answers.
    ///
    /// # Errors
    /// [`StoreError::Database`] where it does not.
    pub async fn ping(&self) -> Result<(), StoreError> {
        self.pool.acquire().await?.ping().await?;
        Ok(())
    }

    /// The settings it was opened with.
    pub fn options(&self) -> &StoreOptions {
        &self.options
    }

    /// Closes the connections for reading and joining, once those that are in use come back.
    pub async fn close(&self) {
        self.pool.close().await;
    }
}

async fn check_server(connection: &mut PgConnection, allow_fsync_off: bool) -> Result<(), StoreError> {
    let number: String = sqlx::query_scalar("show server_version_num").fetch_one(&mut *connection).await?;
    let version: String = sqlx::query_scalar("show server_version").fetch_one(&mut *connection).await?;
    accept_version(&number, version)?;
    let fsync: String = sqlx::query_scalar("show fsync").fetch_one(&mut *connection).await?;
    accept_fsync(&fsync, allow_fsync_off)
}

/// `number` is the server's own: 140005 for 14.5.
fn accept_version(number: &str, found: String) -> Result<(), StoreError> {
    if number.parse().unwrap_or(0) < 140_000 { Err(StoreError::Version { found }) } else { Ok(()) }
}

fn accept_fsync(setting: &str, allow_off: bool) -> Result<(), StoreError> {
    if setting == "on" {
        return Ok(());
    }
    if !allow_off {
        return Err(StoreError::FsyncOff);
    }
    tracing::warn!("the database server runs with fsync=off: acknowledged data may be lost in a crash");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_does_not_write_through_is_refused_unless_allowed() {
        assert!(accept_fsync("on", false).is_ok());
        let refusal = accept_fsync("off", false).expect_err("refused");
        assert!(refusal.to_string().contains("--allow-fsync-off"), "{refusal}");
        assert!(accept_fsync("off", true).is_ok());
    }

    #[test]
    fn a_server_before_14_is_refused() {
        assert!(accept_version("140000", "14.0".to_owned()).is_ok());
        let refusal = accept_version("130014", "13.14".to_owned()).expect_err("refused");
        assert!(refusal.to_string().contains("13.14"), "{refusal}");
    }
}
