//! What can go wrong with the database, and what a submitter is told.

use std::time::Duration;

use sqlx::postgres::PgDatabaseError;
use thiserror::Error;

/// Why the store could not do what it was asked.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The address cannot be read.
    #[error("the database URL cannot be read: {0}; write it as postgres://user:password@host:port/database")]
    Url(#[source] sqlx::Error),
    /// The server is too old for declarative partitions that can be detached while in use.
    #[error("PostgreSQL {found} is too old: version 14 or newer is needed")]
    Version {
        /// What the server says of itself.
        found: String,
    },
    /// The server does not write through to disk, so that an acknowledgement would promise nothing.
    #[error(
        "the database server runs with fsync=off: acknowledged data would not survive a crash; set fsync=on there, or \
         accept the loss with --allow-fsync-off"
    )]
    FsyncOff,
    /// The schema could not be brought up to date.
    #[error("the database schema could not be migrated: {0}")]
    Migrate(#[from] sqlx::migrate::MigrateError),
    /// A statement failed.
    #[error("the database failed: {0}")]
    Database(#[from] sqlx::Error),
}

impl StoreError {
    /// Why there is no database to talk to, by the operating system's or our own words: never by the database's.
    pub fn cause(&self) -> String {
        match self {
            Self::Database(sqlx::Error::Io(error)) => error.to_string(),
            Self::Database(sqlx::Error::Database(database)) => {
                format!("the server refuses connections, SQLSTATE {}", database.code().unwrap_or_default())
            }
            _ => "no connection within the time allowed".to_owned(),
        }
    }

    /// Whether there is no database to talk to for now, so that the same question may be answered later. Everything
    /// else is a fault: of a statement, of what is stored, or of the schema.
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Database(error) if is_absent(error))
    }
}

/// Reads the kind of a failure, and where the server answered its SQLSTATE (PostgreSQL's manual, appendix A).
fn is_absent(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_) | sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed => true,
        sqlx::Error::Database(database) => {
            let code = database.code().unwrap_or_default();
            // Connection exception, insufficient resources such as too many connections, shutdown or start-up.
            ["08", "53", "57P0"].iter().any(|class| code.starts_with(class))
        }
        _ => false,
    }
}

/// Why a batch was not taken. Nothing of it may be acknowledged.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SubmitError {
    /// A limit is reached for now.
    #[error("{message}")]
    Overloaded {
        /// The limit, its value and the setting.
        message: String,
        /// When to try again.
        retry_after: Duration,
    },
    /// The database is unavailable, or did not answer in time.
    #[error("{message}")]
    Unavailable {
        /// What is unavailable.
        message: String,
        /// When to try again.
        retry_after: Duration,
    },
    /// The database refuses this data, now and later.
    #[error("{message}")]
    Invalid {
        /// What is wrong.
        message: String,
    },
}

/// What a failed statement says of its cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    /// No partition covers the row's time.
    MissingPartition,
    /// The data itself: it fails again however often it is tried.
    Data,
    /// The connection is gone, or was never there.
    Connection,
    /// The server is there but cannot do it now.
    Server,
}

impl Cause {
    /// Reads a failure's SQLSTATE (PostgreSQL's manual, appendix A).
    pub(super) fn of(error: &sqlx::Error) -> Self {
        let sqlx::Error::Database(database) = error else {
            return Self::Connection;
        };
        let code = database.code().unwrap_or_default();
        if code == "23514" && missing_partition(error) {
            return Self::MissingPartition;
        }
        match code.get(..2) {
            // Data exception, constraint violation, program limit exceeded.
            Some("22" | "23" | "54") => Self::Data,
            // Connection exception, operator intervention such as a shutdown.
            Some("08" | "57") => Self::Connection,
            _ => Self::Server,
        }
    }
}

/// A row without a partition shares its SQLSTATE with a failed check, but names no constraint.
fn missing_partition(error: &sqlx::Error) -> bool {
    error
        .as_database_error()
        .and_then(|database| database.try_downcast_ref::<PgDatabaseError>())
        .is_some_and(|database| database.constraint().is_none())
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;
    use std::error::Error as StdError;
    use std::fmt;
    use std::io::{Error as IoError, ErrorKind};

    use sqlx::error::{DatabaseError, ErrorKind as DatabaseErrorKind};

    use super::*;

    /// An answer of the server with this SQLSTATE.
    #[derive(Debug)]
    struct Answered(&'static str);

    impl fmt::Display for Answered {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl StdError for Answered {}

    impl DatabaseError for Answered {
        fn message(&self) -> &str {
            self.0
        }

        fn code(&self) -> Option<Cow<'_, str>> {
            Some(self.0.into())
        }

        fn as_error(&self) -> &(dyn StdError + Send + Sync + 'static) {
            self
        }

        fn as_error_mut(&mut self) -> &mut (dyn StdError + Send + Sync + 'static) {
            self
        }

        fn into_error(self: Box<Self>) -> Box<dyn StdError + Send + Sync + 'static> {
            self
        }

        fn kind(&self) -> DatabaseErrorKind {
            DatabaseErrorKind::Other
        }
    }

    #[test]
    fn only_an_absent_database_is_worth_another_try() {
        let refused = sqlx::Error::Io(IoError::from(ErrorKind::ConnectionRefused));
        for absent in [refused, sqlx::Error::PoolTimedOut, sqlx::Error::PoolClosed] {
            assert!(StoreError::from(absent).is_absent());
        }
        for fault in [sqlx::Error::RowNotFound, sqlx::Error::Decode("not a span".into())] {
            assert!(!StoreError::from(fault).is_absent());
        }
        let sqlstates = [
            ("08006", true),
            ("53300", true),
            ("57P01", true),
            ("57P03", true),
            ("57014", false),
            ("42P01", false),
            ("22003", false),
            ("28P01", false),
        ];
        for (code, absent) in sqlstates {
            let error = StoreError::from(sqlx::Error::Database(Box::new(Answered(code))));
            assert_eq!(error.is_absent(), absent, "{code}");
        }
    }
}
