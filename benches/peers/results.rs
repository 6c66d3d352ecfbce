//! Results of benchmarks: collected round by round, printed, and written as JSON.

use std::env;
use std::fmt::Display;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use bench_common::machine;
use serde::{Deserialize, Serialize};

use crate::subject::Subject;

/// The result of functions that print, read or write files.
pub(crate) type Outcome = Result<(), Box<dyn std::error::Error>>;

/// A column of a table of results; less is better in all of them.
#[derive(Clone, Copy)]
pub(crate) struct Column {
    pub(crate) bench: &'static str,
    pub(crate) unit: &'static str,
    /// Entries.
    pub(crate) n: usize,
}

impl Column {
    fn width(&self) -> usize {
        self.bench.len().max(16) + 2
    }
}

/// The first line of the JSON: machine and command.
#[derive(Serialize, Deserialize)]
pub(crate) struct Origin {
    pub(crate) machine: String,
    /// Whether the run was at a small scale.
    pub(crate) quick: bool,
    pub(crate) command: String,
}

/// One of our figures and a peer's: a line of the JSON.
#[derive(Serialize, Deserialize)]
pub(crate) struct Comparison {
    /// The title of the results.
    #[serde(rename = "board")]
    pub(crate) title: String,
    pub(crate) structure: String,
    /// The name of our row.
    pub(crate) ours_name: String,
    pub(crate) bench: String,
    pub(crate) key: String,
    pub(crate) n: usize,
    threads: usize,
    pub(crate) unit: String,
    pub(crate) ours: f64,
    pub(crate) peer: f64,
    pub(crate) peer_name: String,
    /// Peer / ours; none where a figure is zero.
    pub(crate) ratio: Option<f64>,
    pub(crate) ours_remarks: Vec<String>,
    pub(crate) peer_remarks: Vec<String>,
}

/// A subject and its figures.
struct Row {
    name: &'static str,
    /// The structure's name in the JSON, for ours; none for a peer.
    structure: Option<&'static str>,
    /// The figures of all rounds, by column.
    cells: Vec<Vec<f64>>,
    remarks: Vec<String>,
}

/// A table of results: a row per subject. Printed ratios compare with the first of our rows.
pub(crate) struct Results {
    title: String,
    key: &'static str,
    columns: Vec<Column>,
    rows: Vec<Row>,
}

impl Results {
    pub(crate) fn new(title: String, key: &'static str, columns: Vec<Column>) -> Self {
        Self { title, key, columns, rows: Vec::new() }
    }

    pub(crate) fn add_row(&mut self, name: &'static str, structure: Option<&'static str>) {
        self.rows.push(Row {
            name,
            structure,
            cells: vec![Vec::new(); self.columns.len()],
            remarks: Vec::new(),
        });
    }

    /// Adds a row for each subject.
    pub(crate) fn add_rows<B: ?Sized>(&mut self, subjects: &[Subject<B>]) {
        subjects.iter().for_each(|subject| self.add_row(subject.name, subject.structure));
    }

    /// Records the figure of one round.
    pub(crate) fn record(&mut self, row: usize, column: usize, figure: f64) {
        self.rows[row].cells[column].push(figure);
    }

    /// Adds a remark that is printed below the table.
    pub(crate) fn remark(&mut self, row: usize, remark: String) {
        self.rows[row].remarks.push(remark);
    }

    /// A line of JSON for each of our figures and each peer.
    fn lines(&self) -> impl Iterator<Item = String> {
        let ours = self.rows.iter().filter(|row| row.structure.is_some());
        let pairs = ours.flat_map(|ours| {
            let peers = self.rows.iter().filter(|row| row.structure.is_none());
            peers.map(move |peer| (ours, peer))
        });
        let figures = pairs.flat_map(|pair| (0..self.columns.len()).map(move |at| (pair, at)));
        figures.filter_map(|((ours, peer), column)| self.line(ours, peer, column))
    }

