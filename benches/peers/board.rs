//! Figures: a board collects them round by round, a report prints them and writes them down.

use std::env;
use std::fmt::Display;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::entrant::Entrant;
use bench_common::machine;

/// Of everything that may fail here.
pub(crate) type Outcome = Result<(), Box<dyn std::error::Error>>;

/// What is measured; less is better.
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

/// Where figures are from: the first line of JSON.
#[derive(Serialize, Deserialize)]
pub(crate) struct Origin {
    pub(crate) machine: String,
    /// Whether all was on a small scale.
    pub(crate) quick: bool,
    pub(crate) command: String,
}

/// A figure of ours beside a peer's: a line of JSON.
#[derive(Serialize, Deserialize)]
pub(crate) struct Figure {
    /// The title of its board.
    pub(crate) board: String,
    pub(crate) structure: String,
    /// Which of that structure's rows.
    pub(crate) ours_name: String,
    pub(crate) bench: String,
    pub(crate) key: String,
    pub(crate) n: usize,
    threads: usize,
    pub(crate) unit: String,
    pub(crate) ours: f64,
    pub(crate) peer: f64,
    pub(crate) peer_name: String,
    /// How many times ours is better, if that can be said.
    pub(crate) ratio: Option<f64>,
    pub(crate) ours_remarks: Vec<String>,
    pub(crate) peer_remarks: Vec<String>,
}

/// A contestant, and its figures.
struct Row {
    name: &'static str,
    /// The name of the structure, if it is one of ours.
    structure: Option<&'static str>,
    /// For each column the figures of the rounds.
    cells: Vec<Vec<f64>>,
    remarks: Vec<String>,
}

/// Figures of some contestants in some columns. The first one of ours is what ratios are printed for.
pub(crate) struct Board {
    title: String,
    key: &'static str,
    columns: Vec<Column>,
    rows: Vec<Row>,
}

impl Board {
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

    /// A row for each.
    pub(crate) fn add_rows<W: ?Sized>(&mut self, entrants: &[Entrant<W>]) {
        entrants.iter().for_each(|one| self.add_row(one.name, one.structure));
    }

    /// One more round of the figure of a row in a column.
    pub(crate) fn note(&mut self, row: usize, column: usize, figure: f64) {
        self.rows[row].cells[column].push(figure);
    }

    /// Something to say of a row.
    pub(crate) fn remark(&mut self, row: usize, remark: String) {
        self.rows[row].remarks.push(remark);
    }

    /// JSON for each figure of ours beside each peer's.
    fn lines(&self) -> impl Iterator<Item = String> {
        let ours = self.rows.iter().filter(|row| row.structure.is_some());
        let pairs = ours.flat_map(|ours| {
            let peers = self.rows.iter().filter(|row| row.structure.is_none());
            peers.map(move |peer| (ours, peer))
        });
        let figures = pairs.flat_map(|pair| (0..self.columns.len()).map(move |at| (pair, at)));
        figures.filter_map(|((ours, peer), column)| self.line(ours, peer, column))
    }

    /// None if one of the two has no figure there.
    fn line(&self, ours: &Row, peer: &Row, column: usize) -> Option<String> {
        let Column { bench, unit, n } = self.columns[column];
        let (own, other) = (&ours.cells[column], &peer.cells[column]);
        let figure = Figure {
            board: self.title.clone(),
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
        Some(serde_json::to_string(&figure).expect("it is plain"))
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
                let figure = median(cells).map_or(String::new(), |figure| short(figure, 1));
                let ratio = ours.and_then(|ours| ratio(&ours.cells[at], cells));
                let ratio =
                    ratio.map_or(String::new(), |ratio| format!("({:>5})", short(ratio, 2)));
                print!("{figure:>0$} {ratio:7}", column.width() - 8);
            }
            println!();
        }
        for row in self.rows.iter().filter(|row| !row.remarks.is_empty()) {
            println!("    {}: {}", row.name, row.remarks.join(", "));
        }
    }
}

/// Where figures go.
pub(crate) struct Report {
    json: Option<BufWriter<File>>,
}

impl Report {
    /// Prints; and writes to the file `json`, if there is one. What it prints first is where all this is from.
    pub(crate) fn new(
        json: Option<&Path>,
        quick: bool,
    ) -> Result<Self, Box<dyn std::error::Error>> {
        let origin = Origin { machine: machine::name(), quick, command: command() };
        println!("{}", origin.machine);
        println!("In brackets: how many times ours is better.");
        let create = |path| File::create(path).map_err(|error| in_file(path, &error));
        let mut json = json.map(create).transpose()?.map(BufWriter::new);
        if let Some(json) = &mut json {
            writeln!(json, "{}", serde_json::to_string(&origin)?)?;
        }
        Ok(Self { json })
    }

    pub(crate) fn show(&mut self, board: &Board) -> Outcome {
        board.print();
        if let Some(json) = &mut self.json {
            board.lines().try_for_each(|line| writeln!(json, "{line}"))?;
            json.flush()?;
        }
        Ok(())
    }
}

/// An error with the name of the file.
pub(crate) fn in_file(path: &Path, error: &dyn Display) -> String {
    format!("{}: {error}", path.display())
}

/// How this run was called, as `cargo bench` is told.
fn command() -> String {
    let words = env::args_os().skip(1).filter(|word| word != "--bench");
    let words = words.map(|word| format!(" {}", word.to_string_lossy()));
    let features = if cfg!(feature = "concurrent") { " --all-features" } else { "" };
    format!("cargo bench{features} --bench peers --{}", words.collect::<String>())
}

/// To a thousandth.
fn rounded(figure: f64) -> f64 {
    (figure * 1000.0).round() / 1000.0
}

/// With decimals where there is room for them.
pub(crate) fn short(figure: f64, decimals: usize) -> String {
    format!("{figure:.*}", if figure < 100.0 { decimals } else { decimals - 1 })
}

pub(crate) fn median(figures: &[f64]) -> Option<f64> {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied()
}

/// How many times ours is better than the peer, round by round.
fn ratio(ours: &[f64], peer: &[f64]) -> Option<f64> {
    let ratios: Vec<f64> = ours.iter().zip(peer).map(|(ours, peer)| peer / ours).collect();
    median(&ratios).filter(|ratio| ratio.is_finite())
}
