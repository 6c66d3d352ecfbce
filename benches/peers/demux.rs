//! Demultiplexers: the paper's, `TrashDemux`, and hash tables as tables of PCBs.
//!
//! A segment finds its PCB and counts itself there. All segments are for one port of one server; clients
//! are anywhere.
//!
//! ```text
//!     random      each segment is for any connection: as in TPC/A, and the worst for who remembers
//!     dependent   the same; but which segment comes next is known only when the PCB is found
//!     trains      four segments for a connection, then four for another one
//!     shuffled    random again; in tables whose PCBs were all removed and put in again, in other orders
//!     PCBs        examined for a segment, of random ones and of trains
//! ```
//!
//! A fresh list has its PCBs in memory in the order in which it comes by them, which a long life does not
//! leave it. That is what *shuffled* is for. The lists get fewer segments than the others, so that all
//! take about as long. All segments carry data, and nothing is sent: so `SendReceive` has only one PCB to
//! remember here.

mod contestant;
mod segments;
mod tables;

use flowtable::DefaultHashBuilder;
use flowtable::demux::{
    BsdList, ConnectionId, MoveToFront, SendReceive, Sequent, SequentMoveToFront, TrashDemux,
};
use hashbrown::DefaultHashBuilder as Foldhash;

use crate::args::Plan;
use crate::board::{Board, Column, Outcome, Report, median};
use crate::entrant::{Timed, in_turn, ours, peer};
use contestant::{Contestant, Lists};
use segments::{Order, Segments};
use tables::{ById, ByName, Hashed};

/// The bytes of a name, for the boards.
const KEY: &str = "12";

/// What is timed, and of whose PCBs.
const BENCHES: [(&str, Order); 4] = [
    ("random", Order::Random),
    ("dependent", Order::Dependent),
    ("trains of four", Order::Trains),
    ("shuffled", Order::Random),
];

/// Which of [`BENCHES`] comes after the PCBs have moved.
const SHUFFLED: usize = 3;

/// With more PCBs, each of the lists takes half a minute to fill: there is one of them then, and its PCBs
/// are not moved.
const LONG: usize = 20_000;

/// What the rows of `Sequent` and `BsdList` are called, which are compared.
const SEQUENT: &str = "Sequent, 19 chains";
const BSD: &str = "BsdList";

/// How much is done.
struct Effort {
    rounds: usize,
    /// Segments of a round.
    segments: usize,
    /// PCBs that a list examines in a round, about.
    pcbs: usize,
}

pub(crate) fn run(plan: &Plan, report: &mut Report) -> Outcome {
    println!("\nDemux");
    let full = [4, 8, 16, 32, 64, 256, 2_000, 16_000, 100_000];
    for &n in plan.sizes(&full, &[4, 16, 64, 2_000, 16_000]) {
        let effort = match (plan.quick, n <= LONG) {
            (true, _) => Effort { rounds: 5, segments: 1 << 15, pcbs: 1 << 20 },
            (false, true) => Effort { rounds: 15, segments: 1 << 16, pcbs: 1 << 21 },
            (false, false) => Effort { rounds: 7, segments: 1 << 16, pcbs: 1 << 21 },
        };
        report.show(&measured(n, &effort))?;
    }
    Ok(())
}

/// Everybody, ours first. All have the same seeds.
fn contestants(n: usize) -> Vec<Contestant> {
    let (ahash, foldhash) = (DefaultHashBuilder::new(), Foldhash::default());
    let [a, b, c, d, e] = std::array::from_fn(|_| ahash.clone());
    let [f, g] = std::array::from_fn(|_| foldhash.clone());
    let many = (n / 4).max(1);
    let chains = "there is memory for the chains";
    let mut contestants = vec![
        ours("demux", "TrashDemux", Lists(0, ByName(TrashDemux::with_hasher(a)))),
        ours(
            "demux+foldhash",
            "TrashDemux + foldhash",
            Lists(0, ByName(TrashDemux::with_hasher(f))),
        ),
        ours("connection_id", "ConnectionId", Lists(0, ById(ConnectionId::new(n as u32)))),
        ours(
            "sequent/4",
            "Sequent, N / 4 chains",
            Lists(many, ByName(Sequent::with_chains_and_hasher(many, b).expect(chains))),
        ),
        ours(
            "sequent",
            SEQUENT,
            Lists(19, ByName(Sequent::with_chains_and_hasher(19, c).expect(chains))),
        ),
        ours(
            "sequent_move_to_front",
            "SequentMoveToFront, 19",
            Lists(19, ByName(SequentMoveToFront::with_chains_and_hasher(19, d).expect(chains))),
        ),
        peer(BSD, Lists(1, ByName(BsdList::new()))),
        peer("hashbrown + foldhash", Lists(0, Hashed(hashbrown::HashMap::with_hasher(g)))),
        peer("hashbrown + ahash", Lists(0, Hashed(hashbrown::HashMap::with_hasher(e)))),
    ];
    if n <= LONG {
        contestants.push(ours(
            "move_to_front",
            "MoveToFront",
            Lists(1, ByName(MoveToFront::new())),
        ));
        contestants.push(ours("send_receive", "SendReceive", Lists(1, ByName(SendReceive::new()))));
    }
    contestants
}

