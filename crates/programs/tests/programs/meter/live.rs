//! The table of `--live`.

use std::ffi::OsStr;

use crate::run::Run;

#[test]
fn without_a_terminal_there_is_no_table() {
    let run = Run::with(&[OsStr::new("--live")]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{run:?}");
    assert!(!run.stdout.contains('\x1b'), "{run:?}");
}

/// The report fits on a terminal of 80 columns and 24 lines, even with long addresses.
#[test]
fn the_report_fits_on_a_small_terminal() {
    let run = Run::with(&[]);
    assert!(run.stdout.lines().count() <= 24, "{}", run.stdout);
    let large = ["--capacity", "300", "--timeouts", "meter", "--top", "100"].map(OsStr::new);
    for run in [run, Run::with(&large)] {
        assert!(run.stdout.lines().all(|line| line.chars().count() <= 80), "{}", run.stdout);
    }
    let mut frame = capture::data::tcp6(65_000, 65_001);
    for byte in &mut frame[capture::data::IP_AT + 8..capture::data::IP_AT + 40] {
        *byte = 0xe1;
    }
    let capture = capture::data::pcap(
        capture::data::LITTLE,
        capture::data::MICROSECONDS,
        capture::data::ETHERNET,
        &[(1, 0, &frame)],
    );
    let run = Run::piped(&capture, usize::MAX, &[]);
    assert!(run.stdout.contains("]:65001 tcp"), "{}", run.stdout);
    assert!(run.stdout.lines().all(|line| line.chars().count() <= 80), "{}", run.stdout);
}

/// Runs the example in a terminal that `script` creates, with a shell command `before` it. Returns
/// `None` without `script`, after announcing it for `test`.
#[cfg(target_os = "linux")]
fn in_a_terminal(test: &str, before: &str, arguments: &str) -> Option<Run> {
    use std::process::{Command, Stdio};

    let binary = crate::run::example().to_str().expect("the build folder has a name in UTF-8");
    let mut command = Command::new("script");
    let called = format!("{before}'{binary}' {arguments}");
    command.args(["-qec", &called, "/dev/null"]).stdin(Stdio::null());
    let Ok(output) = command.output() else {
        let why = format_args!("SKIPPED: there is no program `script`, which creates terminals");
        capture::data::announce(test, why);
        return None;
    };
    let run = Run::new(output);
    assert_eq!(run.code, Some(0), "{run:?}");
    Some(run)
}

/// The terminal shows the table, which is cleared at the end.
#[test]
#[cfg(target_os = "linux")]
fn a_terminal_shows_a_table_and_keeps_the_report() {
    let size = "stty cols 120 rows 40; ";
    let arguments = "--live --top 3 --timeouts meter";
    let Some(run) = in_a_terminal("a_terminal_shows_a_table", size, arguments) else { return };
    for words in ["read per second", " % of 1,000,000", "established", "largest flows"] {
        assert!(run.stdout.contains(words), "{words}: {run:?}");
    }
    // The label of the bar has these first two words, too.
    let (_, report) = run.stdout.split_once("generated traffic (").expect("the report");
    assert!(!report.contains('\x1b') && report.contains("largest records"), "{run:?}");
}

/// Rows are not drawn over.
#[test]
#[cfg(target_os = "linux")]
fn a_terminal_that_shows_rows_has_no_bar() {
    let arguments = "--live --csv - --timeouts meter";
    let Some(run) = in_a_terminal("a_terminal_that_shows_rows", "", arguments) else { return };
    assert!(run.stdout.starts_with("src,dst,") && !run.stdout.contains('\x1b'), "{run:?}");
}
