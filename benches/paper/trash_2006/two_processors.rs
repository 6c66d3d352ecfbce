//! The denial of service on two processors, as the paper ran it: each forwards the packets of one
//! interface, and both share the cache.
//!
//! ```text
//!     ring 0 ──▸ thread 0 ──┐      a hit: a lookup under RCU, and a store of the time
//!                           ├──▸ trie
//!     ring 1 ──▸ thread 1 ──┘      a miss: an insertion under the lock, at times with a collection
//! ```

use std::hash::BuildHasher;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Barrier, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use flowtable::DefaultHashBuilder;
use flowtable::cache::Chains;
use flowtable::concurrent::{ConcurrentLcTrie, Pinned};
use flowtable::eviction::{Passive, PassiveGc};
use flowtable::key::bits::BitString;
use flowtable::trie::Tuning;
use model::papers::trash_2006::traffic::{Flow, Packet, Rings, src_dst, trash};

use super::cache::{BUCKETS, Cache, Chained, Tick};
use crate::finding::Finding;
use crate::report::{Outcome, Report, Table, median, two};

/// Packets that are forwarded under one pin, as a driver does in one poll.
const BURST: usize = 32;

const PLACE: &str = "section 4, results, two processors";

/// A cache that threads share.
trait SharedCache: Sync {
    /// Forwards packets of one thread, the first at time `now`. Returns the number of hits.
    fn forward(&self, packets: &[Packet], now: Tick) -> usize;

    fn len(&self) -> usize;

    /// The average depth of a trie.
    fn depth(&self) -> Option<f64>;
}

/// The trie under RCU, with the tuning and the collection of 2006.
struct SharedTrie<K, F> {
    trie: ConcurrentLcTrie<K, AtomicU64>,
    key: F,
    gc: PassiveGc,
    /// Whether the last packet of a flow removes it.
    active_gc: bool,
    /// The last leaf that was examined. Locked by the thread that collects.
    rover: Mutex<Option<K>>,
}

impl<K, F> SharedTrie<K, F>
where
    K: BitString + Send + Sync + 'static,
    F: Fn(&Flow) -> K + Sync,
{
    fn new(gc: PassiveGc, active_gc: bool, key: F) -> Self {
        let trie = ConcurrentLcTrie::with_tuning(Tuning::TRASH_2006);
        Self { trie, key, gc, active_gc, rover: Mutex::new(None) }
    }

    fn admit(&self, pin: &mut Pinned<'_, ConcurrentLcTrie<K, AtomicU64>>, key: K, now: Tick) {
        if self.trie.len() >= self.gc.threshold() {
            // A thread that finds the collector at work waits, so the cache stays bounded.
            let mut rover = self.rover.lock().unwrap_or_else(PoisonError::into_inner);
            if self.trie.len() >= self.gc.threshold() {
                self.collect(pin, &mut rover);
            }
        }
        // It is refused while the other thread has not repinned for long.
        while pin.insert(key, AtomicU64::new(now)).is_err() {
            pin.repin();
            pin.flush();
            thread::yield_now();
        }
    }

    /// Evicts `goal` entries, each the least recently used of the next four.
    fn collect(&self, pin: &Pinned<'_, ConcurrentLcTrie<K, AtomicU64>>, rover: &mut Option<K>) {
        let from = rover.map_or(Bound::Unbounded, Bound::Excluded);
        let mut leaves = pin.iter_from(from).chain(pin.iter());
        for _ in 0..self.gc.goal() {
            let mut oldest = None;
            for (key, last_use) in leaves.by_ref().take(PassiveGc::RING) {
                let last_use = last_use.load(Ordering::Relaxed);
                if oldest.is_none_or(|(oldest, _)| last_use <= oldest) {
                    oldest = Some((last_use, key));
                }
                *rover = Some(key);
            }
            if let Some((_, key)) = oldest {
                pin.remove(&key);
            }
        }
    }
}

