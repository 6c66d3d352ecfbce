//! Demultiplexers: the paper's, `TrashDemux`, and hash tables as tables of PCBs.
//!
//! A segment looks up its PCB and increments a counter in it. All segments are for one port of one
//! server, from clients with random addresses.
//!
//! ```text
//!     random      segments of random connections: TPC/A, the worst case of one-PCB caches
//!     dependent   random segments, the next of which depends on the PCB found
//!     trains      four segments of a connection, then four of another one
//!     shuffled    random segments, in tables whose PCBs were removed and inserted in other orders
//!     PCBs        examined per segment, for random segments and for trains
//! ```
//!
//! A new list has its PCBs in memory in the order of traversal, an old one does not: hence
//! *shuffled*. Lists get fewer segments than tables, so that all rounds take about as long. All
//! segments carry data, and nothing is sent: `SendReceive` caches only one PCB here.

mod segments;
mod subject;
mod tables;

use flowtable::DefaultHashBuilder;
use flowtable::demux::{
    BsdList, ConnectionId, MoveToFront, SendReceive, Sequent, SequentMoveToFront, TrashDemux,
};
use hashbrown::DefaultHashBuilder as Foldhash;

use crate::args::Plan;
use crate::results::{Column, Outcome, Report, Results, median};
use crate::subject::{Timed, ours, peer, rotation};
use segments::{Order, Segments};
use subject::{DemuxSubject, lists};
use tables::{ById, ByName, Hashed};

/// The bytes of a name, for the results.
const KEY: &str = "12";

/// The timed columns, and the order of their segments.
const BENCHES: [(&str, Order); 4] = [
    ("random", Order::Random),
    ("dependent", Order::Dependent),
    ("trains of four", Order::Trains),
    ("shuffled", Order::Random),
];

/// The column of [`BENCHES`] that is measured after the PCBs were reinserted.
const SHUFFLED: usize = 3;

/// With more PCBs a list takes half a minute to fill: there is only one list then, and its PCBs are
/// not reinserted.
const LONG: usize = 20_000;

/// The rows of `Sequent` and `BsdList`, which are compared.
const SEQUENT: &str = "Sequent, 19 chains";
const BSD: &str = "BsdList";