fn measured(n: usize, effort: &Effort) -> Board {
    let mut segments = Segments::new(n);
    let mut contestants = contestants(n);
    let mut board = board(n, effort, &contestants);
    for contestant in &mut contestants {
        contestant.fill(&segments.clients);
    }
    let mut ratios = Vec::new();
    for (column, &(_, order)) in BENCHES.iter().enumerate() {
        if column == SHUFFLED {
            if n > LONG {
                continue;
            }
            let (out, back) = (segments.shuffled(), segments.shuffled());
            contestants.iter_mut().for_each(|contestant| contestant.renew(&out, &back));
        }
        for round in 0..effort.rounds {
            let figures = turns(&mut contestants, (order, round), &mut segments, effort);
            figures.iter().enumerate().for_each(|(row, timed)| board.note(row, column, timed.ns));
            if column == 0 {
                ratios.push(sequent_ratio(&contestants, &figures));
            }
        }
    }
    for (column, order) in [Order::Random, Order::Trains].into_iter().enumerate() {
        let asked = segments.draw(order, effort.segments);
        for (row, contestant) in contestants.iter_mut().enumerate() {
            let count = contestant.share(n, effort.segments, effort.pcbs);
            if let Some(examined) = contestant.examine(&asked[..count]) {
                board.note(row, BENCHES.len() + column, examined);
            }
        }
    }
    let sequent = contestants.iter().position(|contestant| contestant.name == SEQUENT);
    let times = median(&ratios).unwrap_or(f64::NAN);
    board.remark(sequent.expect("it takes part"), format!("{times:.1} times as fast as {BSD}"));
    board
}

fn board(n: usize, effort: &Effort, contestants: &[Contestant]) -> Board {
    let title =
        format!("{n} PCBs of 8 bytes: ns for a segment, medians of {} rounds", effort.rounds);
    let timed = BENCHES.iter().map(|&(bench, _)| Column { bench, unit: "ns", n });
    let counted = ["PCBs, random", "PCBs, trains"].map(|bench| Column { bench, unit: "PCBs", n });
    let mut board = Board::new(title, KEY, timed.chain(counted).collect());
    board.add_rows(contestants);
    board
}

/// A round: another contestant begins each. The figures are in the order of the contestants.
fn turns(
    contestants: &mut [Contestant],
    (order, round): (Order, usize),
    segments: &mut Segments,
    effort: &Effort,
) -> Vec<Timed> {
    let n = segments.clients.len();
    // The turns of the others have thrown a table out of the caches, so it is warmed; with other
    // segments, since those that move PCBs would have the PCBs of the same ones in front.
    let [warming, asked] = [(); 2].map(|()| segments.draw(order, effort.segments));
    let mut figures = vec![Timed::default(); contestants.len()];
    for at in in_turn(round, contestants.len()) {
        let contestant = &mut contestants[at];
        let count = contestant.share(n, effort.segments, effort.pcbs);
        contestant.run(order, &warming[..count]);
        figures[at] = contestant.run(order, &asked[..count]);
        let sum = asked[..count].iter().map(|client| u64::from(client.id)).sum::<u64>();
        assert_eq!(figures[at].sum, sum, "{} finds something else", contestant.name);
    }
    figures
}

/// How many times as fast as `BsdList` `Sequent` is.
fn sequent_ratio(contestants: &[Contestant], figures: &[Timed]) -> f64 {
    let of = |name| {
        let at = contestants.iter().position(|contestant| contestant.name == name);
        figures[at.expect("it takes part")].ns
    };
    of(BSD) / of(SEQUENT)
}
