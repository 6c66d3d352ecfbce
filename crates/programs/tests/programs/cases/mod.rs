//! Inputs of public bug reports, and the right result of each.
//!
//! The inputs are in the data folder, `cases/<number>-<name>/` (see `capture::data`); without it
//! these tests are skipped. A case is a row of one of the tables below: a run of an example, and
//! what its output must have.

mod files;
mod headers;
mod meter;

use std::ffi::OsStr;
use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use capture::data;

use crate::binary;
use crate::run::Run;

/// A search that is not linear takes minutes to hours. All runs take seconds, on a busy computer.
const ENDLESS: Duration = Duration::from_secs(120);

/// A run of an example on an input of the case folder, and its right result.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// The number of the folder, such as `03b`.
    folder: &'static str,
    /// The input, which is the first argument.
    file: &'static str,
    /// The arguments of the script `make.py` that writes the input; `None` if the folder has it.
    made_by: Option<&'static [&'static str]>,
    example: &'static str,
    /// Arguments after the input.
    options: &'static [&'static str],
    code: i32,
    /// Number of packets in the report of `flow_cache`.
    packets: Option<RangeInclusive<u64>>,
    /// Other numbers in its report, before these words.
    counts: &'static [(&'static str, RangeInclusive<u64>)],
    /// All flows of `flow_cache`, in the order of the five-tuples: `src,dst,proto,sport,dport,
    /// packets,ip_bytes`, and optionally `,first_ns,last_ns`. Empty if they are not compared.
    flows: &'static [&'static str],
    /// Words that standard output or standard error contains.
    words: &'static [&'static str],
    /// Words that neither of them contains.
    absent: &'static [&'static str],
}

impl Case {
    /// A run of `flow_cache` that is read to its end.
    const OF: Self = Self {
        folder: "",
        file: "",
        made_by: None,
        example: "flow_cache",
        options: &[],
        code: 0,
        packets: None,
        counts: &[],
        flows: &[],
        words: &[],
        absent: &["panicked"],
    };

    /// Runs the example, and returns the differences from the right result.
    fn faults(&self, cases: &Path) -> Vec<String> {
        let is_meter = self.example == "flow_cache";
        let mut command = Command::new(example(self.example));
        command.arg(self.input(cases)).args(self.options).stdin(Stdio::null());
        if is_meter {
            command.args(["--csv", "-"]);
        }
        let start = Instant::now();
        let run = Run::new(command.output().expect("the example can be run"));
        let elapsed = start.elapsed();
        let mut faults = vec![];
        let mut check = |holds: bool, fault: String| {
            if !holds {
                faults.push(fault);
            }
        };
        check(run.code == Some(self.code), format!("exit code {:?}, not {}", run.code, self.code));
        check(elapsed < ENDLESS, format!("{elapsed:?}"));
        if let Some(packets) = &self.packets {
            let count = run.count("packets, ");
            check(packets.contains(&count), format!("{count} packets, not {packets:?}"));
        }
        for (words, counts) in self.counts {
            let count = run.count(words);
            check(counts.contains(&count), format!("{count} {words}, not {counts:?}"));
        }
        if !self.flows.is_empty() {
            let flows = flows(&run, self.flows[0].split(',').count());
            check(flows == self.flows, format!("flows {flows:#?}, not {:#?}", self.flows));
        }
        let has = |words: &str| run.stdout.contains(words) || run.stderr.contains(words);
        for words in self.words {
            check(has(words), format!("no {words:?}"));
        }
        for words in self.absent {
            check(!has(words), format!("{words:?}"));
        }
        if !faults.is_empty() {
            faults.push(format!("standard error: {}", run.stderr));
        }
        faults
    }

    /// Returns the path of the input, after its script has written it.
    fn input(&self, cases: &Path) -> PathBuf {
        let folder = folder(cases, self.folder);
        let Some(arguments) = self.made_by else { return folder.join(self.file) };
        let name = format!("case-{}-{}", self.folder, arguments.join("-"));
        let made = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&made).expect("the build folder can be written");
        let script = folder.join("make.py");
        let mut command = Command::new("python3");
        let output = command.arg(script).args(arguments).current_dir(&made).output();
        let output = output.expect("python3 can be run");
        assert!(output.status.success(), "{}: {output:?}", folder.display());
        made.join(self.file)
    }
}

/// Returns the folder of this number.
fn folder(cases: &Path, number: &str) -> PathBuf {
    let prefix = format!("{number}-");
    let mut entries = fs::read_dir(cases).expect("the folder can be read").flatten();
    let is_it = |name: &OsStr| name.to_string_lossy().starts_with(&prefix);
    let found = entries.find(|entry| is_it(&entry.file_name()));
    found.unwrap_or_else(|| panic!("no case {number}")).path()
}

/// Returns the binary of an example.
fn example(name: &str) -> PathBuf {
    binary::of_example(name).unwrap_or_else(|why| panic!("{why}"))
}

/// Returns the flows of a run with their first columns.
fn flows(run: &Run, columns: usize) -> Vec<String> {
    let flows = data::flows(run.stdout.as_bytes());
    let rows = flows.into_iter().map(|(key, values)| {
        let values = values.into_iter().map(|value| value.to_string());
        let all: Vec<String> = key.into_iter().chain(values).take(columns).collect();
        all.join(",")
    });
    rows.collect()
}

/// Runs all cases of a table, and reports all that differ.
fn check(test: &str, cases: &[Case]) {
    let Some(folder) = data::cases(test) else { return };
    let mut wrong = vec![];
    for case in cases {
        if case.made_by.is_some() && !data::has_python() {
            data::announce(test, format_args!("SKIPPED: case {}: no python3", case.folder));
            continue;
        }
        let faults = case.faults(&folder);
        if !faults.is_empty() {
            let Case { folder, file, options, .. } = case;
            wrong.push(format!("case {folder}: {file} {options:?}:\n{}", faults.join("\n")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
