//! The page of all reports, independent of its format.
//!
//! ```text
//!     one line for each paper           the outcome
//!     what differs, and why             numbered causes
//!     each paper                        its lines, in the order of its sections, each once
//!     details of each paper             tables, figures, and the runs that show the causes
//! ```

use std::error::Error;
use std::process::Command;

use bench_common::machine;

use crate::causes::{Evidence, Explanation};
use crate::explanations::EXPLANATIONS;
use crate::finding::{Finding, Verdict};
use crate::inventory;
use crate::report::Report;

pub(crate) const TITLE: &str = "Five papers, measured again";

/// The contents of the page.
pub(crate) struct Page {
    /// Names and values of what describes the run.
    pub(crate) setting: Vec<(&'static str, String)>,
    pub(crate) quick: bool,
    pub(crate) reports: Vec<Report>,
    /// The causes of the differences in these reports.
    pub(crate) causes: Vec<Shown>,
}

/// A cause on the page.
pub(crate) struct Shown {
    pub(crate) number: usize,
    pub(crate) explanation: &'static Explanation,
    /// The title of the first paper that has lines which differ by it.
    pub(crate) paper: Option<&'static str>,
    pub(crate) evidence: Evidence,
}

impl Shown {
    /// The command that runs its experiment.
    pub(crate) fn command(&self) -> String {
        let name = self.explanation.name;
        format!("cargo bench --all-features --bench paper -- --explain {name}")
    }
}

/// The warning of a quick run.
pub(crate) const SMALL_SCALE: &str =
    "This run was on a small scale (--quick): its figures do not count.";

/// How to read the page.
pub(crate) const INTRODUCTION: &str = "Each line sets what a paper prints beside what is \
    measured or counted here; the run computes the verdict. \"Calculated\" is a formula beside a \
    formula, or a setting: it is not counted. A line that differs points to its cause by number. \
    An inventory (benches/paper/inventory.csv) has all lines, with the words, the cell or the \
    statement of the paper that each printed value is from: a line without a finding fails the \
    run. Tolerances: 1 % for counts and simulations, 5 % where two digits are printed, 10 % for \
    \"about\" and for times that are nearly equal in print, 25 % for other ratios of times; \
    findings.csv has the rule of each line. ◷ marks lines that another machine may change, with \
    the values of other runs in brackets.";

impl Page {
    /// Runs the experiments of the causes, and collects the page.
    pub(crate) fn new(
        command: String,
        quick: bool,
        reports: Vec<Report>,
    ) -> Result<Self, Box<dyn Error>> {
        let runs = other_runs(reports.iter().flat_map(|report| &report.findings));
        let setting = [("Machine", machine::name()), ("Compiler", rustc()), ("Command", command)];
        let setting = setting.into_iter().chain(runs.map(|runs| ("Other runs", runs))).collect();
        let mut causes = vec![];
        for (at, explanation) in EXPLANATIONS.iter().enumerate() {
            let number = at + 1;
            let is_of =
                |finding: &&Finding| finding.cause.is_some_and(|cause| cause.number() == number);
            let differs = |report: &&Report| report.findings.iter().any(|one| is_of(&one));
            let paper = reports.iter().find(differs).map(|report| report.about.title);
            // A quick run tries all experiments.
            if paper.is_some() || quick {
                println!("\nCause {number}: {}", explanation.title);
                let evidence = (explanation.run)(quick)?;
                causes.push(Shown { number, explanation, paper, evidence });
            }
        }
        Ok(Self { setting, quick, reports, causes })
    }

    /// Counts the verdicts of all papers.
    pub(crate) fn counts(&self) -> [usize; 4] {
        count(self.reports.iter().flat_map(|report| &report.findings))
    }
}

/// Returns how many other runs there are, and how many verdicts they change. `None` without any.
fn other_runs<'a>(findings: impl Iterator<Item = &'a Finding>) -> Option<String> {
    let timed: Vec<&Finding> = findings.filter(|finding| !finding.others.is_empty()).collect();
    let runs = timed.first()?.others.len();
    let changed = timed.iter().filter(|finding| !finding.is_the_same_in_all_runs()).count();
    Some(format!("{runs}; {changed} of {} verdicts with ◷ are not the same in all", timed.len()))
}

/// Counts findings by verdict, in the order of the variants of [`Verdict`].
pub(crate) fn count<'a>(findings: impl Iterator<Item = &'a Finding>) -> [usize; 4] {
    let mut counts = [0; 4];
    findings.for_each(|finding| counts[finding.verdict as usize] += 1);
    counts
}

/// Formats the counts as text.
pub(crate) fn in_words([agree, differ, calculated, lost]: [usize; 4]) -> String {
    format!("{agree} agree, {differ} differ, {calculated} calculated, {lost} not measured")
}

/// A place of a paper, with its findings.
pub(crate) struct Place<'a> {
    pub(crate) name: String,
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
            [0, 0, ..] => self.name.clone(),
            [agree, differ, ..] => format!("{} {agree}/{}", self.name, agree + differ),
        }
    }
}

pub(crate) fn places(report: &Report) -> Vec<Place<'_>> {
    let of = |name: String| {
        let findings = report.findings.iter().filter(|finding| finding.place == name).collect();
        Place { name, findings }
    };
    inventory::places(report.about.name).into_iter().map(of).collect()
}

/// Returns a verdict as text, with the mark of this machine and the number of the cause, which
/// `link` formats.
pub(crate) fn verdict(finding: &Finding, link: impl Fn(usize) -> String) -> String {
    let clock = match (finding.is_timed, finding.is_the_same_in_all_runs()) {
        (false, _) => "",
        (true, true) => " ◷",
        (true, false) => " ◷ not in all runs",
    };
    let cause = finding.cause.map_or(String::new(), |cause| format!(" {}", link(cause.number())));
    format!("{}{clock}{cause}", finding.verdict)
}

/// Returns the address of the documentation of a module.
pub(crate) fn documentation(module: &str) -> String {
    format!("https://docs.rs/flowtable/latest/flowtable/{}/", module.replace("::", "/"))
}

fn rustc() -> String {
    let output = Command::new("rustc").arg("--version").output();
    let version = output.ok().and_then(|output| String::from_utf8(output.stdout).ok());
    version.map_or_else(|| "unknown".into(), |version| version.trim().into())
}
