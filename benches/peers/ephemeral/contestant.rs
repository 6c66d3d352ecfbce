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

/// Works through packets, one by one or in bursts.
type Work = Box<dyn FnMut(&[Packet], bool) -> Timed>;

/// A table at work, whose type is not known any more.
pub(crate) struct Contestant {
    pub(crate) name: &'static str,
    /// The name of the structure, if it is one of ours.
    pub(crate) structure: Option<&'static str>,
    /// Bytes allocated, if it says. They do not change.
    pub(crate) bytes: Option<usize>,
    pub(crate) run: Work,
}

impl Contestant {
    /// One of ours.
    pub(crate) fn ours<T: Table + 'static>(
        structure: &'static str,
        name: &'static str,
        table: T,
    ) -> Self {
        Self { structure: Some(structure), ..Self::peer(name, table) }
    }

    pub(crate) fn peer<T: Table + 'static>(name: &'static str, mut table: T) -> Self {
        let bytes = table.bytes();
        let run = move |packets: &[Packet], in_bursts| {
            let start = Instant::now();
            let sum = black_box(match in_bursts {
                false => singles(&mut table, packets),
                true => bursts(&mut table, packets),
            });
            Timed { ns: start.elapsed().as_nanos() as f64 / packets.len() as f64, sum }
        };
        Self { name, structure: None, bytes, run: Box::new(run) }
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
