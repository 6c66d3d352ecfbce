//! Interleaved rounds of packets through caches.

use std::hint::black_box;
use std::time::Instant;

use model::papers::trash_2006::traffic::Packet;

use super::cache::{Cache, State, Tick};
use crate::report::median;

/// A cache that forwards packets.
pub(crate) trait Subject {
    /// Forwards packets. Returns the number of hits.
    fn forward(&mut self, packets: &[Packet]) -> usize;

    /// Forwards packets, and appends the nanoseconds of each insertion, garbage collection
    /// included.
    fn forward_timing_insertions(&mut self, packets: &[Packet], insertions: &mut Vec<u64>);

    fn state(&self) -> State;
}

/// A cache and its clock, which advances by one per packet.
pub(crate) struct Forwarder<C> {
    cache: C,
    /// Whether the last packet of a flow removes it.
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

    fn step(
        &mut self,
        packet: &Packet,
        access: impl FnOnce(&mut C, &C::Key, Tick) -> bool,
    ) -> bool {
        self.now += 1;
        let key = self.cache.key(packet);
        let is_hit = access(&mut self.cache, &key, self.now);
        if self.active_gc && packet.last {
            self.cache.end(&key);
        }
        is_hit
    }
}

impl<C: Cache> Subject for Forwarder<C> {
    fn forward(&mut self, packets: &[Packet]) -> usize {
        packets.iter().filter(|packet| self.step(packet, C::access)).count()
    }

    fn forward_timing_insertions(&mut self, packets: &[Packet], insertions: &mut Vec<u64>) {
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

/// Measurements of a subject: medians over the rounds, but the minimum of the slowest insertions.
#[derive(Default)]
pub(crate) struct Measurement {
    pub(crate) ns_per_packet: f64,
    /// Nanoseconds per packet of each round.
    rounds: Vec<f64>,
    pub(crate) hit_rate: f64,
    /// Nanoseconds of an insertion at each of [`QUANTILES`].
    pub(crate) insertion: [f64; QUANTILES.len()],
}

impl Measurement {
    /// Returns the speed relative to another subject: the median of the ratios within rounds.
    pub(crate) fn times_as_fast(&self, other: &Self) -> f64 {
        let both = self.rounds.iter().zip(&other.rounds);
        median(both.map(|(time, other)| other / time).collect())
    }
}

/// Quantiles of insertion times. The last one is the maximum.
pub(crate) const QUANTILES: [f64; 5] = [0.5, 0.99, 0.999, 0.9999, 1.0];

/// Returns the insertion times of a round at [`QUANTILES`].
fn quantiles(mut insertions: Vec<u64>) -> [f64; QUANTILES.len()] {
    insertions.sort_unstable();
    let last = insertions.len().saturating_sub(1) as f64;
    QUANTILES.map(|q| insertions.get((q * last) as usize).copied().unwrap_or(0) as f64)
}

/// Sends the same packets through all subjects in interleaved rounds of `round` packets. Packets
/// whose insertions are timed are separate. The first subject rotates.
pub(crate) fn measure_rounds(
    subjects: &mut [Box<dyn Subject>],
    packets: &mut impl Iterator<Item = Packet>,
    rounds: usize,
    round: usize,
) -> Vec<Measurement> {
    let mut results = vec![(Vec::new(), Vec::new(), Vec::new()); subjects.len()];
    for number in 0..rounds {
        let timed: Vec<Packet> = packets.take(round).collect();
        let watched: Vec<Packet> = packets.take(round).collect();
        for turn in 0..subjects.len() {
            let place = (number + turn) % subjects.len();
            let (subject, (ns, hits, insertions)) = (&mut subjects[place], &mut results[place]);
            let start = Instant::now();
            let hit = black_box(subject.forward(&timed));
            ns.push(start.elapsed().as_nanos() as f64 / round as f64);
            hits.push(hit as f64 / round as f64);
            let mut times = Vec::with_capacity(round);
            subject.forward_timing_insertions(&watched, &mut times);
            insertions.push(quantiles(times));
        }
    }
    let measurement =
        |(ns, hits, insertions): (Vec<f64>, _, Vec<[f64; QUANTILES.len()]>)| Measurement {
            ns_per_packet: median(ns.clone()),
            rounds: ns,
            hit_rate: median(hits),
            insertion: std::array::from_fn(|q| {
                let rounds = insertions.iter().map(|round| round[q]);
                match QUANTILES[q] {
                    // Other processes preempt an insertion in most rounds.
                    1.0 => rounds.fold(f64::INFINITY, f64::min),
                    _ => median(rounds.collect()),
                }
            }),
        };
    results.into_iter().map(measurement).collect()
}
