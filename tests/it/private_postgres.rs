//! The private PostgreSQL against the machine's real binaries.

use std::fs;
use std::path::Path;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use sqlx::{Connection, PgConnection};
use tracejoin::private_postgres::{Options, PrivatePostgres};

use super::common::{Folder, test_database};

async fn start(folder: &Path) -> PrivatePostgres {
    PrivatePostgres::start(folder, Options::default()).await.expect("a private PostgreSQL")
}

async fn ask(url: &str, question: &'static str) -> Result<String, sqlx::Error> {
    let mut connection = PgConnection::connect(url).await?;
    sqlx::query_scalar(question).fetch_one(&mut connection).await
}

async fn run(url: &str, statement: &'static str) {
    let mut connection = PgConnection::connect(url).await.expect("connected");
    sqlx::query(statement).execute(&mut connection).await.expect("executed");
}

fn postmaster(folder: &Path) -> Option<Pid> {
    let text = fs::read_to_string(folder.join("postgres/postmaster.pid")).ok()?;
    text.lines().next()?.parse().ok().map(Pid::from_raw)
}

#[tokio::test]
async fn starts_durable_and_keeps_its_data_over_a_restart() {
    let folder = Folder::new();
    let postgres = start(folder.path()).await;
    for setting in ["show fsync", "show full_page_writes", "show synchronous_commit"] {
        assert_eq!(ask(&postgres.url(), setting).await.expect(setting), "on", "{setting}");
    }
    assert_eq!(ask(&postgres.url(), "show listen_addresses").await.expect("answered"), "");
    assert_eq!(ask(&postgres.url(), "select current_database()::text").await.expect("answered"), "tracejoin");
    run(&postgres.url(), "create table kept (name text)").await;
    run(&postgres.url(), "insert into kept values ('still here')").await;
    let url = postgres.url();
    postgres.stop().await;
    assert_eq!(postmaster(folder.path()), None, "stopped in order");
    assert!(ask(&url, "select name from kept").await.is_err(), "nothing listens any more");

    let postgres = start(folder.path()).await;
    assert_eq!(ask(&postgres.url(), "select name from kept").await.expect("answered"), "still here");
    postgres.stop().await;
}

#[tokio::test]
async fn a_second_process_is_told_who_holds_the_folder() {
    let folder = Folder::new();
    let first = start(folder.path()).await;
    let second = PrivatePostgres::start(folder.path(), Options::default()).await;
    let message = second.expect_err("the folder is taken").to_string();
    assert!(message.contains(&format!("process {} on host ", std::process::id())), "{message}");
    assert_eq!(ask(&first.url(), "select 'unharmed'").await.expect("answered"), "unharmed");
    first.stop().await;
}

#[tokio::test]
async fn a_server_that_dies_is_started_again() {
    let folder = Folder::new();
    let postgres = start(folder.path()).await;
    run(&postgres.url(), "create table kept as select 'committed'::text as name").await;
    let killed = postmaster(folder.path()).expect("it runs");
    kill(killed, Signal::SIGKILL).expect("killed");

    let answer = loop {
        match ask(&postgres.url(), "select name from kept").await {
            Ok(answer) if postmaster(folder.path()) != Some(killed) => break answer,
            _ => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    };
    assert_eq!(answer, "committed");
    postgres.stop().await;
}

#[tokio::test]
async fn every_test_database_is_empty_and_separate() {
    let (one, other) = (test_database().await, test_database().await);
    run(&one.url, "create table mine (id int)").await;
    let count = "select count(*)::text from pg_tables where tablename = 'mine'";
    assert_eq!(ask(&one.url, count).await.expect("answered"), "1");
    assert_eq!(ask(&other.url, count).await.expect("answered"), "0");
}
