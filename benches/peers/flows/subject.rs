//! Meters as subjects: what is measured, and the loops, compiled for each meter.

use std::hint::black_box;
use std::time::{Duration, Instant};

use flowtable::Timestamp;
use flowtable::flow_cache::Packet;

use super::meter::{EndedFlows, MeterName};
use super::traffic::Packets;
use crate::subject::{BURST, Subject};

/// The greatest number of flows that are checked for expiry after each [`BURST`] packets.
const BUDGET: usize = 64;

/// The methods of a meter that are measured.
pub(crate) trait Meter {
    type Name: MeterName;

    /// Counts a packet. Returns whether its flow is new.
    fn on_packet(
        &mut self,
        name: &Self::Name,
        packet: Packet,
        length: u16,
        now: Timestamp,
        ended: &mut EndedFlows,
    ) -> bool;

    /// Counts a batch of packets; one at a time, unless the meter has a batched call. Returns the
    /// number of new flows.
    #[inline]
    fn on_batch(
        &mut self,
        packets: &[(Self::Name, Packet)],
        lengths: &[u16],
        now: Timestamp,
        ended: &mut EndedFlows,
    ) -> u64 {
        let each = packets.iter().zip(lengths);
        each.map(|((name, packet), &length)| self.on_packet(name, *packet, length, now, ended))
            .map(u64::from)
            .sum()
    }

    /// Removes idle flows; checks `budget` flows at most.
    fn expire(&mut self, now: Timestamp, budget: usize, ended: &mut EndedFlows);

    fn len(&self) -> usize;

    /// Removes all flows.
    fn drain(&mut self, ended: &mut EndedFlows);
}

/// How packets are passed to a meter.
#[derive(Clone, Copy)]
pub(crate) enum Delivery {
    /// One by one.
    Single,
    /// In batches of [`BURST`] with one timestamp.
    Burst,
}

/// The result of processing some packets.
pub(crate) struct Processed {
    /// Nanoseconds per packet.
    pub(crate) ns: f64,
    pub(crate) new_flows: u64,
}

/// The benchmarks of one meter.
pub(crate) trait MeterBenchmark {
    /// Makes an empty table with this capacity.
    fn open(&mut self, capacity: usize);

    /// Processes packets, and checks for expiry after each [`BURST`] of them.
    fn process(&mut self, delivery: Delivery, packets: &Packets) -> Processed;

    /// Processes packets one by one, and stores the nanoseconds of each packet in `ns` and of each
    /// check for expiry in `checks`.
    fn time_packets(&mut self, packets: &Packets, ns: &mut [u32], checks: &mut [u32]);

    /// Passes time without packets, and checks for expiry at each `step`. Returns the time used.
    fn pause(&mut self, from: Timestamp, to: Timestamp, step: Duration) -> Duration;

    /// Flows in the table.
    fn len(&self) -> usize;

    /// The flows that ended since the table was opened.
    fn ended(&self) -> EndedFlows;

    /// Removes all flows and drops the table. Returns the flows that ended since it was opened.
    fn close(&mut self) -> EndedFlows;
}

pub(crate) type MeterSubject = Subject<dyn MeterBenchmark>;

struct Loops<M, F> {
    new: F,
    meter: Option<M>,
    ended: EndedFlows,
}

/// Returns the benchmarks of the meter that `new` makes for a capacity.
pub(crate) fn meter<M, F>(new: F) -> Box<dyn MeterBenchmark>
where
    M: Meter + 'static,
    F: Fn(usize) -> M + 'static,
{
    Box::new(Loops { new, meter: None, ended: EndedFlows::default() })
}

impl<M: Meter, F> Loops<M, F> {
    fn parts(&mut self) -> (&mut M, &mut EndedFlows) {
        (self.meter.as_mut().expect("the table is open"), &mut self.ended)
    }
}

impl<M: Meter, F: Fn(usize) -> M> MeterBenchmark for Loops<M, F> {
    fn open(&mut self, capacity: usize) {
        self.meter = None;
        self.meter = Some((self.new)(capacity));
        self.ended = EndedFlows::default();
    }

    fn process(&mut self, delivery: Delivery, packets: &Packets) -> Processed {
        let (meter, ended) = self.parts();
        let names = M::Name::of(&packets.names);
        let start = Instant::now();
        let new_flows = black_box(match delivery {
            Delivery::Single => single(meter, &names, packets, ended),
            Delivery::Burst => bursts(meter, &names, packets, ended),
        });
        let ns = start.elapsed().as_nanos() as f64 / packets.len() as f64;
        Processed { ns, new_flows }
    }

    fn time_packets(&mut self, packets: &Packets, ns: &mut [u32], checks: &mut [u32]) {
        let (meter, ended) = self.parts();
        time_packets(meter, &M::Name::of(&packets.names), packets, ended, (ns, checks));
    }

    fn pause(&mut self, from: Timestamp, to: Timestamp, step: Duration) -> Duration {
        let (meter, ended) = self.parts();
        let start = Instant::now();
        let mut now = from;
        while now < to {
            now = now + step;
            meter.expire(now, BUDGET, ended);
        }
        start.elapsed()
    }

    fn len(&self) -> usize {
        self.meter.as_ref().map_or(0, Meter::len)
    }

    fn ended(&self) -> EndedFlows {
        self.ended
    }

    fn close(&mut self) -> EndedFlows {
        if let Some(mut meter) = self.meter.take() {
            meter.drain(&mut self.ended);
        }
        self.ended
    }
}

#[inline(never)]
fn single<M: Meter>(
    meter: &mut M,
    names: &[(M::Name, Packet)],
    packets: &Packets,
    ended: &mut EndedFlows,
) -> u64 {
    let mut new_flows = 0;
    for (at, ((name, packet), &length)) in names.iter().zip(&packets.lengths).enumerate() {
        let now = packets.time(at);
        new_flows += u64::from(meter.on_packet(name, *packet, length, now, ended));
        if at % BURST == BURST - 1 {
            meter.expire(now, BUDGET, ended);
        }
    }
    new_flows
}

#[inline(never)]
fn bursts<M: Meter>(
    meter: &mut M,
    names: &[(M::Name, Packet)],
    packets: &Packets,
    ended: &mut EndedFlows,
) -> u64 {
    let bursts = names.chunks(BURST).zip(packets.lengths.chunks(BURST));
    let mut new_flows = 0;
    for (number, (names, lengths)) in bursts.enumerate() {
        let now = packets.time(number * BURST + names.len() - 1);
        new_flows += meter.on_batch(names, lengths, now, ended);
        meter.expire(now, BUDGET, ended);
    }
    new_flows
}

#[inline(never)]
fn time_packets<M: Meter>(
    meter: &mut M,
    names: &[(M::Name, Packet)],
    packets: &Packets,
    ended: &mut EndedFlows,
    (ns, checks): (&mut [u32], &mut [u32]),
) {
    let mut last = Instant::now();
    let mut lap = || {
        let now = Instant::now();
        let lap = now.duration_since(last).as_nanos().try_into().unwrap_or(u32::MAX);
        last = now;
        lap
    };
    for (at, ((name, packet), &length)) in names.iter().zip(&packets.lengths).enumerate() {
        let now = packets.time(at);
        meter.on_packet(name, *packet, length, now, ended);
        ns[at] = lap();
        if at % BURST == BURST - 1 {
            meter.expire(now, BUDGET, ended);
            checks[at / BURST] = lap();
        }
    }
}
