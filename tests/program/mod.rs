//! The example `flow_cache` as a program: where its binary is, whether it is fit to be tested, and
//! what a run of it left.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, SystemTime};

/// The example, which `cargo test` builds next to this test; not one that was left from another day.
pub(crate) fn example() -> &'static Path {
    static EXAMPLE: LazyLock<Result<PathBuf, String>> = LazyLock::new(find_example);
    EXAMPLE.as_deref().unwrap_or_else(|why| panic!("{why}"))
}

fn find_example() -> Result<PathBuf, String> {
    let test = std::env::current_exe().expect("the test is a file");
    let profile = test.ancestors().nth(2).expect("it is in target/<profile>/deps");
    let example =
        profile.join("examples").join(format!("flow_cache{}", std::env::consts::EXE_SUFFIX));
    let Some(why) = staleness(&example) else { return Ok(example) };
    let flags = match profile.file_name().unwrap_or_default().to_string_lossy().as_ref() {
        "debug" => String::new(),
        "release" => " --release".to_owned(),
        other => format!(" --profile {other}"),
    };
    Err(format!(
        "{} {why}: run `cargo build --example flow_cache{flags}`, with the --target and the \
         features of this test if it has any",
        example.display()
    ))
}

/// What is wrong with the age of this binary, if anything. Its sources are those that Cargo listed
/// next to it: to touch another file of the folders, such as one behind a feature, rebuilds nothing.
fn staleness(binary: &Path) -> Option<String> {
    let modified = |path: &Path| fs::metadata(path).and_then(|about| about.modified()).ok();
    let Some(built) = modified(binary) else { return Some("is missing".to_owned()) };
    let Ok(list) = fs::read_to_string(binary.with_extension("d")) else {
        return Some("has no list of its sources".to_owned());
    };
    let sources = listed_sources(&list);
    if sources.is_empty() {
        return Some("has an empty list of its sources".to_owned());
    }
    sources.iter().find_map(|source| match modified(source) {
        None => Some(format!("is stale: {} is gone", source.display())),
        Some(time) if time > built => Some(format!("is older than {}", source.display())),
        Some(_) => None,
    })
}

/// The paths behind the first colon and space of a rule for make, where a space in a path has a
/// backslash in front.
fn listed_sources(rule: &str) -> Vec<PathBuf> {
    let Some((_, sources)) = rule.split_once(": ") else { return vec![] };
    let sources = sources.lines().next().unwrap_or_default().replace("\\ ", "\0");
    sources.split_whitespace().map(|source| source.replace('\0', " ").into()).collect()
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
    let says = |words| staleness(&binary).is_some_and(|why| why.contains(words));
    for path in [&binary, &source, &binary.with_extension("d")] {
        let _ = fs::remove_file(path);
    }
    assert!(says("is missing"));
    set_seconds(&binary, 1000);
    assert!(says("no list"));
    fs::write(binary.with_extension("d"), rule).expect("it can be written");
    assert!(says("is gone"));
    set_seconds(&source, 1000);
    assert_eq!(staleness(&binary), None);
    set_seconds(&source, 1001);
    assert!(says("is older than") && says("source.rs"));
}

/// What a run of the example left.
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

    /// Runs it on these bytes through a pipe, in pieces of so many bytes.
    pub(crate) fn piped(capture: &[u8], piece: usize, arguments: &[&str]) -> Self {
        let mut command = Command::new(example());
        command.arg("-").args(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the example can be run");
        let mut pipe = child.stdin.take().expect("it was asked for");
        let capture = capture.to_vec();
        let writer = std::thread::spawn(move || {
            for piece in capture.chunks(piece) {
                // A reader that has seen enough closes the pipe: not this test's business.
                if pipe.write_all(piece).is_err() {
                    return;
                }
            }
        });
        let output = child.wait_with_output().expect("the example ends");
        writer.join().expect("writing does not panic");
        Self::new(output)
    }

    /// The rows for a capture, sorted; the run must have gone well.
    pub(crate) fn rows_of(capture: &[u8]) -> Vec<String> {
        let run = Self::piped(capture, usize::MAX, &["--csv", "-"]);
        assert_eq!((run.code, run.errors()), (Some(0), vec![]), "{run:?}");
        run.rows()
    }

    /// The rows, sorted, behind the header.
    pub(crate) fn rows(&self) -> Vec<String> {
        let mut lines = self.stdout.lines().map(str::to_owned);
        let header = lines.next();
        assert_eq!(
            header.as_deref(),
            Some("src,dst,proto,sport,dport,packets,ip_bytes,first_ns,last_ns"),
            "{self:?}"
        );
        let mut rows: Vec<String> = lines.collect();
        rows.sort();
        rows
    }

    /// The lines of standard error that are not the report's.
    pub(crate) fn errors(&self) -> Vec<&str> {
        self.stderr.lines().filter(|line| line.starts_with("flow_cache: ")).collect()
    }

    /// The number that the report has in front of these words.
    pub(crate) fn count(&self, words: &str) -> u64 {
        let mut lines = self.stdout.lines().chain(self.stderr.lines());
        let line = lines.find(|line| line.contains(words));
        let line = line.unwrap_or_else(|| panic!("no line about {words:?} in {self:?}"));
        let number = line.split_whitespace().next().expect("a line with words has a first");
        number.parse().unwrap_or_else(|_| panic!("{line:?} begins with no number"))
    }

    /// Whether it ended as it may end on any input at all.
    pub(crate) fn is_sane(&self) -> bool {
        matches!(self.code, Some(0 | 2)) && !self.stderr.contains("panicked")
    }
}
