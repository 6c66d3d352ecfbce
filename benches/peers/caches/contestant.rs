//! A contestant: a table of flows, and the loops that measure it, compiled for that table alone.

use std::hint::black_box;
use std::time::Instant;

use super::Bench;
use super::packets::Packet;
use crate::entrant::{Enters, Entrant, Timed};

/// What a table has to be able to do.
pub(crate) trait Table {
    /// Whether a flow that is put in may have another one leave. Else it has nothing to do with streams.
    const IS_BOUNDED: bool = true;

    fn get(&mut self, packet: &Packet) -> Option<u32>;

    /// Puts in a flow that is not there.
    fn put(&mut self, packet: &Packet, value: u32);

    /// The sum of what is found for a burst: one after the other, where a table knows nothing better.
    #[inline]
    fn burst(&mut self, packets: &[Packet]) -> u64 {
        packets.iter().filter_map(|packet| self.get(packet)).map(u64::from).sum()
    }

    /// Bytes allocated, if it says.
    fn bytes(&self) -> Option<usize> {
        None
    }
}

/// A table whose type is not known to who makes it work. Of a stream the sum is that of the hits.
pub(crate) trait Work {
    fn bytes(&self) -> Option<usize>;
    fn takes_part(&self, bench: Bench) -> bool;
    fn fill(&mut self, flows: &[Packet]);
    fn run(&mut self, bench: Bench, packets: &[Packet]) -> Timed;
}

pub(crate) type Contestant = Entrant<dyn Work>;

impl<T: Table + 'static> Enters<dyn Work> for T {
    fn enter(self) -> Box<dyn Work> {
        Box::new(self)
    }
}

impl<T: Table> Work for T {
    fn bytes(&self) -> Option<usize> {
        Table::bytes(self)
    }

    fn takes_part(&self, bench: Bench) -> bool {
        T::IS_BOUNDED || !matches!(bench, Bench::Stream)
    }

    fn fill(&mut self, flows: &[Packet]) {
        for (value, flow) in flows.iter().enumerate() {
            self.put(flow, value as u32);
        }
    }

    fn run(&mut self, bench: Bench, packets: &[Packet]) -> Timed {
        let start = Instant::now();
        let sum = black_box(match bench {
            Bench::Hit | Bench::Miss => gets(self, packets),
            Bench::Dependent => chain(self, packets),
            Bench::Bursts(size) => bursts(self, packets, size),
            Bench::Stream => stream(self, packets),
        });
        Timed::new(start.elapsed(), packets.len(), sum)
    }
}

#[inline(never)]
fn gets<T: Table>(table: &mut T, packets: &[Packet]) -> u64 {
    packets.iter().filter_map(|packet| table.get(packet)).map(u64::from).sum()
}

/// Values are small, so it is always the packet behind; but the machine cannot know before it has the value.
#[inline(never)]
fn chain<T: Table>(table: &mut T, packets: &[Packet]) -> u64 {
    let (mut at, mut sum) = (0, 0);
    while let Some(packet) = packets.get(at) {
        let value = table.get(packet).expect("the flow is there");
        sum += u64::from(value);
        at += 1 + (value >> 31) as usize;
    }
    sum
}

#[inline(never)]
fn bursts<T: Table>(table: &mut T, packets: &[Packet], size: usize) -> u64 {
    packets.chunks(size).map(|burst| table.burst(burst)).sum()
}

/// The hits of a stream; what is missing is put in.
#[inline(never)]
fn stream<T: Table>(table: &mut T, packets: &[Packet]) -> u64 {
    let mut hits = 0;
    for (value, packet) in packets.iter().enumerate() {
        match table.get(packet) {
            Some(_) => hits += 1,
            None => table.put(packet, value as u32),
        }
    }
    hits
}
