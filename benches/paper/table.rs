//! Tables of text, for the terminal, CSV files and the page.

use std::error::Error;
use std::fmt::Display;
use std::path::Path;

pub(crate) type Outcome = Result<(), Box<dyn Error>>;

/// Rows of text, the first of which is the header.
pub(crate) struct Table {
    pub(crate) rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(header: &[&str]) -> Self {
        Self { rows: vec![header.iter().map(ToString::to_string).collect()] }
    }

    pub(crate) fn row(&mut self, cells: &[&dyn Display]) {
        assert_eq!(cells.len(), self.rows[0].len());
        self.rows.push(cells.iter().map(ToString::to_string).collect());
    }

    /// Prints the table, with the first column to the left and the others to the right.
    pub(crate) fn print(&self) {
        let width = |column: usize| {
            self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.rows[0].len()).map(width).collect();
        for row in &self.rows {
            print!("  {:width$}", row[0], width = widths[0]);
            for (cell, width) in row.iter().zip(&widths).skip(1) {
                print!("  {cell:>width$}");
            }
            println!();
        }
    }

    pub(crate) fn write(&self, path: &Path) -> Outcome {
        let mut file = in_file(path, csv::Writer::from_path(path))?;
        in_file(path, self.rows.iter().try_for_each(|row| file.write_record(row)))?;
        Ok(in_file(path, file.flush())?)
    }
}

/// Adds the path of a file to an error.
pub(crate) fn in_file<T, E: Display>(path: &Path, result: Result<T, E>) -> Result<T, String> {
    result.map_err(|error| format!("{}: {error}", path.display()))
}
