//! Building a table from its routes in a random order, and the bytes that it then has.

use super::contestant::Route;
use super::family::Family;
use super::{BUILD, BYTES, Contestants};
use crate::board::Board;
use crate::entrant::in_turn;
use crate::memory;

/// Everybody builds a table some times; the last one stays.
pub(crate) fn builds<A: Family>(
    board: &mut Board,
    contestants: &mut Contestants<A>,
    routes: &[Route<A>],
    quick: bool,
) {
    let each = |figure: usize| figure as f64 / routes.len() as f64;
    for round in 0..if quick { 2 } else { 7 } {
        for at in in_turn(round, contestants.len()) {
            contestants[at].clear();
            let before = memory::live();
            memory::forget_peak();
            let time = contestants[at].build(routes).as_nanos() as f64;
            board.note(at, BUILD, time / routes.len() as f64);
            board.note(at, BUILD + 1, time / 1e6);
            board.note(at, BYTES, each(memory::live() - before));
            board.note(at, BYTES + 1, each(memory::peak() - before));
        }
    }
    for (at, contestant) in contestants.iter().enumerate() {
        contestant.shape().into_iter().for_each(|shape| board.remark(at, shape));
    }
}
