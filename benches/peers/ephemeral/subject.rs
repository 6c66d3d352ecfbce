//! Stores of bindings as subjects: what is measured, and the loops, compiled for each store.

use std::hint::black_box;
use std::time::Instant;

use super::packets::Packet;
use crate::subject::{BURST, Subject, Timed};

/// The methods of a store that are measured.
pub(crate) trait Bindings {
    /// Adds one to the value of `tag`, which starts at zero. Returns the new value.
    fn count(&mut self, tag: u64, now: u64) -> u64;

    /// The sum of the new values of a batch; one packet at a time, unless the store has a batched
    /// call.
    #[inline]
    fn burst(&mut self, packets: &[Packet], now: u64) -> u64 {
        packets.iter().map(|packet| self.count(packet.tag, now)).sum()
    }

    /// Bytes allocated, if the store counts them.
    fn bytes(&self) -> Option<usize> {
        None
    }
}

/// The benchmarks of one store.
pub(crate) trait StoreBenchmark {
    /// Bytes allocated, if the store counts them. They do not change.
    fn bytes(&self) -> Option<usize>;

    /// Processes packets, one by one or in batches.
    fn run(&mut self, packets: &[Packet], in_bursts: bool) -> Timed;
}

pub(crate) type StoreSubject = Subject<dyn StoreBenchmark>;

struct Loops<B>(B);

/// Returns the benchmarks of a store.
pub(crate) fn store(bindings: impl Bindings + 'static) -> Box<dyn StoreBenchmark> {
    Box::new(Loops(bindings))
}

impl<B: Bindings> StoreBenchmark for Loops<B> {
    fn bytes(&self) -> Option<usize> {
        self.0.bytes()
    }

    fn run(&mut self, packets: &[Packet], in_bursts: bool) -> Timed {
        let start = Instant::now();
        let sum = black_box(match in_bursts {
            false => singles(&mut self.0, packets),
            true => bursts(&mut self.0, packets),
        });
        Timed::new(start.elapsed(), packets.len(), sum)
    }
}

#[inline(never)]
fn singles<B: Bindings>(bindings: &mut B, packets: &[Packet]) -> u64 {
    packets.iter().map(|packet| bindings.count(packet.tag, packet.now)).sum()
}

/// The packets of a batch arrive at the time of its last one.
#[inline(never)]
fn bursts<B: Bindings>(bindings: &mut B, packets: &[Packet]) -> u64 {
    let bursts = packets.chunks(BURST);
    bursts.map(|burst| bindings.burst(burst, burst[burst.len() - 1].now)).sum()
}
