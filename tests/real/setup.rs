//! What every test does first.

use std::path::PathBuf;
use std::process::Command;

use tokio::sync::{Mutex, MutexGuard};

static TURN: Mutex<()> = Mutex::const_new(());

/// Held by the one test that may run.
pub struct Turn(#[expect(dead_code, reason = "held, never read")] MutexGuard<'static, ()>);

/// Waits until no other test runs, and has the real parts prepared.
pub async fn take_turn() -> Turn {
    let turn = TURN.lock().await;
    // Refused where another test of this process has installed it already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let script = source("tests/real/setup");
    let status = Command::new(script).arg(prepared("")).status().expect("tests/real/setup runs");
    assert!(status.success(), "tests/real/setup failed: it says above what is missing");
    Turn(turn)
}

/// A path in the folder that `tests/real/setup` fills.
pub fn prepared(path: &str) -> PathBuf {
    let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("..");
    target.join("real").join(path)
}

/// A path in the repository.
pub fn source(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The first of these programs that is there.
pub fn program(names: &[&str]) -> PathBuf {
    let path = std::env::var_os("PATH").expect("a PATH");
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let places = names.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    let found = places.into_iter().find(|place| place.is_file());
    found.unwrap_or_else(|| panic!("none of {names:?} is on PATH: run scripts/setup tests, or install it"))
}
