//! A contestant: a table of flows, and the loops that measure it, compiled for that table alone.

use std::hint::black_box;
use std::time::{Duration, Instant};

use flowtable::{Packet, Timestamp};

use super::super::contestant::BURST;
use super::Name;
use super::meter::Ledger;
use super::traffic::Packets;

/// Flows that a table looks at, at most, after each [`BURST`] packets, to see whether they are idle.
const BUDGET: usize = 64;

/// What a table has to be able to do.
pub(crate) trait Table {
    /// Counts a packet of so many bytes; whether its flow is a new one.
    fn see(
        &mut self,
        name: &Name,
        packet: Packet,
        length: u16,
        now: Timestamp,
        ledger: &mut Ledger,
    ) -> bool;

    /// Packets that came together: one after the other, where a table knows nothing better. How many
    /// flows are new.
    #[inline]
    fn see_burst(
        &mut self,
        packets: &[(Name, Packet)],
        lengths: &[u16],
        now: Timestamp,
        ledger: &mut Ledger,
    ) -> u64 {
        let each = packets.iter().zip(lengths);
        each.map(|((name, packet), &length)| self.see(name, *packet, length, now, ledger))
            .map(u64::from)
            .sum()
    }

    /// Ends flows that are idle; looks at `budget` of them at most.
    fn advance(&mut self, now: Timestamp, budget: usize, ledger: &mut Ledger);

    fn len(&self) -> usize;

    /// Ends all flows.
    fn drain(&mut self, ledger: &mut Ledger);
}

/// How packets come.
#[derive(Clone, Copy)]
pub(crate) enum How {
    /// Each by itself.
    Single,
    /// In bursts of [`BURST`], which have one time.
    Burst,
}

/// What became of some packets.
pub(crate) struct Forwarded {
    /// Nanoseconds for each.
    pub(crate) ns: f64,
    /// How many began a flow.
    pub(crate) fresh: u64,
}

/// A table whose type is not known to who makes it work.
pub(crate) trait Contestant {
    fn name(&self) -> &'static str;

    /// The name of the structure, if it is one of ours.
    fn structure(&self) -> Option<&'static str>;

    /// An empty table with room for so many flows.
    fn open(&mut self, capacity: usize);

    /// Packets, and looking for what is idle after each [`BURST`] of them.
    fn forward(&mut self, how: How, packets: &Packets) -> Forwarded;

    /// The same, one by one; notes the nanoseconds of each packet, and of each look after a burst.
    fn pace(&mut self, packets: &Packets, ns: &mut [u32], advances: &mut [u32]);

    /// No packets for some time, in which it looks every `step`. How long that took it.
    fn rest(&mut self, from: Timestamp, to: Timestamp, step: Duration) -> Duration;

    /// Flows in the table.
    fn len(&self) -> usize;

    /// What was written down since it was opened.
    fn ledger(&self) -> Ledger;

    /// Ends all flows and gives back the memory. What was written down since it was opened.
    fn close(&mut self) -> Ledger;
}

struct Entrant<T> {
    name: &'static str,
    structure: Option<&'static str>,
    new: Box<dyn Fn(usize) -> T>,
    table: Option<T>,
    ledger: Ledger,
}

/// One of ours.
pub(crate) fn ours<T: Table + 'static>(
    structure: &'static str,
    name: &'static str,
    new: impl Fn(usize) -> T + 'static,
) -> Box<dyn Contestant> {
    let structure = Some(structure);
    Box::new(Entrant {
        name,
        structure,
        new: Box::new(new),
        table: None,
        ledger: Ledger::default(),
    })
}

pub(crate) fn peer<T: Table + 'static>(
    name: &'static str,
    new: impl Fn(usize) -> T + 'static,
) -> Box<dyn Contestant> {
    Box::new(Entrant {
        name,
        structure: None,
        new: Box::new(new),
        table: None,
        ledger: Ledger::default(),
    })
}

impl<T: Table> Entrant<T> {
    fn parts(&mut self) -> (&mut T, &mut Ledger) {
        (self.table.as_mut().expect("it was opened"), &mut self.ledger)
    }
}

impl<T: Table> Contestant for Entrant<T> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn structure(&self) -> Option<&'static str> {
        self.structure
    }

    fn open(&mut self, capacity: usize) {
        self.table = None;
        self.table = Some((self.new)(capacity));
        self.ledger = Ledger::default();
    }

    fn forward(&mut self, how: How, packets: &Packets) -> Forwarded {
        let (table, ledger) = self.parts();
        let start = Instant::now();
        let fresh = black_box(match how {
            How::Single => single(table, packets, ledger),
            How::Burst => bursts(table, packets, ledger),
        });
        let ns = start.elapsed().as_nanos() as f64 / packets.len() as f64;
        Forwarded { ns, fresh }
    }

    fn pace(&mut self, packets: &Packets, ns: &mut [u32], advances: &mut [u32]) {
        let (table, ledger) = self.parts();
        pace(table, packets, ledger, (ns, advances));
    }

    fn rest(&mut self, from: Timestamp, to: Timestamp, step: Duration) -> Duration {
        let (table, ledger) = self.parts();
        let start = Instant::now();
        let mut now = from;
        while now < to {
            now = now + step;
            table.advance(now, BUDGET, ledger);
        }
        start.elapsed()
    }

    fn len(&self) -> usize {
        self.table.as_ref().map_or(0, Table::len)
    }

    fn ledger(&self) -> Ledger {
        self.ledger
    }

    fn close(&mut self) -> Ledger {
        if let Some(mut table) = self.table.take() {
            table.drain(&mut self.ledger);
        }
        self.ledger
    }
}

#[inline(never)]
fn single<T: Table>(table: &mut T, packets: &Packets, ledger: &mut Ledger) -> u64 {
    let mut fresh = 0;
    for (at, ((name, packet), &length)) in packets.names.iter().zip(&packets.lengths).enumerate() {
        let now = packets.time(at);
        fresh += u64::from(table.see(name, *packet, length, now, ledger));
        if at % BURST == BURST - 1 {
            table.advance(now, BUDGET, ledger);
        }
    }
    fresh
}

#[inline(never)]
fn bursts<T: Table>(table: &mut T, packets: &Packets, ledger: &mut Ledger) -> u64 {
    let bursts = packets.names.chunks(BURST).zip(packets.lengths.chunks(BURST));
    let mut fresh = 0;
    for (number, (names, lengths)) in bursts.enumerate() {
        let now = packets.time(number * BURST + names.len() - 1);
        fresh += table.see_burst(names, lengths, now, ledger);
        table.advance(now, BUDGET, ledger);
    }
    fresh
}

#[inline(never)]
fn pace<T: Table>(
    table: &mut T,
    packets: &Packets,
    ledger: &mut Ledger,
    (ns, advances): (&mut [u32], &mut [u32]),
) {
    let mut last = Instant::now();
    let mut lap = || {
        let now = Instant::now();
        let lap = now.duration_since(last).as_nanos().try_into().unwrap_or(u32::MAX);
        last = now;
        lap
    };
    for (at, ((name, packet), &length)) in packets.names.iter().zip(&packets.lengths).enumerate() {
        let now = packets.time(at);
        table.see(name, *packet, length, now, ledger);
        ns[at] = lap();
        if at % BURST == BURST - 1 {
            table.advance(now, BUDGET, ledger);
            advances[at / BURST] = lap();
        }
    }
}
