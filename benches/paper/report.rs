//! The report of a paper: tables, figures and findings.
//!
//! Tables go to the terminal and to CSV files, figures to SVG files. The page contains all of them.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use bench_common::figure::Figure;

use crate::finding::Finding;
pub(crate) use crate::table::{Outcome, Table, in_file};
use crate::{inventory, runs};

/// The description of a paper, and the places to compare with.
pub(crate) struct About {
    /// The name of its module and of its directory.
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) authors: &'static str,
    /// Where and when it was published.
    pub(crate) published: &'static str,
    /// The claim of the paper, in a sentence or two.
    pub(crate) claims: &'static str,
    /// The part of it that this crate has.
    pub(crate) ours: &'static str,
    /// The outcome, in a sentence.
    pub(crate) outcome: &'static str,
    /// The modules of the crate that implement it.
    pub(crate) modules: &'static [&'static str],
    /// How to interpret the figures measured here.
    pub(crate) caution: &'static str,
}

/// A table, a figure or a remark.
pub(crate) enum Item {
    Table { name: String, title: String, table: Table },
    Figure { name: String, title: String, svg: String },
    Remark(String),
}

/// The results for a paper.
pub(crate) struct Report {
    pub(crate) about: &'static About,
    pub(crate) items: Vec<Item>,
    pub(crate) findings: Vec<Finding>,
    dir: PathBuf,
    quick: bool,
}

impl Report {
    /// Creates an empty report, with a directory in `out`.
    pub(crate) fn new(
        about: &'static About,
        out: &Path,
        quick: bool,
    ) -> Result<Self, Box<dyn Error>> {
        let dir = out.join(about.name);
        in_file(&dir, fs::create_dir_all(&dir))?;
        println!("\n\n{}: {} ({})", about.authors, about.title, about.published);
        Ok(Self { about, items: vec![], findings: vec![], dir, quick })
    }

    /// Prints a table and writes it to `name`.csv.
    pub(crate) fn table(&mut self, name: &str, title: &str, table: Table) -> Outcome {
        println!("\n{title}\n");
        table.print();
        self.quiet_table(name, title, table)
    }

    /// Writes a table that is too long to print to `name`.csv.
    pub(crate) fn quiet_table(&mut self, name: &str, title: &str, table: Table) -> Outcome {
        table.write(&self.dir.join(format!("{name}.csv")))?;
        self.items.push(Item::Table { name: name.into(), title: title.into(), table });
        Ok(())
    }

    /// Draws a figure into `name`.svg.
    pub(crate) fn figure(&mut self, name: &str, figure: &Figure<'_>) -> Outcome {
        let path = self.dir.join(format!("{name}.svg"));
        in_file(&path, figure.draw(&path))?;
        let svg = in_file(&path, fs::read_to_string(&path))?;
        self.items.push(Item::Figure { name: name.into(), title: figure.title.into(), svg });
        Ok(())
    }

    /// Adds a remark after the tables so far.
    pub(crate) fn remark(&mut self, text: String) {
        println!("\n  {text}");
        self.items.push(Item::Remark(text));
    }

    /// Adds a finding.
    pub(crate) fn record(&mut self, finding: Finding) {
        self.findings.push(if self.quick { finding.in_a_quick_run() } else { finding });
    }

    /// Sorts the findings as in the inventory, adds the values of earlier runs, prints them and
    /// writes them to findings.csv. Fails if they and the inventory do not match.
    pub(crate) fn end(&mut self, from: &[PathBuf]) -> Outcome {
        let checked = inventory::check(self.about.name, &mut self.findings);
        runs::add(from, self.about.name, &mut self.findings)?;
        println!("\nBeside what the paper published\n");
        let header = ["place", "what", "published", "measured", "rule", "verdict", "cause", "why"];
        let mut table = Table::new(&header);
        for finding in &self.findings {
            println!("  {finding}");
            table.rows.push(finding.cells().into());
        }
        table.write(&self.dir.join("findings.csv"))?;
        checked
    }
}

/// Formats a number with two decimals.
pub(crate) fn two(number: f64) -> String {
    format!("{number:.2}")
}

/// Returns the median of an odd number of measurements.
pub(crate) fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}
