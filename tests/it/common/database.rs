//! One PostgreSQL a test process, one fresh database a test.

use std::str::FromStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::thread;

use sqlx::ConnectOptions;
use sqlx::migrate::MigrateDatabase;
use sqlx::postgres::PgConnectOptions;
use tracejoin::private_postgres::{Options, PrivatePostgres};

use super::Folder;

/// An empty database of its own for one test. It is dropped with the value if the server is not ours; the private
/// server goes away as a whole.
pub struct TestDatabase {
    pub url: String,
    is_foreign: bool,
}

struct TestServer {
    url: String,
    is_foreign: bool,
    _folder: Option<Folder>,
}

/// Makes a database on the server of `TEST_DATABASE_URL`, or else on a private one that all tests of this process share
/// and that ends with it.
pub async fn test_database() -> TestDatabase {
    static SERVER: OnceLock<TestServer> = OnceLock::new();
    static COUNTER: AtomicU32 = AtomicU32::new(0);
    let server = tokio::task::spawn_blocking(|| SERVER.get_or_init(TestServer::start)).await.expect("a server");

    let number = COUNTER.fetch_add(1, Ordering::Relaxed);
    let name = format!("tracejoin_test_{}_{number}", std::process::id());
    let options = PgConnectOptions::from_str(&server.url).expect("a PostgreSQL URL").database(&name);
    let url = options.to_url_lossy().to_string();
    // A process of an earlier day may have had our number and been killed.
    sqlx::Postgres::drop_database(&url).await.expect("no old database");
    sqlx::Postgres::create_database(&url).await.expect("a new database");
    TestDatabase { url, is_foreign: server.is_foreign }
}

impl TestServer {
    fn start() -> Self {
        match std::env::var("TEST_DATABASE_URL") {
            Ok(url) => Self { url, is_foreign: true, _folder: None },
            Err(_) => Self::start_private(),
        }
    }

    /// The server is watched from a thread with a runtime of its own, since the runtime of a test ends with the test.
    fn start_private() -> Self {
        let folder = Folder::new();
        let path = folder.path().to_owned();
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async move {
                let postgres = PrivatePostgres::start(&path, Options::default()).await.expect("a private PostgreSQL");
                sender.send(postgres.url()).expect("someone waits for it");
                std::future::pending::<()>().await;
            });
        });
        let url = receiver.recv().expect("the thread above sends it");
        Self { url, is_foreign: false, _folder: Some(folder) }
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        if !self.is_foreign {
            return;
        }
        let url = std::mem::take(&mut self.url);
        // A runtime cannot be entered from within the test's own, so the database is dropped from another thread.
        let dropping = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(async { sqlx::Postgres::force_drop_database(&url).await })
        });
        if !matches!(dropping.join(), Ok(Ok(()))) {
            eprintln!("a test database was left behind");
        }
    }
}