impl<K, F> SharedCache for SharedTrie<K, F>
where
    K: BitString + Send + Sync + 'static,
    F: Fn(&Flow) -> K + Sync,
{
    fn forward(&self, packets: &[Packet], mut now: Tick) -> usize {
        let mut pin = self.trie.pin();
        let mut hits = 0;
        for burst in packets.chunks(BURST) {
            pin.repin();
            for packet in burst {
                let key = (self.key)(&packet.flow);
                match pin.get(&key) {
                    Some(last_use) => {
                        last_use.store(now, Ordering::Relaxed);
                        hits += 1;
                    }
                    None => self.admit(&mut pin, key, now),
                }
                if self.active_gc && packet.last {
                    pin.remove(&key);
                }
                now += 1;
            }
        }
        hits
    }

    fn len(&self) -> usize {
        self.trie.len()
    }

    fn depth(&self) -> Option<f64> {
        let depths = self.trie.depths();
        let sum: usize = depths.iter().enumerate().map(|(depth, leaves)| depth * leaves).sum();
        Some(sum as f64 / depths.iter().sum::<usize>() as f64)
    }
}

/// The parts of the chained table.
const PARTS: usize = 64;

/// The chained table in parts by hash, with a lock for each part.
///
/// In Linux each chain had a lock, which only writers took. Two threads that do not meet in a part
/// never wait here.
struct SharedChained {
    parts: Vec<Mutex<Chained<Passive>>>,
    hasher: DefaultHashBuilder,
}

impl SharedChained {
    fn new(gc: PassiveGc, hasher: DefaultHashBuilder) -> Self {
        let [threshold, goal] = [gc.threshold(), gc.goal()].map(|all| all.div_ceil(PARTS));
        let gc = PassiveGc::new(threshold, goal).expect("neither is zero");
        let chains = Chains { buckets: BUCKETS / PARTS, elasticity: 8 };
        let part = || Chained::with_policy(gc, chains, Passive::new(gc), hasher.clone());
        Self { parts: (0..PARTS).map(|_| Mutex::new(part())).collect(), hasher }
    }
}

impl SharedCache for SharedChained {
    fn forward(&self, packets: &[Packet], now: Tick) -> usize {
        let is_hit = |(packet, now): (&Packet, Tick)| {
            let key = src_dst(&packet.flow);
            let hash = self.hasher.hash_one(key);
            // A part selects the chain by the lowest bits.
            let part = &self.parts[(hash >> 32) as usize % PARTS];
            part.lock().unwrap_or_else(PoisonError::into_inner).access(&(hash, key), now)
        };
        packets.iter().zip(now..).map(is_hit).filter(|is_hit| *is_hit).count()
    }

    fn len(&self) -> usize {
        let len = |part: &Mutex<Chained<Passive>>| {
            part.lock().unwrap_or_else(PoisonError::into_inner).state().entries
        };
        self.parts.iter().map(len).sum()
    }

    fn depth(&self) -> Option<f64> {
        None
    }
}

/// A row of the table: the published speed in thousands of packets per second, and the cache.
struct Row {
    name: &'static str,
    kpps: f64,
    cache: Box<dyn SharedCache>,
    /// Nanoseconds for a packet, by round, on one processor and on two.
    ns: [Vec<f64>; 2],
    hit_rates: Vec<f64>,
    now: Tick,
}

impl Row {
    fn new(name: &'static str, kpps: f64, cache: impl SharedCache + 'static) -> Self {
        let ns = [Vec::new(), Vec::new()];
        Self { name, kpps, cache: Box::new(cache), ns, hit_rates: Vec::new(), now: 0 }
    }

    /// Forwards all packets with one thread.
    fn with_one_thread(&mut self, packets: &[Packet]) {
        let start = Instant::now();
        self.cache.forward(packets, self.now);
        self.ns[0].push(start.elapsed().as_nanos() as f64 / packets.len() as f64);
        self.now += packets.len() as Tick;
    }

    /// Forwards the packets of each ring with a thread of its own.
    fn with_two_threads(&mut self, rings: &[Vec<Packet>; 2]) {
        let (cache, now, barrier) = (&*self.cache, self.now, Barrier::new(2));
        let forward = |packets: &[Packet]| {
            barrier.wait();
            (Instant::now(), cache.forward(packets, now))
        };
        let (start, hits) = thread::scope(|scope| {
            let other = scope.spawn(|| forward(&rings[1]).1);
            let (start, hits) = forward(&rings[0]);
            (start, hits + other.join().unwrap_or(0))
        });
        let packets = (rings[0].len() + rings[1].len()) as f64;
        self.ns[1].push(start.elapsed().as_nanos() as f64 / packets);
        self.hit_rates.push(hits as f64 / packets);
        self.now += rings[0].len() as Tick;
    }

    /// Returns the median of the ratios within rounds of two series of times.
    fn ratio(slow: &[f64], fast: &[f64]) -> f64 {
        median(slow.iter().zip(fast).map(|(slow, fast)| slow / fast).collect())
    }
}

