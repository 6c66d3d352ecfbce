//! The results that the papers publish: inventory.csv has a line for each table, figure and
//! headline number.
//!
//! ```text
//!     paper,place,what,printed,quotation
//!     demux_1992,section 3.3,responses that find …,21,“almost 21 %”      the paper prints 21
//!     demux_1992,figures 1 to 3,what they show,,                         nothing to compare with
//! ```
//!
//! `place` is a section, a table or a figure as the paper numbers them. `quotation` has the paper's
//! words in quotation marks, a cell of a table with its heads, its text in other words with the
//! section or figure before a colon, or `= a / b`, a calculation from printed numbers; a test
//! checks that each printed value is in its own. A run fails if a line has no finding, if a finding
//! has no line, if the two state different numbers, or if a finding claims to agree with something
//! that is not printed.

use std::error::Error;

use crate::finding::{Finding, Verdict};

const CSV: &str = include_str!("inventory.csv");

/// A line of the inventory.
struct Line {
    place: String,
    what: String,
    printed: String,
    quotation: String,
}

/// Returns the lines of a paper.
fn lines(paper: &str) -> Result<Vec<Line>, csv::Error> {
    let mut lines = vec![];
    for record in csv::Reader::from_reader(CSV.as_bytes()).records() {
        let record = record?;
        if &record[0] == paper {
            let [place, what, printed, quotation] =
                [1, 2, 3, 4].map(|column| record[column].to_string());
            lines.push(Line { place, what, printed, quotation });
        }
    }
    Ok(lines)
}

/// Returns the places of a paper, in the order of the inventory.
pub(crate) fn places(paper: &str) -> Vec<String> {
    let lines = lines(paper).unwrap_or_default();
    let mut places: Vec<String> = lines.into_iter().map(|line| line.place).collect();
    places.dedup();
    places
}

/// Checks that findings and inventory match, and sorts the findings in its order.
pub(crate) fn check(paper: &str, findings: &mut [Finding]) -> Result<(), Box<dyn Error>> {
    let lines = lines(paper)?;
    let line_of = |finding: &Finding| {
        lines.iter().position(|line| line.place == finding.place && line.what == finding.what)
    };
    let mut faults = vec![];
    for finding in &*findings {
        let Finding { place, what, published, verdict, .. } = finding;
        match line_of(finding).map(|at| &lines[at]) {
            None => faults.push(format!("not in the inventory: {place}, {what}")),
            Some(line) if !line.printed.is_empty() && line.printed != *published => {
                if *verdict != Verdict::NotMeasured {
                    let printed = &line.printed;
                    faults.push(format!("{place}, {what}: {published}, but {printed} is printed"));
                }
            }
            Some(line) if line.printed.is_empty() => {
                if matches!(verdict, Verdict::Agrees | Verdict::Differs) {
                    faults.push(format!("{place}, {what}: {verdict}, but nothing is printed"));
                }
            }
            Some(_) => {}
        }
    }
    for line in &lines {
        let is_found = |finding: &Finding| finding.place == line.place && finding.what == line.what;
        if !findings.iter().any(is_found) {
            faults.push(format!("no finding: {}, {}", line.place, line.what));
        }
    }
    findings.sort_by_key(line_of);
    for finding in findings {
        let quotation = line_of(finding).map(|at| lines[at].quotation.clone());
        finding.quotation = quotation.unwrap_or_default();
    }
    if faults.is_empty() { Ok(()) } else { Err(format!("{paper}: {}", faults.join("\n")).into()) }
}
