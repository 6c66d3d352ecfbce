//! Where results go: tables to the terminal, the same tables as CSV, figures as SVG.

use std::env;
use std::error::Error;
use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};

pub(crate) type Outcome = Result<(), Box<dyn Error>>;

/// The directory of the results.
pub(crate) struct Report {
    dir: PathBuf,
}

impl Report {
    /// The report of a paper, and whether it is to be `--quick`. It goes to `--out` or to target/paper.
    pub(crate) fn from_args(paper: &str) -> Result<(Self, bool), Box<dyn Error>> {
        let words: Vec<String> = env::args().collect();
        let quick = words.iter().any(|word| word == "--quick");
        let out = words.iter().skip_while(|word| *word != "--out").nth(1);
        let dir = out.map_or_else(|| Path::new("target/paper").join(paper), PathBuf::from);
        fs::create_dir_all(&dir)?;
        Ok((Self { dir }, quick))
    }

    /// Says where it is.
    pub(crate) fn end(&self) {
        println!("\nTables and figures are in {}.", self.dir.display());
    }

    /// The path of the result `name`.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Prints a table under its title and writes it to `name`.csv.
    pub(crate) fn table(&self, name: &str, title: &str, table: &Table) -> Outcome {
        println!("\n{title}\n");
        table.print();
        self.csv(name, table)
    }

    /// Writes a table to `name`.csv.
    pub(crate) fn csv(&self, name: &str, table: &Table) -> Outcome {
        let mut file = csv::Writer::from_path(self.path(&format!("{name}.csv")))?;
        table.rows.iter().try_for_each(|row| file.write_record(row))?;
        Ok(file.flush()?)
    }
}

/// Rows of text, the first of which is the header.
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(header: &[&str]) -> Self {
        Self { rows: vec![header.iter().map(ToString::to_string).collect()] }
    }

    pub(crate) fn row(&mut self, cells: &[&dyn Display]) {
        assert_eq!(cells.len(), self.rows[0].len());
        self.rows.push(cells.iter().map(ToString::to_string).collect());
    }

    /// The first column to the left, the others to the right.
    fn print(&self) {
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
}

/// Two decimals.
pub(crate) fn two(number: f64) -> String {
    format!("{number:.2}")
}

/// The middle one of an odd number of measurements.
pub(crate) fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}