fn rows(gc: PassiveGc) -> Vec<Row> {
    let hasher = || DefaultHashBuilder::with_seed(2006);
    let (passive, active) = (hasher(), hasher());
    vec![
        Row::new("chained hash, 131 072 buckets", 308.0, SharedChained::new(gc, hasher())),
        Row::new("plain src,dst", 221.0, SharedTrie::new(gc, false, src_dst)),
        Row::new("TRASH 160", 317.0, SharedTrie::new(gc, false, move |f| trash(f, &passive))),
        Row::new("TRASH 160 + AGC", 319.0, SharedTrie::new(gc, true, move |f| trash(f, &active))),
    ]
}

/// Separates the packets of the two rings, which alternate.
fn by_ring(packets: &[Packet]) -> [Vec<Packet>; 2] {
    [0, 1].map(|ring| packets.iter().skip(ring).step_by(2).copied().collect())
}

/// Measures the denial of service, and two flows that end in no packet.
pub(super) fn run(report: &mut Report, quick: bool) -> Outcome {
    let (gc, rounds, round) = match quick {
        true => (PassiveGc::new(20_000, 100)?, 3, 20_000),
        false => (PassiveGc::TRASH_2006, 9, 200_000),
    };
    let mut rows = rows(gc);
    let mut packets = Rings::rdos(Rings::ADJACENT);
    let filling: Vec<Packet> = packets.by_ref().take(4 * gc.threshold()).collect();
    for row in &mut rows {
        row.cache.forward(&filling, 0);
        row.now = filling.len() as Tick;
    }
    for number in 0..rounds {
        let alone: Vec<Packet> = packets.by_ref().take(round).collect();
        let both = by_ring(&packets.by_ref().take(round).collect::<Vec<_>>());
        for turn in 0..rows.len() {
            let row = &mut rows[(number + turn) % 4];
            row.with_one_thread(&alone);
            row.with_two_threads(&both);
        }
    }
    judge_hits(report, gc, rounds, round);
    table(report, &rows)
}

/// Two processors that only look up shall not slow each other down.
fn judge_hits(report: &mut Report, gc: PassiveGc, rounds: usize, round: usize) {
    let hasher = DefaultHashBuilder::with_seed(2006);
    let mut row = Row::new("", 0.0, SharedTrie::new(gc, false, move |f| trash(f, &hasher)));
    // As many flows as a ring has, none of which ends.
    let flows: Vec<Packet> = Rings::rdos(Rings::ADJACENT).take(8192).collect();
    let packets: Vec<Packet> = flows.iter().copied().cycle().take(round).collect();
    row.cache.forward(&packets, 0);
    // Both go through all flows.
    let both = [packets[..round / 2].to_vec(), packets[round / 2..].to_vec()];
    for _ in 0..rounds {
        row.with_one_thread(&packets);
        row.with_two_threads(&both);
    }
    let gain = Row::ratio(&row.ns[0], &row.ns[1]);
    let what = "TRASH 160, hits only: two processors beside one";
    let ours = format!("{} times as fast", two(gain));
    let (paper, rule) = ("inherits the efficient RCU locking", "1.5 times or more");
    let finding = Finding::check(PLACE, what, paper, ours, rule, gain >= 1.5);
    report.record(finding.on_this_machine().calculated());
}

fn table(report: &mut Report, rows: &[Row]) -> Outcome {
    let mut table = Table::new(&[
        "cache",
        "hits %",
        "entries",
        "avg depth",
        "Mpps, one processor",
        "Mpps, two",
        "two beside one",
        "speed to chained, two",
        "paper's speed",
    ]);
    for row in rows {
        let [one, both] = row.ns.clone().map(|ns| 1000.0 / median(ns));
        table.row(&[
            &row.name,
            &format!("{:.1}", 100.0 * median(row.hit_rates.clone())),
            &row.cache.len(),
            &row.cache.depth().map_or("-".into(), |depth| format!("{depth:.3}")),
            &two(one),
            &two(both),
            &two(Row::ratio(&row.ns[0], &row.ns[1])),
            &two(Row::ratio(&rows[0].ns[1], &row.ns[1])),
            &two(row.kpps / rows[0].kpps),
        ]);
    }
    let title = "Denial of service on two processors that share the cache, whose speeds and depths \
        are judged on one";
    report.table("two_processors", title, table)
}
