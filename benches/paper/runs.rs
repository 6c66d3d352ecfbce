//! The spread of several runs: their values beside those of this run, on lines that depend on the
//! machine.
//!
//! ```text
//!     DIR/PAPER/findings.csv ──place, what──▸ Finding: 0.293 here, 0.281 in DIR
//! ```

use std::path::PathBuf;

use crate::finding::{Finding, OtherRun};
use crate::table::{Outcome, in_file};

/// Adds the values of earlier runs, which wrote to these folders, to the findings of a paper that
/// another run may change.
pub(crate) fn add(dirs: &[PathBuf], paper: &str, findings: &mut [Finding]) -> Outcome {
    for dir in dirs {
        let path = dir.join(paper).join("findings.csv");
        let mut file = in_file(&path, csv::Reader::from_path(&path))?;
        let lines: Vec<csv::StringRecord> = in_file(&path, file.records().collect())?;
        for finding in findings.iter_mut().filter(|finding| finding.is_timed) {
            let is_same =
                |line: &&csv::StringRecord| line[0] == *finding.place && line[1] == finding.what;
            let line = lines.iter().find(is_same).ok_or_else(|| {
                format!("{}: no line {}, {}", path.display(), finding.place, finding.what)
            })?;
            let [measured, verdict] = [3, 5].map(|column| line[column].to_string());
            finding.others.push(OtherRun { measured, verdict });
        }
    }
    Ok(())
}
