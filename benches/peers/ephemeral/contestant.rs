//! A contestant: a table of bindings, and the loops that measure it, compiled for that table alone.

use std::hint::black_box;
use std::time::Instant;

use super::BURST;
use super::packets::Packet;

/// What a table has to be able to do.
pub(crate) trait Table {
    /// Adds one to the value of a tag, which is zero when it is created.
    fn count(&mut self, tag: u64, now: u64) -> u64;

    /// The sum of what that gives for a burst: one after the other, where a table knows nothing better.
    #[inline]
    fn burst(&mut self, packets: &[Packet], now: u64) -> u64 {
        packets.iter().map(|packet| self.count(packet.tag, now)).sum()
    }

    /// Bytes allocated, if it says.
    fn bytes(&self) -> Option<usize> {
        None
    }
}

/// Nanoseconds for each packet, and the sum of the values.
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
    fn run(&mut self, packets: &[Packet], in_bursts: bool) -> Timed;
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

    fn run(&mut self, packets: &[Packet], in_bursts: bool) -> Timed {
        let start = Instant::now();
        let sum = black_box(match in_bursts {
            false => singles(&mut self.table, packets),
            true => bursts(&mut self.table, packets),
        });
        Timed { ns: start.elapsed().as_nanos() as f64 / packets.len() as f64, sum }
    }
}

#[inline(never)]
fn singles<T: Table>(table: &mut T, packets: &[Packet]) -> u64 {
    packets.iter().map(|packet| table.count(packet.tag, packet.now)).sum()
}

/// All of a burst come when its last one does.
#[inline(never)]
fn bursts<T: Table>(table: &mut T, packets: &[Packet]) -> u64 {
    let bursts = packets.chunks(BURST);
    bursts.map(|burst| table.burst(burst, burst[burst.len() - 1].now)).sum()
}
