//! A contestant: a map, and the loops that measure it, compiled for that map alone.

use std::time::{Duration, Instant};

use crate::entrant::{Enters, Entrant, Timed};

/// Look-ups that an application has at hand at once.
pub(crate) const BURST: usize = 32;

/// What a map has to be able to do.
pub(crate) trait Map<K> {
    fn get(&self, key: &K) -> Option<&u64>;
    fn insert(&mut self, key: K, value: u64);
    fn remove(&mut self, key: &K) -> Option<u64>;

    /// Look-ups of a burst: one after the other, where a map knows nothing better.
    #[inline]
    fn burst<'a>(&'a self, keys: &[K; BURST], found: &mut [Option<&'a u64>; BURST]) {
        for (key, found) in keys.iter().zip(found) {
            *found = self.get(key);
        }
    }
}

/// What is timed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bench {
    /// Insertions of all keys into an empty map that nothing was reserved for; dropping it excluded.
    Fill,
    /// Look-ups that find something; the machine may overlap them.
    Hit,
    /// Look-ups that find nothing.
    Miss,
    /// Look-ups by Zipf's law with exponent 1.
    Zipf,
    /// Look-ups where the value found says which key is next.
    Chain,
    /// Removals, each followed by the insertion of the same entry.
    Churn,
    /// Look-ups in bursts of [`BURST`].
    Burst,
}

impl Bench {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Fill => "fill",
            Self::Hit => "hit",
            Self::Miss => "miss",
            Self::Zipf => "zipf",
            Self::Chain => "dependent hit",
            Self::Churn => "churn",
            Self::Burst => "burst of 32",
        }
    }
}

/// A map whose type is not known to who makes it work. One call is one round.
pub(crate) trait Work<K> {
    fn takes_part(&self, bench: Bench) -> bool;

    fn run(&mut self, bench: Bench, keys: &[K]) -> Timed;

    /// Inserts `keys` into an empty map and says after each how many these are.
    fn grow(&mut self, keys: &[K], after: &mut dyn FnMut(usize));

    /// Inserts `keys` into an empty map; notes the nanoseconds from each to the next.
    fn pace(&mut self, keys: &[K], ns: &mut [u32]);

    fn clear(&mut self);
}

pub(crate) type Contestant<K> = Entrant<dyn Work<K>>;

/// A map, and how another one is made.
struct Loops<M> {
    bursts_only: bool,
    new: Box<dyn Fn() -> M>,
    map: M,
}

impl<K: Copy, M: Map<K> + 'static, F: Fn() -> M + 'static> Enters<dyn Work<K>> for F {
    fn enter(self) -> Box<dyn Work<K>> {
        let map = self();
        Box::new(Loops { bursts_only: false, new: Box::new(self), map })
    }
}

/// Who has nothing to show but bursts.
pub(crate) struct BurstsOnly<F>(pub(crate) F);

impl<K: Copy, M: Map<K> + 'static, F: Fn() -> M + 'static> Enters<dyn Work<K>> for BurstsOnly<F> {
    fn enter(self) -> Box<dyn Work<K>> {
        let map = (self.0)();
        Box::new(Loops { bursts_only: true, new: Box::new(self.0), map })
    }
}

impl<K: Copy, M: Map<K>> Work<K> for Loops<M> {
    fn takes_part(&self, bench: Bench) -> bool {
        !self.bursts_only || matches!(bench, Bench::Fill | Bench::Burst)
    }

    fn run(&mut self, bench: Bench, keys: &[K]) -> Timed {
        match bench {
            Bench::Fill => self.fills(keys),
            Bench::Hit | Bench::Miss | Bench::Zipf => gets(&self.map, keys),
            Bench::Chain => chain(&self.map, keys),
            Bench::Churn => churn(&mut self.map, keys),
            Bench::Burst => bursts(&self.map, keys),
        }
    }

    fn grow(&mut self, keys: &[K], after: &mut dyn FnMut(usize)) {
        self.clear();
        for (value, &key) in keys.iter().enumerate() {
            self.map.insert(key, value as u64);
            after(value + 1);
        }
    }

    fn pace(&mut self, keys: &[K], ns: &mut [u32]) {
        self.clear();
        pace(&mut self.map, keys, ns);
    }

    fn clear(&mut self) {
        self.map = (self.new)();
    }
}

impl<M> Loops<M> {
    /// Small maps several times, so that there is something to measure.
    fn fills<K: Copy>(&mut self, keys: &[K]) -> Timed
    where
        M: Map<K>,
    {
        let times = (1 << 15) / keys.len() + 1;
        let mut time = Duration::ZERO;
        for _ in 0..times {
            self.map = (self.new)();
            time += fill(&mut self.map, keys);
        }
        Timed::new(time, times * keys.len(), 0)
    }
}

#[inline(never)]
fn fill<K: Copy, M: Map<K>>(map: &mut M, keys: &[K]) -> Duration {
    let start = Instant::now();
    for (value, &key) in keys.iter().enumerate() {
        map.insert(key, value as u64);
    }
    start.elapsed()
}

#[inline(never)]
pub(crate) fn gets<K, M: Map<K>>(map: &M, keys: &[K]) -> Timed {
    let start = Instant::now();
    let mut sum = 0_u64;
    for key in keys {
        if let Some(value) = map.get(key) {
            sum = sum.wrapping_add(*value);
        }
    }
    Timed::new(start.elapsed(), keys.len(), sum)
}

/// Values are small, so it is always the key behind; but the machine cannot know before it has the
/// value. Nothing overlaps.
#[inline(never)]
fn chain<K, M: Map<K>>(map: &M, keys: &[K]) -> Timed {
    let start = Instant::now();
    let (mut at, mut sum) = (0, 0_u64);
    while let Some(key) = keys.get(at) {
        let value = *map.get(key).expect("the key is there");
        sum = sum.wrapping_add(value);
        at += 1 + (value >> 63) as usize;
    }
    Timed::new(start.elapsed(), keys.len(), sum)
}

#[inline(never)]
fn churn<K: Copy, M: Map<K>>(map: &mut M, keys: &[K]) -> Timed {
    let start = Instant::now();
    let mut sum = 0_u64;
    for key in keys {
        let value = map.remove(key).expect("the key is there");
        sum = sum.wrapping_add(value);
        map.insert(*key, value);
    }
    Timed::new(start.elapsed(), keys.len(), sum)
}

#[inline(never)]
fn bursts<K, M: Map<K>>(map: &M, keys: &[K]) -> Timed {
    let start = Instant::now();
    let mut sum = 0_u64;
    for burst in keys.chunks_exact(BURST) {
        let burst = burst.try_into().expect("a burst has that length");
        let mut found = [None; BURST];
        map.burst(burst, &mut found);
        for value in found.into_iter().flatten() {
            sum = sum.wrapping_add(*value);
        }
    }
    Timed::new(start.elapsed(), keys.len() / BURST * BURST, sum)
}

#[inline(never)]
fn pace<K: Copy, M: Map<K>>(map: &mut M, keys: &[K], ns: &mut [u32]) {
    let mut last = Instant::now();
    for (value, (&key, ns)) in keys.iter().zip(ns).enumerate() {
        map.insert(key, value as u64);
        let now = Instant::now();
        *ns = now.duration_since(last).as_nanos().try_into().unwrap_or(u32::MAX);
        last = now;
    }
}
