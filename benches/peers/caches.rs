//! Caches: `SourceHashCache` with an index in the packet, `BoundedCache`, and hash tables.
//!
//! ```text
//!     hit         packets of cached flows, in a random order; the CPU may overlap lookups
//!     dependent   hits whose next packet depends on the value found
//!     miss        packets of flows that are not cached
//!     bursts      hits in batches
//!     stream      packets with a Zipf distribution over four times as many flows as are cached;
//!                 a flow that is missing is inserted
//! ```
//!
//! Flow names have 12 bytes, values 4, indices 32 random bits. In all but *stream* no flow
//! displaces another one: neither in a direct-mapped cache with two slots per flow, nor in sets.
//! *stream* includes displacement, and the share of hits is given next to its time.
//!
//! What the peers offer beyond that: `moka` is shared by threads, has weights, a lifetime for each
//! entry, and admission by frequency (TinyLFU); `quick_cache` has weights, placeholders for entries
//! in the making, a form for threads, and S3-FIFO; `lru` and `hashlink` have the order of use.
//!
//! *hashbrown, index as hash* uses the index in place of a hash, too.

mod filter;
mod packets;
mod subject;
mod tables;

use std::num::NonZeroUsize;

use flowtable::cache::Replacement::{LeastRecentlyUsed, Oldest, SecondChance};
use flowtable::{BoundedCache, DefaultHashBuilder, SourceHashCache};
use hashbrown::{DefaultHashBuilder as Foldhash, HashMap, HashTable};

use crate::args::Plan;
use crate::results::{Column, Outcome, Report, Results};
use crate::subject::{Agreement, ours, peer, rotation};
use packets::{Name, Packets};
use subject::{CacheSubject, cache};
use tables::{Bounded, Hashed, Indexed, Linked, Lru, Moka, Quick, Sets};

/// The bytes of a name, for the results.
const KEY: &str = "12";

/// How packets access a cache.
#[derive(Clone, Copy)]
pub(crate) enum Access {
    Hit,
    Dependent,
    Miss,
    /// Hits in batches of this size.
    Bursts(usize),
    Stream,
}

const ACCESSES: [(&str, Access); 6] = [
    ("hit", Access::Hit),
    ("dependent hit", Access::Dependent),
    ("miss", Access::Miss),
    ("burst of 32", Access::Bursts(32)),
    ("burst of 256", Access::Bursts(256)),
    ("stream", Access::Stream),
];

/// Tables with at most this number of flows fit the L2 cache: rounds are run twice there, and the
/// second time counts.
const FITS_L2: usize = 200_000;

pub(crate) fn run(plan: &Plan, report: &mut Report) -> Outcome {
    println!("\nSourceHashCache, BoundedCache");
    let sizes = plan.sizes(&[1_000, 16_000, 128_000, 1_000_000], &[1_000, 128_000]);
    for &n in sizes {
        report.show(&measured(n, plan.quick))?;
    }
    println!("\nDuplicateFilter");
    for &n in sizes {
        report.show(&filter::measured(n, plan.quick))?;
    }
    Ok(())
}

/// All subjects, ours first.
fn subjects(n: usize) -> Vec<CacheSubject> {
    let (our_hash, foldhash) = (DefaultHashBuilder::new(), Foldhash::default());
    let memory = "memory for the cache";
    let (direct, pairs) = (SourceHashCache::new(2 * n), SourceHashCache::new(2 * n));
    let threes = || SourceHashCache::<Name, u32, 3>::new(packets::THREES_FOR_TWO * n / 2);
    let [clock, oldest, lru] = [SecondChance, Oldest, LeastRecentlyUsed]
        .map(|replacement| threes().expect(memory).with_replacement(replacement));
    let bounded: BoundedCache<Name, u32> = BoundedCache::new(n).expect(memory);
    let policy = flowtable::eviction::SecondChance::new();
    let with_foldhash = BoundedCache::with_parts(n, policy, foldhash.clone()).expect(memory);
    let bound = NonZeroUsize::new(n).expect("there are flows");
    let quick = quick_cache::unsync::Cache::with(
        n,
        n as u64,
        quick_cache::UnitWeighter,
        foldhash.clone(),
        Default::default(),
    );
    let moka =
        moka::sync::Cache::builder().max_capacity(n as u64).build_with_hasher(foldhash.clone());
    vec![
        ours("source_hash", "direct-mapped", cache(Sets::<1>(direct.expect(memory)))),
        ours("source_hash/2", "2 ways", cache(Sets::<2>(pairs.expect(memory)))),
        ours("source_hash/3", "3 ways", cache(Sets::<3>(clock))),
        ours("source_hash/3/oldest", "3 ways, oldest leaves", cache(Sets::<3>(oldest))),
        ours("source_hash/3/lru", "3 ways, LRU", cache(Sets::<3>(lru))),
        ours("bounded", "BoundedCache", cache(Bounded(bounded))),
        ours("bounded/foldhash", "BoundedCache + foldhash", cache(Bounded(with_foldhash))),
        peer("hashbrown, index as hash", cache(Indexed(HashTable::with_capacity(n)))),
        peer("hashbrown + foldhash", cache(Hashed(HashMap::with_hasher(foldhash.clone())))),
        peer("hashbrown + our hash", cache(Hashed(HashMap::with_hasher(our_hash)))),
        peer(
            "hashlink LruCache",
            cache(Linked(hashlink::LruCache::with_hasher(n, foldhash.clone()))),
        ),
        peer("lru LruCache", cache(Lru(lru::LruCache::with_hasher(bound, foldhash.clone())))),
        peer("quick_cache, unsync", cache(Quick(quick))),
        peer("moka, sync", cache(Moka(moka))),
    ]
}

fn measured(n: usize, quick: bool) -> Results {
    let (rounds, count) = match (quick, n <= FITS_L2) {
        (true, _) => (5, 1 << 16),
        (false, true) => (25, n.clamp(1 << 16, 1 << 18)),
        (false, false) => (11, 1 << 19),
    };
    let mut packets = Packets::new(n);
    let mut subjects = subjects(n);
    let title =
        format!("{n} flows, names of 12 bytes, values of 4: ns each; medians of {rounds} rounds");
    let column = |&(bench, _): &(&'static str, Access)| Column { bench, unit: "ns", n };
    let mut results = Results::new(title, KEY, ACCESSES.iter().map(column).collect());
    results.add_rows(&subjects);
    for subject in &mut subjects {
        subject.benchmark.fill(&packets.flows);
    }
    for (row, subject) in subjects.iter().enumerate() {
        if let Some(bytes) = subject.benchmark.bytes() {
            results.remark(row, format!("{:.1} bytes for a flow", bytes as f64 / n as f64));
        }
    }
    for (column, &(_, access)) in ACCESSES.iter().enumerate() {
        for round in 0..rounds {
            let probes = packets.draw(access, count);
            let mut agreement = Agreement::default();
            for at in rotation(round, subjects.len()) {
                let CacheSubject { name, benchmark, .. } = &mut subjects[at];
                if !benchmark.supports(access) {
                    continue;
                }
                if n <= FITS_L2 {
                    benchmark.run(access, &probes);
                }
                let timed = benchmark.run(access, &probes);
                results.record(at, column, timed.ns);
                if !matches!(access, Access::Stream) {
                    agreement.check(timed.sum, name);
                } else if round + 1 == rounds {
                    let hits = 100.0 * timed.sum as f64 / probes.len() as f64;
                    results.remark(at, format!("{hits:.1} % of the stream are hits"));
                }
            }
        }
    }
    results
}
