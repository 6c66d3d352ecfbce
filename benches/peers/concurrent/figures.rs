//! Figures that are kept until all rounds are done, as only then there is a best peer.

use super::Key;
use super::contestant::{Contestant, Part};
use crate::board::{Board, Column, median};
use crate::keys;

/// Figures of everybody in some columns. Less is better.
pub(crate) struct Figures {
    title: String,
    columns: Vec<Column>,
    rows: Vec<Row>,
}

struct Row {
    name: &'static str,
    structure: Option<&'static str>,
    part: Part,
    /// For each column the figures of the rounds.
    cells: Vec<Vec<f64>>,
    remarks: Vec<String>,
    /// How often a key was there and not found.
    overlooked: usize,
    /// The part of the time that was waited for a processor, of each run.
    waited: Vec<f64>,
}

impl Figures {
    pub(crate) fn new(title: String, columns: Vec<Column>, contestants: &[Contestant]) -> Self {
        let rows = contestants.iter().map(|contestant| Row {
            name: contestant.name,
            structure: contestant.structure,
            part: contestant.part(),
            cells: vec![Vec::new(); columns.len()],
            remarks: Vec::new(),
            overlooked: 0,
            waited: Vec::new(),
        });
        let rows = rows.collect();
        Self { title, columns, rows }
    }

    pub(crate) fn note(&mut self, row: usize, column: usize, figure: f64) {
        self.rows[row].cells[column].push(figure);
    }

    pub(crate) fn remark(&mut self, row: usize, remark: String) {
        self.rows[row].remarks.push(remark);
    }

    /// Whether the row is of somebody who finds things.
    pub(crate) fn is_map(&self, row: usize) -> bool {
        self.rows[row].part != Part::Machine
    }

    /// So often a key was there and not found, beside a writer. A peer may do that: scc's `HashIndex`
    /// does now and then, as it puts a new value in a free place before it takes the old one away, and
    /// a reader may look at the first too early and at the second too late.
    pub(crate) fn overlooked(&mut self, row: usize, times: usize) {
        let row = &mut self.rows[row];
        row.overlooked += times;
        let is_ours = row.part == Part::Ours;
        assert!(!is_ours || times == 0, "{} overlooks a key", row.name);
    }

    /// The part of its time that a run waited for a processor.
    pub(crate) fn waited(&mut self, row: usize, part: f64) {
        self.rows[row].waited.push(part);
    }

    /// All rounds of a row in a column.
    pub(crate) fn cells(&self, row: usize, column: usize) -> &[f64] {
        &self.rows[row].cells[column]
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows.len()
    }

    /// With a row more for the best of the rivals: in each column the one of the best median, so that
    /// nobody is chosen for its luck in a single round.
    pub(crate) fn board(self) -> Board {
        let best: Vec<_> = (0..self.columns.len()).map(|column| self.best(column)).collect();
        let mut board = Board::new(self.title, <Key as keys::Key>::NAME, self.columns);
        let last = self.rows.len();
        for row in &self.rows {
            board.add_row(row.name, row.structure);
        }
        board.add_row("best of papaya to scc", None);
        for (column, best) in best.iter().enumerate().filter_map(|(at, best)| Some((at, (*best)?)))
        {
            let row = &self.rows[best];
            row.cells[column].iter().for_each(|&figure| board.note(last, column, figure));
            board.remark(last, row.name.into());
        }
        for (at, row) in self.rows.into_iter().enumerate() {
            for (column, cells) in row.cells.iter().enumerate() {
                cells.iter().for_each(|&figure| board.note(at, column, figure));
            }
            row.remarks.into_iter().for_each(|remark| board.remark(at, remark));
            if !row.waited.is_empty() {
                let mean = row.waited.iter().sum::<f64>() / row.waited.len() as f64;
                board.remark(at, format!("{:.1} % waited for a processor", 100.0 * mean));
            }
            if row.overlooked > 0 {
                board
                    .remark(at, format!("overlooked {} times that a key is there", row.overlooked));
            }
        }
        board
    }

    /// The rival that is best in a column.
    fn best(&self, column: usize) -> Option<usize> {
        let figure = |row: &Row| median(&row.cells[column]);
        let rivals = self.rows.iter().enumerate().filter(|(_, row)| row.part == Part::Rival);
        let figures = rivals.filter_map(|(at, row)| Some((figure(row)?, at)));
        figures.min_by(|(one, _), (other, _)| one.total_cmp(other)).map(|(_, at)| at)
    }
}
