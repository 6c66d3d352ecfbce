//! All packets stop. What it costs to end a flow, and how late it ends.
//!
//! ```text
//!     silent   packets 0 .. 10 s        nothing …                           ends 60 .. 70 s
//!     seen     packets 0 .. 10 s        again 30 .. 40 s       nothing …    ends 90 .. 100 s
//! ```
//!
//! A table looks as often, and at as many flows, as it would after packets at the rate at which these
//! came: flows end half as fast as it may look at them.

use std::time::Duration;

use super::table::{Contestant, How};
use super::traffic::{Law, Senders};
use super::{Contestants, IDLE, KEY};
use crate::board::{Board, Column};
use crate::contestant::BURST;
use crate::entrant::in_turn;

/// How long it takes until each flow has sent a packet.
const SPAN: Duration = Duration::from_secs(10);

/// From the first packet of a flow to the second one.
const AGAIN: Duration = Duration::from_secs(30);

/// Columns, and what their figures are.
const COLUMNS: [(&str, &str); 4] =
    [("silent, ns", "ns"), ("seen again, ns", "ns"), ("late, ms", "ms"), ("late again, ms", "ms")];

pub(crate) fn expiry(contestants: &mut Contestants, flows: usize, quick: bool) -> Board {
    let rounds = if quick { 1 } else { 3 };
    let title = format!("{flows} flows end: ns for each, and ms that one ends late at most");
    let columns = COLUMNS.map(|(bench, unit)| Column { bench, unit, n: flows });
    let mut board = Board::new(title, KEY, columns.to_vec());
    board.add_rows(contestants);
    for round in 0..rounds {
        for row in in_turn(round, contestants.len()) {
            let contestant = &mut contestants[row];
            for (column, is_seen_again) in [false, true].into_iter().enumerate() {
                contestant.open(flows);
                if let Some((ns, late)) = end_all(contestant, flows, is_seen_again) {
                    board.note(row, column, ns);
                    board.note(row, column + 2, late);
                }
                contestant.close();
            }
        }
    }
    board
}

/// Nanoseconds to end a flow, and milliseconds that one was late at most; none if it ends none.
fn end_all(contestant: &mut Contestant, flows: usize, again: bool) -> Option<(f64, f64)> {
    let gap = (SPAN.as_nanos() / flows as u128) as u64;
    let step = Duration::from_nanos(gap * BURST as u64);
    let mut senders = Senders::new(flows, Law::Uniform, gap);
    contestant.forward(How::Single, &senders.each());
    if again {
        let pause = AGAIN - SPAN;
        contestant.rest(senders.now(), senders.now() + pause, step);
        senders.rest(pause.as_nanos() as u64);
        contestant.forward(How::Single, &senders.each());
    }
    assert_eq!(contestant.len(), flows, "{}: nothing is idle yet", contestant.name);
    let now = senders.now();
    let time = contestant.rest(now, now + 2 * IDLE, step);
    let ended = contestant.ledger();
    if ended.flows == 0 {
        return None;
    }
    assert_eq!(ended.flows, flows as u64, "{}: all are idle", contestant.name);
    Some((time.as_nanos() as f64 / flows as f64, ended.latest as f64 / 1e6))
}
