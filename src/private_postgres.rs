//! A private PostgreSQL for those who have none: found, started, watched, stopped.
//!
//! It is the system's PostgreSQL on a cluster of its own below the data folder, reached through a unix socket that only
//! its account and we may open. Root lends it an unprivileged account, since PostgreSQL refuses to run as root.

mod account;
mod binaries;
mod cluster;
mod error;
mod left_over;
mod lock;
mod pid_file;
mod server;
mod settings;
mod socket_folder;

use std::path::{Path, PathBuf};

use sqlx::ConnectOptions;
use sqlx::migrate::MigrateDatabase;
use sqlx::postgres::{PgConnectOptions, PgSslMode};
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use self::account::Account;
use self::binaries::Binaries;
use self::cluster::{Layout, ROLE};
pub use self::error::PrivatePostgresError;
use self::lock::FolderLock;
use self::server::Server;

/// Where root's data goes if the server's account cannot reach the default folder (in root's home, say).
const SYSTEM_DATA_DIR: &str = "/var/lib/tracejoin";

/// Our database in the private server.
const DATABASE: &str = "tracejoin";

/// What the user said about the private PostgreSQL.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Folder with `postgres` and `initdb` (or the path of `postgres` itself); without it they are looked up.
    pub postgres_bin: Option<PathBuf>,
    /// The data folder is the default, not the user's choice, so it may be moved to where the server can reach it.
    pub default_data_dir: bool,
}

/// A running private PostgreSQL. If it dies it is started again. Dropping the value asks it to stop; [`stop`] also
/// waits until it has.
///
/// [`stop`]: PrivatePostgres::stop
#[derive(Debug)]
pub struct PrivatePostgres {
    url: String,
    data_dir: PathBuf,
    stop: DropGuard,
    supervisor: JoinHandle<()>,
}

impl PrivatePostgres {
    /// Starts the server of `data_dir`, making it on first use, and returns once it accepts connections and has our
    /// database. A server left over from a killed run is stopped first.
    ///
    /// # Errors
    /// When there are no fitting binaries, another process holds the folder, the server's account cannot reach it, or
    /// PostgreSQL itself gives up; each message says what to do.
    pub async fn start(data_dir: &Path, options: Options) -> Result<Self, PrivatePostgresError> {
        let candidates = Binaries::find(options.postgres_bin.as_deref()).await?;
        let data_dir = std::path::absolute(data_dir).map_err(PrivatePostgresError::io("cannot find", data_dir))?;
        let (root, account) = place(data_dir, options.default_data_dir, &candidates).await?;
        let layout = Layout::of(&cluster::make_root(&root, &account)?);
        let lock = FolderLock::take(&layout.root)?;
        let binaries = Binaries::matching(&candidates, &layout.cluster)?;
        // Asked again, now of the folder itself and these binaries: a strict mask may have closed a parent just made.
        if !account.can_reach(&layout.root, &binaries.postgres).await? {
            return Err(PrivatePostgresError::Unreachable { account: account.name, folder: layout.root });
        }
        if binaries::cluster_version(&layout.cluster)?.is_none() {
            cluster::initialise(&layout, &account, &binaries).await?;
        }
        let socket = socket_folder::make(&account)?;
        let url = url(socket.path());
        let data_dir = layout.root.clone();
        let server = Server { layout, account, binaries, socket, _lock: lock };
        let process = server.start().await?;
        if let Err(error) = make_database(&url).await {
            process.stop().await;
            return Err(PrivatePostgresError::Connect(error));
        }
        tracing::info!(folder = %data_dir.display(), "the private PostgreSQL is ready");
        let stop = CancellationToken::new();
        let supervisor = tokio::spawn(server.supervise(process, stop.clone()));
        Ok(Self { url, data_dir, stop: stop.drop_guard(), supervisor })
    }

    /// Of our database, over the unix socket; the same for as long as this value lives.
    pub fn url(&self) -> String {
        self.url.clone()
    }

    /// The data folder in use: the one asked for, or where the default was moved to.
    pub fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    /// Stops the server and waits until it has written everything and ended.
    pub async fn stop(self) {
        drop(self.stop);
        if let Err(error) = self.supervisor.await {
            tracing::error!(%error, "the task that watches the private PostgreSQL failed");
        }
    }
}

/// The data folder and the account that the server will use there.
async fn place(
    wanted: PathBuf,
    may_move: bool,
    candidates: &[Binaries],
) -> Result<(PathBuf, Account), PrivatePostgresError> {
    let program = &candidates.first().ok_or(PrivatePostgresError::NotInstalled)?.postgres;
    let account = Account::of_cluster(&Layout::of(&wanted).cluster)?;
    if account.can_reach(&wanted, program).await? {
        return Ok((wanted, account));
    }
    if !may_move {
        return Err(PrivatePostgresError::Unreachable { account: account.name, folder: wanted });
    }
    tracing::warn!(
        from = %wanted.display(),
        to = SYSTEM_DATA_DIR,
        account = account.name,
        "the account of PostgreSQL cannot reach the default data folder; using another"
    );
    let moved = PathBuf::from(SYSTEM_DATA_DIR);
    let account = Account::of_cluster(&Layout::of(&moved).cluster)?;
    Ok((moved, account))
}

fn url(socket: &Path) -> String {
    let options = PgConnectOptions::new_without_pgpass()
        .socket(socket)
        .port(settings::PORT)
        .username(ROLE)
        .database(DATABASE)
        .ssl_mode(PgSslMode::Disable);
    options.to_url_lossy().to_string()
}

async fn make_database(url: &str) -> Result<(), sqlx::Error> {
    if sqlx::Postgres::database_exists(url).await? {
        return Ok(());
    }
    sqlx::Postgres::create_database(url).await
}