    /// Returns `None` if one of the two rows has no figure in the column.
    fn line(&self, ours: &Row, peer: &Row, column: usize) -> Option<String> {
        let Column { bench, unit, n } = self.columns[column];
        let (own, other) = (&ours.cells[column], &peer.cells[column]);
        let comparison = Comparison {
            title: self.title.clone(),
            structure: ours.structure?.into(),
            ours_name: ours.name.into(),
            bench: bench.into(),
            key: self.key.into(),
            n,
            threads: 1,
            unit: unit.into(),
            ours: rounded(median(own)?),
            peer: rounded(median(other)?),
            peer_name: peer.name.into(),
            ratio: ratio(own, other).map(|ratio| (ratio * 1e6).round() / 1e6),
            ours_remarks: ours.remarks.clone(),
            peer_remarks: peer.remarks.clone(),
        };
        Some(serde_json::to_string(&comparison).expect("strings and numbers have a JSON form"))
    }

    fn print(&self) {
        println!("\n{}", self.title);
        print!("{:26}", "");
        self.columns.iter().for_each(|column| print!("{:>1$}", column.bench, column.width()));
        println!();
        let ours = self.rows.iter().find(|row| row.structure.is_some());
        for row in &self.rows {
            print!("{:26}", row.name);
            for (at, (column, cells)) in self.columns.iter().zip(&row.cells).enumerate() {
                let figure = median(cells).map_or(String::new(), |figure| formatted(figure, 1));
                let ratio = ours.and_then(|ours| ratio(&ours.cells[at], cells));
                let ratio =
                    ratio.map_or(String::new(), |ratio| format!("({:>5})", formatted(ratio, 2)));
                print!("{figure:>0$} {ratio:7}", column.width() - 8);
            }
            println!();
        }
        for row in self.rows.iter().filter(|row| !row.remarks.is_empty()) {
            println!("    {}: {}", row.name, row.remarks.join(", "));
        }
    }
}

/// The output of a run: the terminal, and a file of JSON.
pub(crate) struct Report {
    json: Option<BufWriter<File>>,
}

impl Report {
    /// Starts a report that prints, and writes to the file `json` if one is given.
    pub(crate) fn new(
        json: Option<&Path>,
        quick: bool,
    ) -> Result<Self, Box<dyn std::error::Error>> {
        let origin = Origin { machine: machine::name(), quick, command: command() };
        println!("{}", origin.machine);
        println!("In brackets: peer / ours; above 1, ours is better.");
        let create = |path| File::create(path).map_err(|error| file_error(path, &error));
        let mut json = json.map(create).transpose()?.map(BufWriter::new);
        if let Some(json) = &mut json {
            writeln!(json, "{}", serde_json::to_string(&origin)?)?;
        }
        Ok(Self { json })
    }

    pub(crate) fn show(&mut self, results: &Results) -> Outcome {
        results.print();
        if let Some(json) = &mut self.json {
            results.lines().try_for_each(|line| writeln!(json, "{line}"))?;
            json.flush()?;
        }
        Ok(())
    }
}

/// An error message with the name of the file.
pub(crate) fn file_error(path: &Path, error: &dyn Display) -> String {
    format!("{}: {error}", path.display())
}

/// The command line of this run.
fn command() -> String {
    let args = env::args_os().skip(1).filter(|arg| arg != "--bench");
    let args = args.map(|arg| format!(" {}", arg.to_string_lossy()));
    let features = if cfg!(feature = "concurrent") { " --all-features" } else { "" };
    format!("cargo bench{features} --bench peers --{}", args.collect::<String>())
}

/// Rounds to a thousandth.
fn rounded(figure: f64) -> f64 {
    (figure * 1000.0).round() / 1000.0
}

/// Formats a figure, with one decimal fewer from 100 on.
pub(crate) fn formatted(figure: f64, decimals: usize) -> String {
    format!("{figure:.*}", if figure < 100.0 { decimals } else { decimals - 1 })
}

pub(crate) fn median(figures: &[f64]) -> Option<f64> {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied()
}

/// The median of peer / ours within the rounds.
fn ratio(ours: &[f64], peer: &[f64]) -> Option<f64> {
    let ratios: Vec<f64> = ours.iter().zip(peer).map(|(ours, peer)| peer / ours).collect();
    median(&ratios).filter(|ratio| ratio.is_finite())
}
