//! A flood: connections that nobody answers, ten times as many as there are places.
//!
//! ```text
//!     handshake   each connection: SYN, SYN ACK, ACK                half of the places
//!     calm        packets of these                                  as many packets as
//!     flood       one packet in ten of these, nine begin new ones   here
//!     audit       a packet of each connection: is it still there?
//! ```

use super::table::How;
use super::traffic::{Law, Senders};
use super::{Contestants, KEY};
use crate::board::{Board, Column};
use crate::entrant::in_turn;

/// Nanoseconds between packets: a million in a second.
const GAP: u64 = 1000;

/// New connections for each place.
const NEW: usize = 10;

/// Columns, and what their figures are.
const COLUMNS: [(&str, &str); 4] =
    [("calm", "ns"), ("flood", "ns"), ("flood / calm", "ratio"), ("established lost", "flows")];

pub(crate) fn flood(contestants: &mut Contestants, capacity: usize, quick: bool) -> Board {
    let rounds = if quick { 1 } else { 5 };
    let connections = capacity / 2;
    let packets = capacity * NEW * 10 / 9;
    let title = format!(
        "{connections} established connections in {capacity} places, {packets} packets for ten new ones a place: ns for a packet; medians of {rounds} rounds"
    );
    let columns = COLUMNS.map(|(bench, unit)| Column { bench, unit, n: capacity });
    let mut board = Board::new(title, KEY, columns.to_vec());
    board.add_rows(contestants);

    let mut senders = Senders::new(connections, Law::Uniform, GAP);
    let handshakes = [senders.each(), senders.each(), senders.each()];
    let calm = senders.known(packets);
    let (flood, known) = senders.flooded(packets);
    let audit = senders.each();
    let sent = senders.now().as_nanos() / GAP;
    for round in 0..rounds {
        for row in in_turn(round, contestants.len()) {
            let contestant = &mut contestants[row];
            contestant.open(capacity);
            handshakes.iter().for_each(|packets| _ = contestant.forward(How::Single, packets));
            let calm = contestant.forward(How::Single, &calm);
            assert_eq!(calm.fresh, 0, "{}: there is room for all", contestant.name);
            let flooded = contestant.forward(How::Single, &flood);
            let audited = contestant.forward(How::Single, &audit);
            // New are those of the flood, and those that were lost and came again.
            let lost = flooded.fresh + audited.fresh - (packets - known) as u64;
            let figures = [calm.ns, flooded.ns, flooded.ns / calm.ns, lost as f64];
            figures
                .iter()
                .enumerate()
                .for_each(|(column, &figure)| board.note(row, column, figure));
            assert_eq!(contestant.close().packets, sent, "{}: packets", contestant.name);
        }
    }
    board
}
