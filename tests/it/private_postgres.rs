//! The private PostgreSQL against the machine's real binaries.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, Uid, User};
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

fn is_ready(folder: &Path, pid: Pid) -> bool {
    let text = fs::read_to_string(folder.join("postgres/postmaster.pid")).unwrap_or_default();
    postmaster(folder) == Some(pid) && text.lines().nth(7).is_some_and(|status| status.trim() == "ready")
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

/// A server as a tracejoin that was killed leaves it: running, with nobody who would stop it.
fn leave_running(folder: &Path, command_line: &[u8], socket: &Path) -> Child {
    let arguments: Vec<&OsStr> = command_line.split(|byte| *byte == 0).map(OsStr::from_bytes).collect();
    let socket_flag = arguments.iter().position(|argument| *argument == "-k").expect("it names its socket's folder");
    let mut command = Command::new(arguments[0]);
    command.args(&arguments[1..=socket_flag]).arg(socket).args(&arguments[socket_flag + 2..arguments.len() - 1]);
    let cluster = fs::metadata(folder.join("postgres")).expect("a cluster");
    chown(socket, Some(cluster.uid()), Some(cluster.gid())).expect("given to the server's account");
    if Uid::effective().is_root() {
        command.uid(cluster.uid()).gid(cluster.gid());
    }
    command.current_dir(folder.join("postgres")).stderr(Stdio::null()).spawn().expect("a server")
}

#[tokio::test]
async fn a_server_left_running_makes_way_for_the_next() {
    let folder = Folder::new();
    let first = start(folder.path()).await;
    run(&first.url(), "create table kept as select 'committed'::text as name").await;
    let postmaster_pid = postmaster(folder.path()).expect("it runs");
    let command_line = fs::read(format!("/proc/{postmaster_pid}/cmdline")).expect("its command line");
    first.stop().await;

    let socket = tempfile::Builder::new().prefix("tracejoin-").tempdir_in("/tmp").expect("a folder").keep();
    let mut left_over = leave_running(folder.path(), &command_line, &socket);
    let left_over_pid = Pid::from_raw(left_over.id().try_into().expect("a process id"));
    while !is_ready(folder.path(), left_over_pid) {
        assert_eq!(left_over.try_wait().expect("a child"), None, "it runs until it is ready");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }

    let second = start(folder.path()).await;
    assert!(left_over.wait().expect("it ended").success(), "the left-over server was stopped in order");
    assert!(!socket.exists(), "its socket's folder is gone");
    assert_ne!(postmaster(folder.path()), Some(left_over_pid));
    assert_eq!(ask(&second.url(), "select name from kept").await.expect("answered"), "committed");
    second.stop().await;
}

#[tokio::test]
async fn a_stale_pid_file_with_the_number_of_a_live_process_is_no_obstacle() {
    let folder = Folder::new();
    start(folder.path()).await.stop().await;
    let stale = format!("{}\n{}\n", std::process::id(), folder.path().join("postgres").display());
    fs::write(folder.path().join("postgres/postmaster.pid"), stale).expect("written");

    let postgres = start(folder.path()).await;
    assert_eq!(ask(&postgres.url(), "select 'up'").await.expect("answered"), "up");
    postgres.stop().await;
}

#[tokio::test]
async fn only_the_owner_reaches_the_socket() {
    let folder = Folder::new();
    let postgres = start(folder.path()).await;
    let pid_file = fs::read_to_string(folder.path().join("postgres/postmaster.pid")).expect("it runs");
    let socket = Path::new(pid_file.lines().nth(4).expect("the socket's folder"));
    let (socket, cluster) =
        (fs::metadata(socket).expect("exists"), fs::metadata(folder.path().join("postgres")).expect("exists"));
    assert_eq!(socket.mode() & 0o777, 0o700);
    assert_eq!(socket.uid(), cluster.uid());
    let as_nobody_known = postgres.url().replace("tracejoin@", "postgres@");
    assert!(ask(&as_nobody_known, "select 'in'").await.is_err(), "no role but our own");
    postgres.stop().await;
}

#[tokio::test]
async fn the_server_has_none_of_root_s_rights() {
    let folder = Folder::new();
    let postgres = start(folder.path()).await;
    let pid = postmaster(folder.path()).expect("it runs");
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("its status");
    let field = |name: &str| -> Vec<u32> {
        let text = status.lines().find_map(|line| line.strip_prefix(name)).expect(name);
        text.split_whitespace().map(|id| id.parse().expect("an id")).collect()
    };
    assert!(!field("Uid:").contains(&0) && !field("Gid:").contains(&0), "{status}");
    if Uid::effective().is_root() {
        assert!(field("Groups:").iter().all(|group| field("Gid:").contains(group)), "{status}");
    }
    postgres.stop().await;
}

/// Runs another test of this file as `nobody`; started by an ordinary user, all of them run so anyway.
#[tokio::test]
async fn an_ordinary_user_needs_no_help_from_root() {
    if !Uid::effective().is_root() {
        return;
    }
    let nobody = User::from_name("nobody").expect("a user database").expect("an account nobody");
    let folder = Folder::new();
    let program = folder.path().join("tests");
    fs::copy(std::env::current_exe().expect("this program"), &program).expect("copied to where nobody can read");
    let output = Command::new(program)
        .args(["--exact", "private_postgres::starts_durable_and_keeps_its_data_over_a_restart"])
        .uid(nobody.uid.as_raw())
        .gid(nobody.gid.as_raw())
        .current_dir("/tmp")
        .env_remove("XDG_RUNTIME_DIR")
        .env_remove("TMPDIR")
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

async fn refusal(folder: &Path, options: Options) -> String {
    PrivatePostgres::start(folder, options).await.expect_err("it must not start").to_string()
}

#[tokio::test]
async fn a_wrong_folder_of_binaries_is_named() {
    let folder = Folder::new();
    let options = Options { postgres_bin: Some("/nowhere".into()), ..Options::default() };
    let message = refusal(folder.path(), options).await;
    assert!(message.starts_with("--postgres-bin /nowhere: no `postgres` in it"), "{message}");
}

#[tokio::test]
async fn a_cluster_of_another_version_names_the_package_it_needs() {
    let folder = Folder::new();
    let cluster = folder.path().join("postgres");
    fs::create_dir(&cluster).expect("made");
    fs::write(cluster.join("PG_VERSION"), "9\n").expect("written");
    if Uid::effective().is_root() {
        let nobody = User::from_name("nobody").expect("a user database").expect("an account nobody");
        chown(&cluster, Some(nobody.uid.as_raw()), Some(nobody.gid.as_raw())).expect("given away");
    }
    let message = refusal(folder.path(), Options::default()).await;
    assert!(message.contains("written by PostgreSQL 9,"), "{message}");
    assert!(message.contains("`postgresql-9`"), "{message}");
}

/// Only root has folders that the server's account cannot reach.
#[tokio::test]
async fn a_folder_out_of_the_account_s_reach_is_refused() {
    if !Uid::effective().is_root() {
        return;
    }
    let mode = fs::Permissions::from_mode(0o700);
    let private = tempfile::Builder::new().permissions(mode).tempdir().expect("a private folder");
    let message = refusal(&private.path().join("data"), Options::default()).await;
    assert!(message.contains("cannot reach") && message.contains("--data-dir"), "{message}");
    assert!(!private.path().join("data").exists(), "nothing was made there");
}
