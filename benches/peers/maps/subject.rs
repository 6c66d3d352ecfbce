//! Maps as subjects: what is measured, and the loops, compiled for each map.

use std::time::{Duration, Instant};

use crate::subject::{BURST, Subject, Timed};

/// The methods of a map that are measured.
pub(crate) trait Map<K> {
    fn get(&self, key: &K) -> Option<&u64>;
    fn insert(&mut self, key: K, value: u64);
    fn remove(&mut self, key: &K) -> Option<u64>;

    /// Looks up a batch; one key at a time, unless the map has a batched lookup.
    #[inline]
    fn get_batch<'a>(&'a self, keys: &[K; BURST], found: &mut [Option<&'a u64>; BURST]) {
        for (key, found) in keys.iter().zip(found) {
            *found = self.get(key);
        }
    }
}

/// An operation that is timed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    /// Insertions of all keys into an empty map without reserved capacity; the drop is not timed.
    Fill,
    /// Lookups of present keys; the CPU may overlap them.
    Hit,
    /// Lookups of absent keys.
    Miss,
    /// Lookups with a Zipf distribution of exponent 1.
    Zipf,
    /// Lookups whose next key depends on the value found.
    Chain,
    /// Removals, each followed by the insertion of the same entry.
    Churn,
    /// Lookups in batches of [`BURST`].
    Burst,
}

impl Operation {
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

/// The benchmarks of one map. One call is one round.
pub(crate) trait MapBenchmark<K> {
    fn supports(&self, operation: Operation) -> bool;

    fn run(&mut self, operation: Operation, keys: &[K]) -> Timed;

    /// Inserts `keys` into an empty map and calls `after` with the number of entries after each.
    fn grow(&mut self, keys: &[K], after: &mut dyn FnMut(usize));

    /// Inserts `keys` into an empty map and stores the nanoseconds of each insertion in `ns`.
    fn time_insertions(&mut self, keys: &[K], ns: &mut [u32]);

    /// Replaces the map by an empty one.
    fn clear(&mut self);
}

pub(crate) type MapSubject<K> = Subject<dyn MapBenchmark<K>>;

/// A map, and the function that makes an empty one.
struct Loops<M, F> {
    bursts_only: bool,
    new: F,
    map: M,
}

/// Returns the benchmarks of the map that `new` makes.
pub(crate) fn map<K, M, F>(new: F) -> Box<dyn MapBenchmark<K>>
where
    K: Copy,
    M: Map<K> + 'static,
    F: Fn() -> M + 'static,
{
    Box::new(Loops { bursts_only: false, map: new(), new })
}

/// Returns the benchmarks of a map that differs from another subject in batched lookups only.
pub(crate) fn bursts_only<K, M, F>(new: F) -> Box<dyn MapBenchmark<K>>
where
    K: Copy,
    M: Map<K> + 'static,
    F: Fn() -> M + 'static,
{
    Box::new(Loops { bursts_only: true, map: new(), new })
}

impl<K: Copy, M: Map<K>, F: Fn() -> M> MapBenchmark<K> for Loops<M, F> {
    fn supports(&self, operation: Operation) -> bool {
        !self.bursts_only || matches!(operation, Operation::Fill | Operation::Burst)
    }

    fn run(&mut self, operation: Operation, keys: &[K]) -> Timed {
        match operation {
            Operation::Fill => self.fills(keys),
            Operation::Hit | Operation::Miss | Operation::Zipf => gets(&self.map, keys),
            Operation::Chain => chain(&self.map, keys),
            Operation::Churn => churn(&mut self.map, keys),
            Operation::Burst => bursts(&self.map, keys),
        }
    }

    fn grow(&mut self, keys: &[K], after: &mut dyn FnMut(usize)) {
        self.clear();
        for (value, &key) in keys.iter().enumerate() {
            self.map.insert(key, value as u64);
            after(value + 1);
        }
    }

    fn time_insertions(&mut self, keys: &[K], ns: &mut [u32]) {
        self.clear();
        time_insertions(&mut self.map, keys, ns);
    }

    fn clear(&mut self) {
        self.map = (self.new)();
    }
}

impl<M, F: Fn() -> M> Loops<M, F> {
    /// Fills the map; small ones several times, so that the time is long enough to measure.
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

/// Looks up one key after the other. The next index depends on the value, whose top bit is always
/// clear, so the CPU cannot overlap lookups.
#[inline(never)]
fn chain<K, M: Map<K>>(map: &M, keys: &[K]) -> Timed {
    let start = Instant::now();
    let (mut at, mut sum) = (0, 0_u64);
    while let Some(key) = keys.get(at) {
        let value = *map.get(key).expect("the key is present");
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
        let value = map.remove(key).expect("the key is present");
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
        let burst = burst.try_into().expect("the length of a chunk");
        let mut found = [None; BURST];
        map.get_batch(burst, &mut found);
        for value in found.into_iter().flatten() {
            sum = sum.wrapping_add(*value);
        }
    }
    Timed::new(start.elapsed(), keys.len() / BURST * BURST, sum)
}

#[inline(never)]
fn time_insertions<K: Copy, M: Map<K>>(map: &mut M, keys: &[K], ns: &mut [u32]) {
    let mut last = Instant::now();
    for (value, (&key, ns)) in keys.iter().zip(ns).enumerate() {
        map.insert(key, value as u64);
        let now = Instant::now();
        *ns = now.duration_since(last).as_nanos().try_into().unwrap_or(u32::MAX);
        last = now;
    }
}
