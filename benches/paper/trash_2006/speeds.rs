//! The speeds of the caches, apart for hits and misses, and of chained tables with bounded chains.

use std::error::Error;

use flowtable::cache::Chains;
use flowtable::eviction::{PassiveGc, SecondChance};
use flowtable::{BoundedCache, DefaultHashBuilder, Prehashed};
use model::papers::trash_2006::traffic::{Packet, PaperKey, Rings, new_flow, src_dst, trash};
use rand::SeedableRng;
use rand::rngs::StdRng;

use super::cache::{Cache, Chained, State, Tick, Trash};
use super::forwarder::{Forwarder, Measurement, Subject, measure_rounds};
use crate::causes::{Cause, Evidence};
use crate::report::{Table, two};

/// Returns the cause of a ratio of speeds that differs from the printed one. Other work brings
/// ratios closer to 1, but cannot turn a slower cache into a faster one.
pub(super) fn cause_of_speed(paper: f64, ours: f64) -> Cause {
    if ours.ln() / paper.ln() > 1.0 { Cause::OtherWork } else { Cause::CacheSpeeds }
}

/// The cache of the crate.
struct Ours(BoundedCache<PaperKey, Tick, SecondChance>);

impl Ours {
    fn new(gc: PassiveGc) -> Result<Self, Box<dyn Error>> {
        let hasher = DefaultHashBuilder::with_seed(2006);
        Ok(Self(BoundedCache::with_parts(gc.threshold(), SecondChance::new(), hasher)?))
    }
}

impl Cache for Ours {
    type Key = (u64, PaperKey);

    fn key(&self, packet: &Packet) -> (u64, PaperKey) {
        let key = src_dst(&packet.flow);
        (self.0.hash_of(&key), key)
    }

    fn touch(&mut self, (hash, key): &(u64, PaperKey), now: Tick) -> bool {
        self.0.get_mut(Prehashed { hash: *hash, key }).map(|last_use| *last_use = now).is_some()
    }

    fn admit(&mut self, (hash, key): (u64, PaperKey), now: Tick) {
        self.0.get_or_insert_with(Prehashed { hash, key: &key }, |_| now);
    }

    fn end(&mut self, (hash, key): &(u64, PaperKey)) {
        self.0.remove(Prehashed { hash: *hash, key });
    }

    fn state(&self) -> State {
        State { entries: self.0.len(), bytes: self.0.allocation_size(), shape: None }
    }
}

/// A cache: its name, the printed Kpps, and the cache.
type Named = (String, &'static str, Box<dyn Subject>);

fn subjects(gc: PassiveGc) -> Result<Vec<Named>, Box<dyn Error>> {
    let hasher = || DefaultHashBuilder::with_seed(2006);
    let h160 = hasher();
    let chained = Forwarder::new(Chained::new(gc, hasher()));
    let plain = Forwarder::new(Trash::new(gc, src_dst));
    let trash = Forwarder::new(Trash::new(gc, move |flow| trash(flow, &h160)));
    let mut all: Vec<Named> = vec![
        ("chained, collected as the trie".into(), "308", Box::new(chained)),
        ("plain trie, src,dst".into(), "221", Box::new(plain)),
        ("TRASH 160".into(), "317", Box::new(trash)),
    ];
    for buckets in [32_768, 131_072] {
        for elasticity in [4, 8] {
            let name = format!("chained, {buckets} buckets, elasticity {elasticity}");
            let (chains, policy) = (Chains { buckets, elasticity }, SecondChance::new());
            let bounded = Forwarder::new(Chained::with_policy(gc, chains, policy, hasher()));
            all.push((name, "308", Box::new(bounded)));
        }
    }
    all.push(("BoundedCache".into(), "–", Box::new(Forwarder::new(Ours::new(gc)?))));
    Ok(all)
}

/// Measures the denial of service, misses only and hits only.
pub(crate) fn explain_speeds(quick: bool) -> Result<Evidence, Box<dyn Error>> {
    let (gc, rounds, round) = match quick {
        true => (PassiveGc::new(5_000, 100)?, 1, 10_000),
        false => (PassiveGc::TRASH_2006, 9, 200_000),
    };
    let (mut names, mut printed, mut caches) = (vec![], vec![], vec![]);
    for (name, kpps, cache) in subjects(gc)? {
        names.push(name);
        printed.push(kpps);
        caches.push(cache);
    }
    let mut attack = Rings::rdos(Rings::ADJACENT);
    let filling: Vec<Packet> = attack.by_ref().take(4 * gc.threshold()).collect();
    caches.iter_mut().for_each(|cache| _ = cache.forward(&filling));
    let mut rng = StdRng::seed_from_u64(2006);
    let mut packet = || Packet { flow: new_flow(10, &mut rng), last: false };
    let few: Vec<Packet> = (0..4096).map(|_| packet()).collect();
    let attacked = measure_rounds(&mut caches, &mut attack, rounds, round);
    let missed = measure_rounds(&mut caches, &mut std::iter::repeat_with(packet), rounds, round);
    let mut cycle = few.into_iter().cycle();
    caches.iter_mut().for_each(|cache| {
        let warm: Vec<Packet> = cycle.by_ref().take(4096).collect();
        cache.forward(&warm);
    });
    let found = measure_rounds(&mut caches, &mut cycle, rounds, round);
    let header = ["cache", "printed, Kpps", "ns per packet", "hits %", "a miss, ns", "a hit, ns"];
    let mut table = Table::new(&header);
    let nanos = |of: &Measurement| format!("{:.0}", of.ns_per_packet);
    for (at, name) in names.iter().enumerate() {
        let hits = two(100.0 * attacked[at].hit_rate);
        let [all, miss, hit] = [&attacked[at], &missed[at], &found[at]].map(nanos);
        table.row(&[name, &printed[at], &all, &hits, &miss, &hit]);
    }
    Ok(vec![("The denial of service; new flows only; 4096 flows in turn", table)])
}
