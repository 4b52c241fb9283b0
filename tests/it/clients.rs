//! The client libraries, each by its own tests.

use std::path::Path;
use std::process::Command;

/// With the standard library alone; `tests/real` runs them with the HTTP libraries too.
#[test]
fn the_python_client_needs_nothing_but_python() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/python");
    let output = Command::new("python3")
        .args(["-B", "-W", "error", "-m", "unittest", "discover", "-s", "tests", "-t", "."])
        .current_dir(folder)
        .output()
        .expect("python3 is installed");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    let ran = told.lines().find_map(|line| line.strip_prefix("Ran ")?.split(" ").next()?.parse::<u32>().ok());
    assert!(ran.is_some_and(|ran| ran > 30), "{told}");
}
