//! A contestant: a table of flows, and the loops that measure it, compiled for that table alone.

use std::hint::black_box;
use std::time::Instant;

use super::Bench;
use super::packets::Packet;

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

/// Nanoseconds for each packet, and the sum of what was found; of a stream the hits.
pub(crate) struct Timed {
    pub(crate) ns: f64,
    pub(crate) sum: u64,
}

/// A table whose type is not known to who makes it work.
pub(crate) trait Contestant {
    fn name(&self) -> &'static str;

    /// The name of the structure, if it is one of ours.
    fn structure(&self) -> Option<&'static str>;

    fn bytes(&self) -> Option<usize>;
    fn takes_part(&self, bench: Bench) -> bool;
    fn fill(&mut self, flows: &[Packet]);
    fn run(&mut self, bench: Bench, packets: &[Packet]) -> Timed;
}

struct Entrant<T> {
    name: &'static str,
    structure: Option<&'static str>,
    table: T,
}

/// One of ours.
pub(crate) fn ours<T: Table + 'static>(
    structure: &'static str,
    name: &'static str,
    table: T,
) -> Box<dyn Contestant> {
    Box::new(Entrant { name, structure: Some(structure), table })
}

pub(crate) fn peer<T: Table + 'static>(name: &'static str, table: T) -> Box<dyn Contestant> {
    Box::new(Entrant { name, structure: None, table })
}

impl<T: Table> Contestant for Entrant<T> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn structure(&self) -> Option<&'static str> {
        self.structure
    }

    fn bytes(&self) -> Option<usize> {
        self.table.bytes()
    }

    fn takes_part(&self, bench: Bench) -> bool {
        T::IS_BOUNDED || !matches!(bench, Bench::Stream)
    }

    fn fill(&mut self, flows: &[Packet]) {
        for (value, flow) in flows.iter().enumerate() {
            self.table.put(flow, value as u32);
        }
    }

    fn run(&mut self, bench: Bench, packets: &[Packet]) -> Timed {
        let start = Instant::now();
        let sum = black_box(match bench {
            Bench::Hit | Bench::Miss => gets(&mut self.table, packets),
            Bench::Dependent => chain(&mut self.table, packets),
            Bench::Bursts(size) => bursts(&mut self.table, packets, size),
            Bench::Stream => stream(&mut self.table, packets),
        });
        Timed { ns: start.elapsed().as_nanos() as f64 / packets.len() as f64, sum }
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
