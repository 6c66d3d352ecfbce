//! Bytes for each flow of a full table, as the allocator counts them.

use super::table::How;
use super::traffic::{Law, Senders};
use super::{Contestants, KEY, gap};
use crate::board::{Board, Column};
use crate::memory;

/// Hundredths of the most flows: spread between powers of two, so that nobody's favourite size is asked
/// for alone.
const SIZES: [(usize, &str); 4] =
    [(10, "bytes, 1/10"), (23, "bytes, 23/100"), (46, "bytes, 46/100"), (100, "bytes, all")];

pub(crate) fn bytes(contestants: &mut Contestants, most: usize) -> Board {
    let title = format!("Bytes for each flow of full tables, up to {most} flows");
    let sizes = SIZES.map(|(part, bench)| (most * part / 100, bench));
    let mut columns = sizes.map(|(n, bench)| Column { bench, unit: "bytes", n }).to_vec();
    columns.push(Column { bench: "peak bytes, all", unit: "bytes", n: most });
    let mut board = Board::new(title, KEY, columns);
    board.add_rows(contestants);
    for (row, contestant) in contestants.iter_mut().enumerate() {
        for (column, (flows, _)) in sizes.into_iter().enumerate() {
            let packets = Senders::new(flows, Law::Uniform, gap(flows)).each();
            let before = memory::live();
            memory::forget_peak();
            contestant.open(flows);
            contestant.forward(How::Single, &packets);
            let each = |bytes: usize| (bytes - before) as f64 / flows as f64;
            board.note(row, column, each(memory::live()));
            if column == SIZES.len() - 1 {
                board.note(row, SIZES.len(), each(memory::peak()));
            }
            assert_eq!(contestant.len(), flows, "{}: flows", contestant.name);
            contestant.close();
        }
    }
    board
}
