//! A contestant: a table of bindings, and the loops that measure it, compiled for that table alone.

use std::hint::black_box;
use std::time::Instant;

use super::BURST;
use super::packets::Packet;
use crate::entrant::{Enters, Entrant, Timed};

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

/// A table at work, whose type is not known to who makes it work.
pub(crate) trait Work {
    /// Bytes allocated, if it says. They do not change.
    fn bytes(&self) -> Option<usize>;

    /// Works through packets, one by one or in bursts.
    fn run(&mut self, packets: &[Packet], in_bursts: bool) -> Timed;
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

    fn run(&mut self, packets: &[Packet], in_bursts: bool) -> Timed {
        let start = Instant::now();
        let sum = black_box(match in_bursts {
            false => singles(self, packets),
            true => bursts(self, packets),
        });
        Timed::new(start.elapsed(), packets.len(), sum)
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
