//! Packets through caches, one contestant after the other, round by round.

use std::hint::black_box;
use std::time::Instant;

use model::papers::trash_2006::traffic::Packet;

use super::cache::{Cache, State, Tick};
use crate::report::median;

/// A cache that forwards packets.
pub(crate) trait Contestant {
    /// Forwards packets; how many of them were hits.
    fn forward(&mut self, packets: &[Packet]) -> usize;

    /// The same, and the nanoseconds of each insertion, garbage collection included.
    fn forward_watched(&mut self, packets: &[Packet], insertions: &mut Vec<u64>);

    fn state(&self) -> State;
}

/// A cache and its clock, which ticks once per packet.
pub(crate) struct Forwarder<C> {
    cache: C,
    /// Whether flows are removed by their last packet.
    active_gc: bool,
    now: Tick,
}

impl<C: Cache> Forwarder<C> {
    pub(crate) fn new(cache: C) -> Self {
        Self { cache, active_gc: false, now: 0 }
    }

    pub(crate) fn with_active_gc(cache: C) -> Self {
        Self { active_gc: true, ..Self::new(cache) }
    }

    fn step(&mut self, packet: &Packet, see: impl FnOnce(&mut C, &C::Key, Tick) -> bool) -> bool {
        self.now += 1;
        let key = self.cache.key(packet);
        let is_hit = see(&mut self.cache, &key, self.now);
        if self.active_gc && packet.last {
            self.cache.end(&key);
        }
        is_hit
    }
}

impl<C: Cache> Contestant for Forwarder<C> {
    fn forward(&mut self, packets: &[Packet]) -> usize {
        packets.iter().filter(|packet| self.step(packet, C::see)).count()
    }

    fn forward_watched(&mut self, packets: &[Packet], insertions: &mut Vec<u64>) {
        for packet in packets {
            self.step(packet, |cache, key, now| {
                let is_hit = cache.touch(key, now);
                if !is_hit {
                    let start = Instant::now();
                    cache.admit(*key, now);
                    insertions.push(start.elapsed().as_nanos() as u64);
                }
                is_hit
            });
        }
    }

    fn state(&self) -> State {
        self.cache.state()
    }
}

/// What a contestant did in its rounds: medians, but of the slowest insertions the least.
#[derive(Default)]
pub(crate) struct Score {
    pub(crate) ns_per_packet: f64,
    /// The same of each round.
    rounds: Vec<f64>,
    pub(crate) hit_rate: f64,
    /// Nanoseconds of an insertion at each of [`QUANTILES`].
    pub(crate) insertion: [f64; QUANTILES.len()],
}

impl Score {
    /// How many times as fast as another one: the median of what it was in each round.
    pub(crate) fn times_as_fast(&self, other: &Self) -> f64 {
        let both = self.rounds.iter().zip(&other.rounds);
        median(both.map(|(time, other)| other / time).collect())
    }
}

/// The last is the slowest insertion of a round.
pub(crate) const QUANTILES: [f64; 5] = [0.5, 0.99, 0.999, 0.9999, 1.0];

/// Nanoseconds of the insertions of a round at [`QUANTILES`].
fn quantiles(mut insertions: Vec<u64>) -> [f64; QUANTILES.len()] {
    insertions.sort_unstable();
    let last = insertions.len().saturating_sub(1) as f64;
    QUANTILES.map(|q| insertions.get((q * last) as usize).copied().unwrap_or(0) as f64)
}

/// Sends the same packets through all contestants, `rounds` times `round` of them, the watched
/// ones apart from the timed ones. Another one begins each round.
pub(crate) fn compete(
    contestants: &mut [Box<dyn Contestant>],
    packets: &mut impl Iterator<Item = Packet>,
    rounds: usize,
    round: usize,
) -> Vec<Score> {
    let mut results = vec![(Vec::new(), Vec::new(), Vec::new()); contestants.len()];
    for number in 0..rounds {
        let timed: Vec<Packet> = packets.take(round).collect();
        let watched: Vec<Packet> = packets.take(round).collect();
        for turn in 0..contestants.len() {
            let place = (number + turn) % contestants.len();
            let (contestant, (ns, hits, insertions)) =
                (&mut contestants[place], &mut results[place]);
            let start = Instant::now();
            let hit = black_box(contestant.forward(&timed));
            ns.push(start.elapsed().as_nanos() as f64 / round as f64);
            hits.push(hit as f64 / round as f64);
            let mut times = Vec::with_capacity(round);
            contestant.forward_watched(&watched, &mut times);
            insertions.push(quantiles(times));
        }
    }
    let score = |(ns, hits, insertions): (Vec<f64>, _, Vec<[f64; QUANTILES.len()]>)| Score {
        ns_per_packet: median(ns.clone()),
        rounds: ns,
        hit_rate: median(hits),
        insertion: std::array::from_fn(|q| {
            let rounds = insertions.iter().map(|round| round[q]);
            match QUANTILES[q] {
                // Others on the machine preempt some insertion in most rounds.
                1.0 => rounds.fold(f64::INFINITY, f64::min),
                _ => median(rounds.collect()),
            }
        }),
    };
    results.into_iter().map(score).collect()
}
