//! The boards of a run, read back from its lines of JSON.

use std::error::Error;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use crate::board::{Figure, Origin, in_file};

/// A board: its figures, each of ours beside each peer's.
pub(crate) struct Sheet {
    pub(crate) title: String,
    pub(crate) figures: Vec<Figure>,
}

/// The figures of a job in a board are those of one number of entries.
#[derive(Clone, PartialEq)]
pub(crate) struct Column {
    pub(crate) bench: String,
    pub(crate) unit: String,
    pub(crate) n: usize,
}

/// Where the figures of a file are from, and the boards in their order.
pub(crate) fn read(path: &Path) -> Result<(Origin, Vec<Sheet>), Box<dyn Error>> {
    let file = File::open(path).map_err(|error| in_file(path, &error))?;
    let mut lines = BufReader::new(file).lines();
    let first = lines.next().ok_or("there are no figures")??;
    let origin = serde_json::from_str(&first)
        .map_err(|error| format!("the first line does not say which machine it was: {error}"))?;
    let mut sheets: Vec<Sheet> = Vec::new();
    for (number, line) in (2..).zip(lines) {
        let figure: Figure = serde_json::from_str(&line?)
            .map_err(|error| format!("{}, line {number}: {error}", path.display()))?;
        match sheets.last_mut() {
            Some(sheet) if sheet.title == figure.board => sheet.figures.push(figure),
            _ => sheets.push(Sheet { title: figure.board.clone(), figures: vec![figure] }),
        }
    }
    Ok((origin, sheets))
}

impl Sheet {
    pub(crate) fn ours(&self) -> Vec<&str> {
        unique(self.figures.iter().map(|figure| figure.ours_name.as_str()))
    }

    pub(crate) fn peers(&self) -> Vec<&str> {
        unique(self.figures.iter().map(|figure| figure.peer_name.as_str()))
    }

    pub(crate) fn columns(&self) -> Vec<Column> {
        unique(self.figures.iter().map(Column::of))
    }

    /// The figure of somebody in a column.
    pub(crate) fn figure(&self, name: &str, column: &Column) -> Option<f64> {
        let mut figures = self.figures.iter().filter(|figure| Column::of(figure) == *column);
        figures.find_map(|figure| match name {
            _ if figure.ours_name == name => Some(figure.ours),
            _ if figure.peer_name == name => Some(figure.peer),
            _ => None,
        })
    }

    /// How many times our first one is better than a peer.
    pub(crate) fn ratio(&self, peer: &str, column: &Column) -> Option<f64> {
        let first = &self.figures.first()?.ours_name;
        let is_it = |figure: &&Figure| {
            figure.ours_name == *first && figure.peer_name == peer && Column::of(figure) == *column
        };
        self.figures.iter().find(is_it)?.ratio
    }

    /// What there is to say of somebody.
    pub(crate) fn remarks(&self, name: &str) -> &[String] {
        let found = self.figures.iter().find_map(|figure| match name {
            _ if figure.ours_name == name => Some(&figure.ours_remarks),
            _ if figure.peer_name == name => Some(&figure.peer_remarks),
            _ => None,
        });
        found.map_or(&[], Vec::as_slice)
    }
}

impl Column {
    fn of(figure: &Figure) -> Self {
        let Figure { bench, unit, n, .. } = figure;
        Self { bench: bench.clone(), unit: unit.clone(), n: *n }
    }
}

/// The different ones, in the order in which they come.
pub(crate) fn unique<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut different = Vec::new();
    for item in items {
        if !different.contains(&item) {
            different.push(item);
        }
    }
    different
}
