//! Runs of the example `flow_cache` and their output.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, SystemTime};

use crate::binary;

/// Returns the path of the example.
pub(crate) fn example() -> &'static Path {
    static EXAMPLE: LazyLock<Result<PathBuf, String>> =
        LazyLock::new(|| binary::of_example("flow_cache"));
    EXAMPLE.as_deref().unwrap_or_else(|why| panic!("{why}"))
}

#[test]
fn an_old_binary_is_not_tested() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("an old binary");
    fs::create_dir_all(&folder).expect("the build folder can be written");
    let (binary, source) = (folder.join("binary"), folder.join("source.rs"));
    let escaped = |path: &Path| path.display().to_string().replace(' ', "\\ ");
    let rule = format!("{}: {} {}\n", escaped(&binary), escaped(&source), escaped(&source));
    let set_seconds = |path: &Path, seconds| {
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        File::create(path).and_then(|file| file.set_modified(time)).expect("it can be written");
    };
    let is_stale_since = |words| binary::staleness(&binary).is_some_and(|why| why.contains(words));
    for path in [&binary, &source, &binary.with_extension("d")] {
        let _ = fs::remove_file(path);
    }
    assert!(is_stale_since("is missing"));
    set_seconds(&binary, 1000);
    assert!(is_stale_since("no list"));
    fs::write(binary.with_extension("d"), rule).expect("it can be written");
    assert!(is_stale_since("is gone"));
    set_seconds(&source, 1000);
    assert_eq!(binary::staleness(&binary), None);
    set_seconds(&source, 1001);
    assert!(is_stale_since("is older than") && is_stale_since("source.rs"));
}

/// The columns of CSV.
pub(crate) const HEADER: &str = "src,dst,proto,sport,dport,packets,ip_bytes,first_ns,last_ns,\
                                 tcp_flags,icmp_type,icmp_code,end_reason,flow_id";

/// The output of a run.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Run {
    pub(crate) fn new(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("the example prints UTF-8");
        Self {
            code: output.status.code(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }

    pub(crate) fn with(arguments: &[&OsStr]) -> Self {
        let mut command = Command::new(example());
        command.args(arguments).stdin(Stdio::null());
        Self::new(command.output().expect("the example can be run"))
    }

    /// Runs it on these bytes through a pipe, in pieces of `piece` bytes.
    pub(crate) fn piped(capture: &[u8], piece: usize, arguments: &[&str]) -> Self {
        let mut command = Command::new(example());
        command.arg("-").args(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the example can be run");
        let mut pipe = child.stdin.take().expect("it is piped");
        let capture = capture.to_vec();
        let writer = std::thread::spawn(move || {
            for piece in capture.chunks(piece) {
                // The example may close the pipe early.
                if pipe.write_all(piece).is_err() {
                    return;
                }
            }
        });
        let output = child.wait_with_output().expect("the example ends");
        writer.join().expect("writing does not panic");
        Self::new(output)
    }

    /// Returns the sorted rows for a capture, after a successful run.
    pub(crate) fn rows_of(capture: &[u8]) -> Vec<String> {
        let run = Self::piped(capture, usize::MAX, &["--csv", "-"]);
        assert_eq!((run.code, run.errors()), (Some(0), vec![]), "{run:?}");
        run.rows()
    }

    /// Returns the first nine columns of the rows after the header, sorted.
    pub(crate) fn rows(&self) -> Vec<String> {
        let mut lines = self.stdout.lines();
        assert_eq!(lines.next(), Some(HEADER), "{self:?}");
        let counts = |row: &str| row.split(',').take(9).collect::<Vec<_>>().join(",");
        let mut rows: Vec<String> = lines.map(counts).collect();
        rows.sort();
        rows
    }

    /// Returns the lines of standard error that are not part of the report.
    pub(crate) fn errors(&self) -> Vec<&str> {
        self.stderr.lines().filter(|line| line.starts_with("flow_cache: ")).collect()
    }

    /// Returns the number right before these words, or their singular, in the report.
    pub(crate) fn count(&self, words: &str) -> u64 {
        let lines = self.stdout.lines().chain(self.stderr.lines());
        let plurals = [
            ("flows, each", "flow,"),
            ("flows", "flow"),
            ("fragments", "fragment"),
            ("packets", "packet"),
            ("places", "place"),
            ("records", "record"),
            ("were", "was"),
        ];
        let one =
            plurals.iter().fold(words.to_owned(), |words, (many, one)| words.replace(many, one));
        let before = |line: &str| {
            let split = |words| line.split_once(&format!(" {words}"));
            let (before, _) = split(words).or_else(|| split(&one))?;
            before.rsplit(' ').next()?.parse().ok()
        };
        let mut numbers = lines.filter_map(before);
        numbers.next().unwrap_or_else(|| panic!("no number before {words:?} in {self:?}"))
    }

    /// Asserts that it wrote one line on standard error, which contains `words`, no results, and
    /// exited with 2.
    pub(crate) fn assert_refused(&self, words: &str) {
        assert_eq!((self.code, self.stdout.as_str()), (Some(2), ""), "{self:?}");
        assert_eq!((self.stderr.lines().count(), self.errors().len()), (1, 1), "{self:?}");
        assert!(self.stderr.contains(words), "{words}: {self:?}");
    }

    /// Returns whether it ended as it may for any input.
    pub(crate) fn is_sane(&self) -> bool {
        matches!(self.code, Some(0 | 2)) && !self.stderr.contains("panicked")
    }
}
