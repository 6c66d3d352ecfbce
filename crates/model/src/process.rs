//! Tests that need a process of their own.

use std::env;
use std::process::Command;

/// Runs the ignored tests of this test binary whose names contain `filter` in another process, and
/// checks that `count` tests have passed.
#[track_caller]
pub fn run_ignored(filter: &str, count: usize) {
    let program = env::current_exe().expect("a test binary has a path");
    let output = Command::new(program).args([filter, "--ignored"]).output();
    let output = output.expect("a test binary can be started");
    let stdout = String::from_utf8_lossy(&output.stdout);
    let expected = format!("test result: ok. {count} passed; 0 failed");
    let is_ok = output.status.success() && stdout.contains(&expected);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(is_ok, "{}, not {count} passed\n{stdout}\n{stderr}", output.status);
}
