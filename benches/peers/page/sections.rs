//! The sections of the page, read from `page/sections.json` and the texts in `page/text/`.
//!
//! Texts explain the figures, and must not contain any: numbers come from the figures.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::Path;

use serde::Deserialize;

use super::recorded::RecordedResults;
use crate::results::{Comparison, file_error};

/// The folder of the data and the texts, relative to the root of the repository.
const FOLDER: &str = "benches/peers/page";

/// A section of the page: one structure, or several for the same purpose.
#[derive(Deserialize)]
pub(crate) struct Section {
    pub(crate) title: String,
    /// A file in the folder of texts.
    text: String,
    /// Our structures: their names in the JSON before the first `/` or `+`.
    structures: Vec<String>,
    /// Our structures that the summary compares with the peers, by their names in the JSON.
    pub(crate) primary: Vec<String>,
    /// Rows that are not counted as peers: constant work, variants of ours, or copies of a peer.
    #[serde(default)]
    pub(crate) excluded: Vec<String>,
    /// Rows that are not counted as peers of one of our structures, by its name in the JSON before
    /// the first `/`.
    #[serde(default)]
    excluded_for: BTreeMap<String, Vec<String>>,
    /// Parts of titles that distinguish results with equal names of benchmarks.
    #[serde(default)]
    phases: Vec<String>,
    /// The benchmarks of the summary.
    pub(crate) summary: Vec<String>,
    pub(crate) plots: Vec<Plot>,
}

/// A plot with a panel per benchmark.
#[derive(Deserialize)]
pub(crate) struct Plot {
    /// The name of its file.
    pub(crate) file: String,
    pub(crate) title: String,
    pub(crate) key: String,
    pub(crate) benches: Vec<String>,
}

/// Reads all sections, in the order of the page.
pub(crate) fn read() -> Result<Vec<Section>, Box<dyn Error>> {
    let file = Path::new(FOLDER).join("sections.json");
    let json = fs::read_to_string(&file).map_err(|error| file_error(&file, &error))?;
    Ok(serde_json::from_str(&json).map_err(|error| file_error(&file, &error))?)
}

/// Reads a text of the page.
pub(crate) fn text(name: &str) -> Result<String, String> {
    let file = Path::new(FOLDER).join("text").join(name);
    fs::read_to_string(&file).map_err(|error| file_error(&file, &error))
}

impl Section {
    pub(crate) fn text(&self) -> Result<String, String> {
        text(&self.text)
    }

    /// Whether results belong to this section.
    pub(crate) fn has(&self, results: &RecordedResults) -> bool {
        results.comparisons.first().is_some_and(|comparison| {
            let structure = comparison.structure.split(['/', '+']).next().unwrap_or_default();
            self.structures.iter().any(|other| other == structure)
        })
    }

    /// Whether a row counts as a subject of its own.
    pub(crate) fn is_counted(&self, name: &str) -> bool {
        !self.excluded.iter().any(|excluded| excluded == name)
    }

    /// Whether a row counts as a peer of one of our structures.
    pub(crate) fn is_peer(&self, structure: &str, name: &str) -> bool {
        let structure = structure.split('/').next().unwrap_or_default();
        let excluded = self.excluded_for.get(structure).into_iter().flatten();
        self.is_counted(name) && excluded.into_iter().all(|excluded| excluded != name)
    }

    /// The name of a comparison's benchmark, with its phase where there are several.
    pub(crate) fn benchmark(&self, comparison: &Comparison) -> String {
        let Comparison { bench, title, .. } = comparison;
        match self.phases.iter().find(|phase| title.contains(phase.as_str())) {
            Some(phase) => format!("{bench}, {phase}"),
            None => bench.clone(),
        }
    }
}