/// The amount of work.
struct Effort {
    rounds: usize,
    /// Segments per round.
    segments: usize,
    /// PCBs that a list examines per round, approximately.
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

/// All subjects, ours first, with the same seeds.
fn subjects(n: usize) -> Vec<DemuxSubject> {
    let (our_hash, foldhash) = (DefaultHashBuilder::new(), Foldhash::default());
    let [a, b, c, d, e] = std::array::from_fn(|_| our_hash.clone());
    let [f, g] = std::array::from_fn(|_| foldhash.clone());
    let quarter = (n / 4).max(1);
    let chains = "memory for the chains";
    let mut subjects = vec![
        ours("demux", "TrashDemux", lists(0, ByName(TrashDemux::with_hasher(a)))),
        ours(
            "demux+foldhash",
            "TrashDemux + foldhash",
            lists(0, ByName(TrashDemux::with_hasher(f))),
        ),
        ours("connection_id", "ConnectionId", lists(0, ById(ConnectionId::new(n as u32)))),
        ours(
            "sequent/4",
            "Sequent, N / 4 chains",
            lists(quarter, ByName(Sequent::with_chains_and_hasher(quarter, b).expect(chains))),
        ),
        ours(
            "sequent",
            SEQUENT,
            lists(19, ByName(Sequent::with_chains_and_hasher(19, c).expect(chains))),
        ),
        ours(
            "sequent_move_to_front",
            "SequentMoveToFront, 19",
            lists(19, ByName(SequentMoveToFront::with_chains_and_hasher(19, d).expect(chains))),
        ),
        peer(BSD, lists(1, ByName(BsdList::new()))),
        peer("hashbrown + foldhash", lists(0, Hashed(hashbrown::HashMap::with_hasher(g)))),
        peer("hashbrown + our hash", lists(0, Hashed(hashbrown::HashMap::with_hasher(e)))),
    ];
    if n <= LONG {
        subjects.push(ours("move_to_front", "MoveToFront", lists(1, ByName(MoveToFront::new()))));
        subjects.push(ours("send_receive", "SendReceive", lists(1, ByName(SendReceive::new()))));
    }
    subjects
}

fn measured(n: usize, effort: &Effort) -> Results {
    let mut segments = Segments::new(n);
    let mut subjects = subjects(n);
    let mut results = results(n, effort, &subjects);
    for subject in &mut subjects {
        subject.benchmark.fill(&segments.clients);
    }
    let mut ratios = Vec::new();
    for (column, &(_, order)) in BENCHES.iter().enumerate() {
        if column == SHUFFLED {
            if n > LONG {
                continue;
            }
            let (removals, insertions) = (segments.shuffled(), segments.shuffled());
            for subject in &mut subjects {
                subject.benchmark.reinsert(&removals, &insertions);
            }
        }
        for round in 0..effort.rounds {
            let figures = turns(&mut subjects, (order, round), &mut segments, effort);
            figures
                .iter()
                .enumerate()
                .for_each(|(row, timed)| results.record(row, column, timed.ns));
            if column == 0 {
                ratios.push(sequent_ratio(&subjects, &figures));
            }
        }
    }
    for (column, order) in [Order::Random, Order::Trains].into_iter().enumerate() {
        let drawn = segments.draw(order, effort.segments);
        for (row, subject) in subjects.iter_mut().enumerate() {
            let count = subject.benchmark.share(n, effort.segments, effort.pcbs);
            if let Some(examined) = subject.benchmark.examine(&drawn[..count]) {
                results.record(row, BENCHES.len() + column, examined);
            }
        }
    }
    let sequent = subjects.iter().position(|subject| subject.name == SEQUENT);
    let times = median(&ratios).unwrap_or(f64::NAN);
    results.remark(sequent.expect("it is a subject"), format!("{times:.1} times as fast as {BSD}"));
    results
}

fn results(n: usize, effort: &Effort, subjects: &[DemuxSubject]) -> Results {
    let title =
        format!("{n} PCBs of 8 bytes: ns for a segment, medians of {} rounds", effort.rounds);
    let timed = BENCHES.iter().map(|&(bench, _)| Column { bench, unit: "ns", n });
    let counted = ["PCBs, random", "PCBs, trains"].map(|bench| Column { bench, unit: "PCBs", n });
    let mut results = Results::new(title, KEY, timed.chain(counted).collect());
    results.add_rows(subjects);
    results
}

/// Runs one round. The figures are in the order of the subjects.
fn turns(
    subjects: &mut [DemuxSubject],
    (order, round): (Order, usize),
    segments: &mut Segments,
    effort: &Effort,
) -> Vec<Timed> {
    let n = segments.clients.len();
    // The turns of the other subjects have evicted a table from the CPU's caches, so it is warmed
    // up: with other segments, as move-to-front lists would have the PCBs of the same ones in
    // front.
    let [warming, timed] = [(); 2].map(|()| segments.draw(order, effort.segments));
    let mut figures = vec![Timed::default(); subjects.len()];
    for at in rotation(round, subjects.len()) {
        let subject = &mut subjects[at];
        let count = subject.benchmark.share(n, effort.segments, effort.pcbs);
        subject.benchmark.run(order, &warming[..count]);
        figures[at] = subject.benchmark.run(order, &timed[..count]);
        let sum = timed[..count].iter().map(|client| u64::from(client.id)).sum::<u64>();
        assert_eq!(figures[at].sum, sum, "{}: a different result", subject.name);
    }
    figures
}

/// The time of `BsdList` divided by that of `Sequent`.
fn sequent_ratio(subjects: &[DemuxSubject], figures: &[Timed]) -> f64 {
    let of = |name| {
        let at = subjects.iter().position(|subject| subject.name == name);
        figures[at.expect("it is a subject")].ns
    };
    of(BSD) / of(SEQUENT)
}
