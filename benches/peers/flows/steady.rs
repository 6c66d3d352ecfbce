//! The board of full tables: rounds in which flows come and end, and most packets hit.

use super::table::How;
use super::traffic::{Law, Senders};
use super::{Contestants, KEY, gap};
use crate::board::{Board, Column, median};
use crate::contestant::BURST;
use crate::entrant::in_turn;

/// Of the places of a table, so many hundredths are for flows that send. The others are for those that
/// have ended, until a table knows.
const SENDING: usize = 60;

/// Packets before the rounds, for each place: until as many flows end as begin.
const WARM_UP: usize = 8;

/// Packets that are made at once.
const CHUNK: usize = 1 << 16;

/// What the rounds were for one contestant.
#[derive(Clone, Default)]
struct Tally {
    ns: [Vec<f64>; 2],
    packets: u64,
    fresh: u64,
}

/// Rounds of packets one by one, and in bursts.
pub(crate) fn steady(
    contestants: &mut Contestants,
    law: Law,
    capacity: usize,
    quick: bool,
) -> Board {
    let (rounds, round) = if quick { (3, 1 << 16) } else { (15, 1 << 18) };
    let title = format!(
        "{capacity} flows, packets of known ones {}: ns for a packet; bursts of {BURST}; medians of {rounds} rounds",
        law.name()
    );
    let names = match law {
        Law::Uniform => ["uniform", "uniform, burst"],
        Law::Zipf => ["zipf", "zipf, burst"],
    };
    let columns = names.map(|bench| Column { bench, unit: "ns", n: capacity });
    let mut board = Board::new(title, KEY, columns.to_vec());
    let mut senders = Senders::new(capacity * SENDING / 100, law, gap(capacity));
    warm_up(contestants, &mut senders, capacity);

    let mut tallies = vec![Tally::default(); contestants.len()];
    board.add_rows(contestants);
    for number in 0..rounds {
        for (column, how) in [How::Single, How::Burst].into_iter().enumerate() {
            let packets = senders.mixed(round);
            for row in in_turn(number, contestants.len()) {
                let forwarded = contestants[row].forward(how, &packets);
                board.note(row, column, forwarded.ns);
                let tally = &mut tallies[row];
                tally.ns[column].push(forwarded.ns);
                tally.packets += packets.len() as u64;
                tally.fresh += forwarded.fresh;
            }
        }
    }
    let now = senders.now().as_nanos() / gap(capacity);
    for (row, (contestant, tally)) in contestants.iter_mut().zip(tallies).enumerate() {
        board.remark(row, tally.remark());
        board.remark(row, format!("{} flows", contestant.len()));
        assert_eq!(contestant.close().packets, now, "{}: packets", contestant.name);
    }
    board
}

/// Fills all tables, and goes on until nothing changes.
fn warm_up(contestants: &mut Contestants, senders: &mut Senders, capacity: usize) {
    contestants.iter_mut().for_each(|contestant| contestant.open(capacity));
    let each = senders.each();
    contestants.iter_mut().for_each(|contestant| _ = contestant.forward(How::Single, &each));
    for _ in 0..(WARM_UP * capacity).div_ceil(CHUNK) {
        let packets = senders.mixed(CHUNK);
        contestants.iter_mut().for_each(|contestant| _ = contestant.forward(How::Single, &packets));
    }
}

impl Tally {
    fn remark(&self) -> String {
        let [single, burst] =
            [0, 1].map(|column| 1000.0 / median(&self.ns[column]).unwrap_or(f64::INFINITY));
        let hits = 100.0 - 100.0 * self.fresh as f64 / self.packets as f64;
        format!("{single:.2} Mpps, in bursts {burst:.2}, {hits:.1} % hits")
    }
}
