//! How long one packet may take: every one of many is timed.
//!
//! What is no work of the table is left out as for maps: memory is there already, there are three
//! runs, and the shortest time of each packet counts; see [`crate::pauses`]. The same is done
//! with the looks for idle flows, which are apart. What is left of the machine is what a table that
//! does nothing but count shows.

use std::ops::Range;

use flowtable::{Packet, Timestamp};

use super::meter::Ledger;
use super::table::{Contestant, Table};
use super::traffic::{Law, Packets, Senders};
use super::{Contestants, KEY, Name, gap};
use crate::board::{Board, Column};
use crate::contestant::BURST;
use crate::entrant::{in_turn, peer};
use crate::memory;
use crate::pauses::{keep_least, longest};
use bench_common::machine;

const RUNS: usize = 3;

/// Bytes to have at hand for each flow, twice: more than any of the tables asks for while it grows.
const SPARE: usize = 512;

/// Percentiles of a part.
const PERCENTILES: [(&str, f64); 4] =
    [("p50", 0.50), ("p99", 0.99), ("p99.9", 0.999), ("p99.99", 0.9999)];

/// And what there is once of all runs.
const WORST: [&str; 3] = ["worst, repeated", "worst, once", "worst look, repeated"];

/// The shortest times of one contestant, over the runs.
struct Times {
    packets: Vec<u32>,
    looks: Vec<u32>,
}

/// All fill, and go on; a board for each.
pub(crate) fn pauses(mut contestants: Contestants, capacity: usize, quick: bool) -> [Board; 2] {
    contestants.push(peer("no table", |_| Nothing::default()));
    let full = if quick { 200_000 } else { 2_000_000 };
    let mut senders = Senders::new(capacity, Law::Uniform, gap(capacity));
    let parts = [senders.each(), senders.mixed(full)];
    let titles = ["while a table fills", "when it is full"].map(|part| {
        format!(
            "{capacity} flows: ns for one packet {part}, and for one look after {BURST} of them"
        )
    });
    let mut boards = titles.map(|title| {
        let benches = PERCENTILES.iter().map(|&(bench, _)| bench).chain(WORST);
        let columns = benches.map(|bench| Column { bench, unit: "ns", n: capacity });
        Board::new(title, KEY, columns.collect())
    });
    boards.iter_mut().for_each(|board| board.add_rows(&contestants));
    memory::keep(SPARE * capacity);
    let mut shortest: Vec<Times> =
        contestants.iter().map(|_| Times::longest(count(&parts))).collect();
    // Touched here, as zeros would not have pages yet.
    let mut times = Times::longest(count(&parts));
    for run in 0..RUNS {
        for row in in_turn(run, contestants.len()) {
            let faults = pace(&mut contestants[row], capacity, &parts, &mut times);
            boards[1].remark(row, format!("{faults} new pages"));
            note(&mut boards, row, &parts, &mut times, &mut shortest[row]);
        }
    }
    memory::give_back();
    for (row, shortest) in shortest.iter().enumerate() {
        for (board, (packets, looks)) in boards.iter_mut().zip(ranges(&parts)) {
            board.note(row, PERCENTILES.len(), longest(&shortest.packets[packets]));
            board.note(row, PERCENTILES.len() + 2, longest(&shortest.looks[looks]));
        }
    }
    boards
}

/// One run, and the pages that it touched first, as far as the system tells.
fn pace(
    contestant: &mut Contestant,
    capacity: usize,
    parts: &[Packets; 2],
    times: &mut Times,
) -> u64 {
    contestant.open(capacity);
    let faults = machine::page_faults_of(|| {
        for (part, (packets, looks)) in parts.iter().zip(ranges(parts)) {
            contestant.pace(part, &mut times.packets[packets], &mut times.looks[looks]);
        }
    });
    contestant.close();
    faults
}

/// The figures of one run.
fn note(
    boards: &mut [Board; 2],
    row: usize,
    parts: &[Packets; 2],
    times: &mut Times,
    shortest: &mut Times,
) {
    keep_least(&mut shortest.packets, &times.packets);
    keep_least(&mut shortest.looks, &times.looks);
    for (board, (packets, _)) in boards.iter_mut().zip(ranges(parts)) {
        let times = &mut times.packets[packets];
        board.note(row, PERCENTILES.len() + 1, longest(times));
        for (column, (_, part)) in PERCENTILES.iter().enumerate() {
            let rank = ((times.len() - 1) as f64 * part) as usize;
            board.note(row, column, f64::from(*times.select_nth_unstable(rank).1));
        }
    }
}

fn count(parts: &[Packets; 2]) -> usize {
    parts.iter().map(Packets::len).sum()
}

/// Where the packets and the looks of each part are among all.
fn ranges(parts: &[Packets; 2]) -> [(Range<usize>, Range<usize>); 2] {
    let [fill, full] = [parts[0].len(), parts[1].len()];
    let looks = [fill / BURST, fill / BURST + full / BURST];
    [(0..fill, 0..looks[0]), (fill..fill + full, looks[0]..looks[1])]
}

impl Times {
    fn longest(packets: usize) -> Self {
        Self { packets: vec![u32::MAX; packets], looks: vec![u32::MAX; packets / BURST] }
    }
}

/// Not a table: something to do that takes as long every time.
#[derive(Default)]
struct Nothing {
    last: u32,
}

impl Table for Nothing {
    fn see(&mut self, name: &Name, _: Packet, length: u16, _: Timestamp, _: &mut Ledger) -> bool {
        let mix = |last: u32, step: u32| (last ^ step).wrapping_mul(0x9e37_79b1).rotate_left(15);
        self.last = (0..64).fold(self.last ^ name.src.to_bits() ^ u32::from(length), mix);
        self.last & 1 == 0
    }

    fn advance(&mut self, _: Timestamp, _: usize, _: &mut Ledger) {}

    fn len(&self) -> usize {
        0
    }

    fn drain(&mut self, _: &mut Ledger) {}
}
