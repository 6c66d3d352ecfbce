//! Caches: `SourceHashCache` with an index that the packet brings, `ChainedCache`, and hash tables.
//!
//! ```text
//!     hit         packets of flows that all have, in a random order; the machine may overlap them
//!     dependent   the same, but which packet comes next is known only when the flow is found
//!     miss        packets of flows that nobody has
//!     bursts      hits, so many at a time
//!     stream      packets by Zipf's law, of four times as many flows as are cached; what is missing is put in
//! ```
//!
//! Flows have names of 12 bytes, values of 4, and random indices of 32 bits. For all but *stream* they are such that
//! none displaces another one: direct-mapped, in twice as many places as flows, and in sets. What is
//! displaced is what *stream* shows: beside the time stands how many of the packets were hits.
//!
//! *hashbrown, index as hash* gets the index, too, and is spared its hash.

mod contestant;
mod packets;
mod tables;

use flowtable::cache::Replacement::{LeastRecentlyUsed, Oldest, SecondChance};
use flowtable::{ChainedCache, DefaultHashBuilder, SourceHashCache};
use hashbrown::DefaultHashBuilder as Foldhash;

use crate::args::Plan;
use crate::board::{Board, Column, Outcome, Report};
use crate::entrant::{Agreed, in_turn, ours, peer};
use contestant::Contestant;
use packets::{Name, Packets};
use tables::{Chained, Hashed, Indexed, Linked, Sets};

/// The bytes of a name, for the boards.
const KEY: &str = "12";

/// What is timed.
#[derive(Clone, Copy)]
pub(crate) enum Bench {
    Hit,
    Dependent,
    Miss,
    /// So many at a time.
    Bursts(usize),
    Stream,
}

const BENCHES: [(&str, Bench); 6] = [
    ("hit", Bench::Hit),
    ("dependent hit", Bench::Dependent),
    ("miss", Bench::Miss),
    ("burst of 32", Bench::Bursts(32)),
    ("burst of 256", Bench::Bursts(256)),
    ("stream", Bench::Stream),
];

/// Tables of so many flows fit a cache: everything is done twice there, and the second time counts.
const FITS_A_CACHE: usize = 200_000;

pub(crate) fn run(plan: &Plan, report: &mut Report) -> Outcome {
    println!("\nSourceHashCache, ChainedCache");
    for &n in plan.sizes(&[1_000, 16_000, 128_000, 1_000_000], &[1_000, 128_000]) {
        report.show(&measured(n, plan.quick))?;
    }
    Ok(())
}

/// Everybody, ours first.
fn contestants(n: usize) -> Vec<Contestant> {
    let (ahash, foldhash) = (DefaultHashBuilder::new(), Foldhash::default());
    let memory = "there is memory for the cache";
    let (direct, pairs) = (SourceHashCache::new(2 * n), SourceHashCache::new(2 * n));
    let threes = || SourceHashCache::<Name, u32, 3>::new(packets::THREES_FOR_TWO * n / 2);
    let [clock, oldest, lru] = [SecondChance, Oldest, LeastRecentlyUsed]
        .map(|replacement| threes().expect(memory).with_replacement(replacement));
    let chained: ChainedCache<Name, u32> = ChainedCache::new(n).expect(memory);
    vec![
        ours("source_hash", "direct-mapped", Sets::<1>(direct.expect(memory))),
        ours("source_hash/2", "2 ways", Sets::<2>(pairs.expect(memory))),
        ours("source_hash/3", "3 ways", Sets::<3>(clock)),
        ours("source_hash/3/oldest", "3 ways, oldest leaves", Sets::<3>(oldest)),
        ours("source_hash/3/lru", "3 ways, LRU", Sets::<3>(lru)),
        ours("chained", "ChainedCache", Chained(chained)),
        peer("hashbrown, index as hash", Indexed(hashbrown::HashTable::with_capacity(n))),
        peer("hashbrown + foldhash", Hashed(hashbrown::HashMap::with_hasher(foldhash.clone()))),
        peer("hashbrown + ahash", Hashed(hashbrown::HashMap::with_hasher(ahash))),
        peer("hashlink LruCache", Linked(hashlink::LruCache::with_hasher(n, foldhash))),
    ]
}

fn measured(n: usize, quick: bool) -> Board {
    let (rounds, count) = match (quick, n <= FITS_A_CACHE) {
        (true, _) => (5, 1 << 16),
        (false, true) => (25, n.clamp(1 << 16, 1 << 18)),
        (false, false) => (11, 1 << 19),
    };
    let mut packets = Packets::new(n);
    let mut contestants = contestants(n);
    let title =
        format!("{n} flows, names of 12 bytes, values of 4: ns each; medians of {rounds} rounds");
    let column = |&(bench, _): &(&'static str, Bench)| Column { bench, unit: "ns", n };
    let mut board = Board::new(title, KEY, BENCHES.iter().map(column).collect());
    board.add_rows(&contestants);
    for contestant in &mut contestants {
        contestant.fill(&packets.flows);
    }
    for (row, contestant) in contestants.iter().enumerate() {
        if let Some(bytes) = contestant.bytes() {
            board.remark(row, format!("{:.1} bytes for a flow", bytes as f64 / n as f64));
        }
    }
    for (column, &(_, bench)) in BENCHES.iter().enumerate() {
        for round in 0..rounds {
            let probes = packets.draw(bench, count);
            let mut agreed = Agreed::default();
            for at in in_turn(round, contestants.len()) {
                if !contestants[at].takes_part(bench) {
                    continue;
                }
                if n <= FITS_A_CACHE {
                    contestants[at].run(bench, &probes);
                }
                let timed = contestants[at].run(bench, &probes);
                board.note(at, column, timed.ns);
                if !matches!(bench, Bench::Stream) {
                    agreed.on(timed.sum, contestants[at].name);
                } else if round + 1 == rounds {
                    let hits = 100.0 * timed.sum as f64 / probes.len() as f64;
                    board.remark(at, format!("{hits:.1} % of the stream are hits"));
                }
            }
        }
    }
    board
}
