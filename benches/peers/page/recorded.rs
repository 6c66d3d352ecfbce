//! The results of a run, read from its lines of JSON.

use std::error::Error;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use crate::results::{Comparison, Origin, file_error};

/// A table of results, as the comparisons of each of our rows with each peer.
pub(crate) struct RecordedResults {
    pub(crate) title: String,
    pub(crate) comparisons: Vec<Comparison>,
}

/// A column of a table; the same benchmark may have several numbers of entries.
#[derive(Clone, PartialEq)]
pub(crate) struct RecordedColumn {
    pub(crate) bench: String,
    pub(crate) unit: String,
    pub(crate) n: usize,
}

/// Reads the origin and all tables of results, in the order of the file.
pub(crate) fn read(path: &Path) -> Result<(Origin, Vec<RecordedResults>), Box<dyn Error>> {
    let file = File::open(path).map_err(|error| file_error(path, &error))?;
    let mut lines = BufReader::new(file).lines();
    let first = lines.next().ok_or("the file has no figures")??;
    let origin = serde_json::from_str(&first)
        .map_err(|error| format!("the first line must have the machine: {error}"))?;
    let mut recorded: Vec<RecordedResults> = Vec::new();
    for (number, line) in (2..).zip(lines) {
        let comparison: Comparison = serde_json::from_str(&line?)
            .map_err(|error| format!("{}, line {number}: {error}", path.display()))?;
        match recorded.last_mut() {
            Some(results) if results.title == comparison.title => {
                results.comparisons.push(comparison);
            }
            _ => {
                let title = comparison.title.clone();
                recorded.push(RecordedResults { title, comparisons: vec![comparison] });
            }
        }
    }
    Ok((origin, recorded))
}

impl RecordedResults {
    pub(crate) fn ours(&self) -> Vec<&str> {
        unique(self.comparisons.iter().map(|comparison| comparison.ours_name.as_str()))
    }

    pub(crate) fn peers(&self) -> Vec<&str> {
        unique(self.comparisons.iter().map(|comparison| comparison.peer_name.as_str()))
    }

    pub(crate) fn columns(&self) -> Vec<RecordedColumn> {
        unique(self.comparisons.iter().map(RecordedColumn::of))
    }

    /// Returns the figure of a row in a column.
    pub(crate) fn figure(&self, name: &str, column: &RecordedColumn) -> Option<f64> {
        let of_column = |comparison: &&Comparison| RecordedColumn::of(comparison) == *column;
        self.comparisons.iter().filter(of_column).find_map(|comparison| match name {
            _ if comparison.ours_name == name => Some(comparison.ours),
            _ if comparison.peer_name == name => Some(comparison.peer),
            _ => None,
        })
    }

    /// Returns the ratio of a peer to the first of our rows in a column.
    pub(crate) fn ratio(&self, peer: &str, column: &RecordedColumn) -> Option<f64> {
        let first = &self.comparisons.first()?.ours_name;
        let matches = |comparison: &&Comparison| {
            comparison.ours_name == *first
                && comparison.peer_name == peer
                && RecordedColumn::of(comparison) == *column
        };
        self.comparisons.iter().find(matches)?.ratio
    }

    /// Returns the remarks on a row.
    pub(crate) fn remarks(&self, name: &str) -> &[String] {
        let found = self.comparisons.iter().find_map(|comparison| match name {
            _ if comparison.ours_name == name => Some(&comparison.ours_remarks),
            _ if comparison.peer_name == name => Some(&comparison.peer_remarks),
            _ => None,
        });
        found.map_or(&[], Vec::as_slice)
    }
}

impl RecordedColumn {
    fn of(comparison: &Comparison) -> Self {
        let Comparison { bench, unit, n, .. } = comparison;
        Self { bench: bench.clone(), unit: unit.clone(), n: *n }
    }
}

/// Returns the distinct items, in their order of first occurrence.
pub(crate) fn unique<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut distinct = Vec::new();
    for item in items {
        if !distinct.contains(&item) {
            distinct.push(item);
        }
    }
    distinct
}
