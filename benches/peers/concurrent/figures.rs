//! Figures that are collected until all rounds are done, when the best peer can be chosen.

use super::Key;
use super::subject::{Role, SharedMapSubject};
use crate::keys;
use crate::results::{Column, Results, median};

/// Figures of all subjects in some columns. Less is better.
pub(crate) struct Figures {
    title: String,
    columns: Vec<Column>,
    rows: Vec<Row>,
}

struct Row {
    name: &'static str,
    structure: Option<&'static str>,
    role: Role,
    /// The figures of all rounds, by column.
    cells: Vec<Vec<f64>>,
    remarks: Vec<String>,
    /// The number of runs or lookups that missed a present key.
    missed: usize,
    /// The share of time spent waiting for a CPU, by run.
    waiting: Vec<f64>,
}

impl Figures {
    pub(crate) fn new(title: String, columns: Vec<Column>, subjects: &[SharedMapSubject]) -> Self {
        let rows = subjects.iter().map(|subject| Row {
            name: subject.name,
            structure: subject.structure,
            role: subject.benchmark.role(),
            cells: vec![Vec::new(); columns.len()],
            remarks: Vec::new(),
            missed: 0,
            waiting: Vec::new(),
        });
        let rows = rows.collect();
        Self { title, columns, rows }
    }

    pub(crate) fn record(&mut self, row: usize, column: usize, figure: f64) {
        self.rows[row].cells[column].push(figure);
    }

    pub(crate) fn remark(&mut self, row: usize, remark: String) {
        self.rows[row].remarks.push(remark);
    }

    /// Whether the row is that of a map.
    pub(crate) fn is_map(&self, row: usize) -> bool {
        self.rows[row].role != Role::Baseline
    }

    /// Counts lookups that missed a present key while another thread updated it. Peers may do that:
    /// scc's `HashIndex` sometimes does, as it inserts the new value before it removes the old one,
    /// and a reader may check the new slot too early and the old one too late.
    pub(crate) fn missed(&mut self, row: usize, times: usize) {
        let row = &mut self.rows[row];
        row.missed += times;
        let is_ours = row.role == Role::Ours;
        assert!(!is_ours || times == 0, "{} missed a present key", row.name);
    }

    /// Adds the share of time in which a run waited for a CPU.
    pub(crate) fn waiting(&mut self, row: usize, share: f64) {
        self.rows[row].waiting.push(share);
    }

    /// Returns the figures of all rounds.
    pub(crate) fn cells(&self, row: usize, column: usize) -> &[f64] {
        &self.rows[row].cells[column]
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows.len()
    }

    /// Returns the results, with an additional row for the peer with the best median in each
    /// column.
    pub(crate) fn results(self) -> Results {
        let best: Vec<_> = (0..self.columns.len()).map(|column| self.best(column)).collect();
        let mut results = Results::new(self.title, <Key as keys::Key>::NAME, self.columns);
        let last = self.rows.len();
        for row in &self.rows {
            results.add_row(row.name, row.structure);
        }
        results.add_row("best of papaya to scc", None);
        for (column, best) in best.iter().enumerate().filter_map(|(at, best)| Some((at, (*best)?)))
        {
            let row = &self.rows[best];
            row.cells[column].iter().for_each(|&figure| results.record(last, column, figure));
            results.remark(last, row.name.into());
        }
        for (at, row) in self.rows.into_iter().enumerate() {
            for (column, cells) in row.cells.iter().enumerate() {
                cells.iter().for_each(|&figure| results.record(at, column, figure));
            }
            row.remarks.into_iter().for_each(|remark| results.remark(at, remark));
            if !row.waiting.is_empty() {
                let mean = row.waiting.iter().sum::<f64>() / row.waiting.len() as f64;
                results.remark(at, format!("{:.1} % waiting for a CPU", 100.0 * mean));
            }
            if row.missed > 0 {
                results.remark(at, format!("missed a present key {} times", row.missed));
            }
        }
        results
    }

    /// Returns the peer with the best median in a column.
    fn best(&self, column: usize) -> Option<usize> {
        let figure = |row: &Row| median(&row.cells[column]);
        let peers = self.rows.iter().enumerate().filter(|(_, row)| row.role == Role::Peer);
        let figures = peers.filter_map(|(at, row)| Some((figure(row)?, at)));
        figures.min_by(|(one, _), (other, _)| one.total_cmp(other)).map(|(_, at)| at)
    }
}
