//! Caches as subjects: what is measured, and the loops, compiled for each cache.

use std::hint::black_box;
use std::time::Instant;

use super::Access;
use super::packets::Packet;
use crate::subject::{Subject, Timed};

/// The methods of a cache that are measured.
pub(crate) trait Cache {
    /// Whether an insertion may evict a flow. Unbounded tables do not take part in streams.
    const IS_BOUNDED: bool = true;

    fn get(&mut self, packet: &Packet) -> Option<u32>;

    /// Inserts a flow that is absent.
    fn insert(&mut self, packet: &Packet, value: u32);

    /// The sum of the values of a batch; one lookup at a time, unless the cache has a batched one.
    #[inline]
    fn burst(&mut self, packets: &[Packet]) -> u64 {
        packets.iter().filter_map(|packet| self.get(packet)).map(u64::from).sum()
    }

    /// Bytes allocated, if the cache counts them.
    fn bytes(&self) -> Option<usize> {
        None
    }
}

/// The benchmarks of one cache. The sum of a stream is its number of hits.
pub(crate) trait CacheBenchmark {
    fn bytes(&self) -> Option<usize>;
    fn supports(&self, access: Access) -> bool;
    fn fill(&mut self, flows: &[Packet]);
    fn run(&mut self, access: Access, packets: &[Packet]) -> Timed;
}

pub(crate) type CacheSubject = Subject<dyn CacheBenchmark>;

struct Loops<C>(C);

/// Returns the benchmarks of a cache.
pub(crate) fn cache(cache: impl Cache + 'static) -> Box<dyn CacheBenchmark> {
    Box::new(Loops(cache))
}

impl<C: Cache> CacheBenchmark for Loops<C> {
    fn bytes(&self) -> Option<usize> {
        self.0.bytes()
    }

    fn supports(&self, access: Access) -> bool {
        C::IS_BOUNDED || !matches!(access, Access::Stream)
    }

    fn fill(&mut self, flows: &[Packet]) {
        for (value, flow) in flows.iter().enumerate() {
            self.0.insert(flow, value as u32);
        }
    }

    fn run(&mut self, access: Access, packets: &[Packet]) -> Timed {
        let start = Instant::now();
        let sum = black_box(match access {
            Access::Hit | Access::Miss => gets(&mut self.0, packets),
            Access::Dependent => chain(&mut self.0, packets),
            Access::Bursts(size) => bursts(&mut self.0, packets, size),
            Access::Stream => stream(&mut self.0, packets),
        });
        Timed::new(start.elapsed(), packets.len(), sum)
    }
}

#[inline(never)]
fn gets<C: Cache>(cache: &mut C, packets: &[Packet]) -> u64 {
    packets.iter().filter_map(|packet| cache.get(packet)).map(u64::from).sum()
}

/// Looks up one packet after the other. The next index depends on the value, whose top bit is
/// always clear, so the CPU cannot overlap lookups.
#[inline(never)]
fn chain<C: Cache>(cache: &mut C, packets: &[Packet]) -> u64 {
    let (mut at, mut sum) = (0, 0);
    while let Some(packet) = packets.get(at) {
        let value = cache.get(packet).expect("the flow is cached");
        sum += u64::from(value);
        at += 1 + (value >> 31) as usize;
    }
    sum
}

#[inline(never)]
fn bursts<C: Cache>(cache: &mut C, packets: &[Packet], size: usize) -> u64 {
    packets.chunks(size).map(|burst| cache.burst(burst)).sum()
}

/// Counts the hits of a stream, and inserts each missing flow.
#[inline(never)]
fn stream<C: Cache>(cache: &mut C, packets: &[Packet]) -> u64 {
    let mut hits = 0;
    for (value, packet) in packets.iter().enumerate() {
        match cache.get(packet) {
            Some(_) => hits += 1,
            None => cache.insert(packet, value as u32),
        }
    }
    hits
}
