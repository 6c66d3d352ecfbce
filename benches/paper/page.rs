//! The page of all reports, independent of its format.

use std::process::Command;

use bench_common::machine;

use crate::finding::{Finding, Verdict};
use crate::report::Report;

pub(crate) const TITLE: &str = "Five papers, measured again";

/// The contents of the page.
pub(crate) struct Page {
    /// Names and values of what describes the run.
    pub(crate) setting: Vec<(&'static str, String)>,
    pub(crate) quick: bool,
    pub(crate) reports: Vec<Report>,
}

/// The warning of a quick run.
pub(crate) const SMALL_SCALE: &str =
    "This run was on a small scale (--quick): its figures do not count.";

/// How to read the page.
pub(crate) const INTRODUCTION: &str = "Each line sets what a paper published beside what this \
    crate does. The verdict is computed in the run, by the rule that the line states: numbers \
    that come from seeds must be equal or nearly so, times are of this machine and are compared \
    as ratios or by their order only. A line whose verdict is \"calculated\" checks the paper \
    against itself, and is not counted.";

impl Page {
    pub(crate) fn new(command: String, quick: bool, reports: Vec<Report>) -> Self {
        let setting =
            vec![("Machine", machine::name()), ("Compiler", rustc()), ("Command", command)];
        Self { setting, quick, reports }
    }

    /// Counts the verdicts of all papers.
    pub(crate) fn counts(&self) -> [usize; 4] {
        count(self.reports.iter().flat_map(|report| &report.findings))
    }
}

/// Counts findings by verdict, in the order of the variants of [`Verdict`].
pub(crate) fn count<'a>(findings: impl Iterator<Item = &'a Finding>) -> [usize; 4] {
    let mut counts = [0; 4];
    findings.for_each(|finding| counts[finding.verdict as usize] += 1);
    counts
}

/// Formats the counts as text.
pub(crate) fn in_words([agree, differ, calculated, lost]: [usize; 4]) -> String {
    let calculated = match calculated {
        0 => String::new(),
        _ => format!(", {calculated} calculated from the paper alone"),
    };
    format!("{agree} agree, {differ} differ, {lost} not measured{calculated}")
}

/// A place of a paper, with its findings.
pub(crate) struct Place<'a> {
    pub(crate) name: &'static str,
    pub(crate) findings: Vec<&'a Finding>,
}

impl Place<'_> {
    /// Differs if any finding does, and agrees if any other does.
    pub(crate) fn verdict(&self) -> Verdict {
        let [agree, differ, calculated, _] = count(self.findings.iter().copied());
        match (agree, differ, calculated) {
            (_, 1.., _) => Verdict::Differs,
            (1.., 0, _) => Verdict::Agrees,
            (0, 0, 1..) => Verdict::Calculated,
            (0, 0, 0) => Verdict::NotMeasured,
        }
    }

    /// The name, and how many of its findings agree.
    pub(crate) fn label(&self) -> String {
        match count(self.findings.iter().copied()) {
            [0, 0, ..] => self.name.into(),
            [agree, differ, ..] => format!("{} {agree}/{}", self.name, agree + differ),
        }
    }
}

pub(crate) fn places(report: &Report) -> Vec<Place<'_>> {
    let of = |name: &&'static str| Place {
        name,
        findings: report.findings.iter().filter(|finding| finding.place == *name).collect(),
    };
    report.about.places.iter().map(of).collect()
}

fn rustc() -> String {
    let output = Command::new("rustc").arg("--version").output();
    let version = output.ok().and_then(|output| String::from_utf8(output.stdout).ok());
    version.map_or_else(|| "unknown".into(), |version| version.trim().into())
}
