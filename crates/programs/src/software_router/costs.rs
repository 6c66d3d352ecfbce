//! The cost of a packet at each stage, in nanoseconds.

use core::hint::black_box;
use core::time::Duration;
use std::time::Instant;

use flowtable::Timestamp;
use flowtable::papers::schedule::share::{Order, ProportionalShare};
use flowtable::papers::schedule::{
    Budget, Occupancy, Policy, ScheduleError, Scheduler, ThreadConfig,
};

use super::{Arrival, Classifier, Datagram, Forwarder, Function, Port, Traffic};

/// The costs of packets and of a switch, in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Costs {
    /// Reading and classifying a packet, or polling an empty ring.
    pub input: u64,
    /// By function.
    pub functions: [u64; Function::ALL.len()],
    /// Selecting and writing a packet.
    pub output: u64,
    /// Switching to another thread.
    pub switch: u64,
    /// Transmission of a thousand bytes.
    pub kilobyte: u64,
}

impl Costs {
    /// The paper's table 1: a Pentium II of 450 MHz. Its links would be the bottleneck, so here
    /// they have a gigabit.
    pub const PAPER: Self = Self {
        input: 1600,
        functions: [300, 3000, 10_700, 37_300],
        output: 1400,
        switch: 3000,
        kilobyte: 8000,
    };

    /// Packets that are timed together: reading a clock takes as long as one of them.
    const GROUP: usize = 32;

    /// Measures the costs on this computer. A switch costs the scheduler's work for a turn; links
    /// have a hundred gigabits.
    pub fn measured(traffic: &Traffic) -> Self {
        let mut forwarder = Forwarder::default();
        let mut classifier = Classifier::default();
        let arrivals = &traffic.packets;
        let classify = |packet: &mut Datagram| _ = black_box(classifier.classify(packet));
        let input = median(arrivals, classify);
        let mut functions = Self::PAPER.functions;
        for function in Function::ALL {
            let is_its = |arrival: &&Arrival| {
                classifier.classify(&arrival.packet).is_ok_and(|path| path.function == function)
            };
            let its: Vec<Arrival> = arrivals.iter().filter(is_its).cloned().collect();
            let forward = |packet: &mut Datagram| {
                _ = black_box(forwarder.forward(function, packet, Timestamp::ZERO));
            };
            functions[function as usize] = median(&its, forward).unwrap_or(0);
        }
        let write = |packet: &mut Datagram| drop(black_box(written(packet, Port::Inside)));
        let (input, output) = (input.unwrap_or(0), median(arrivals, write).unwrap_or(0));
        let switch = turn().expect("sixteen shares of six are within a hundred");
        // No cost is zero.
        Self { input, functions, output, switch, kilobyte: 80 }.map(|cost| cost.max(1))
    }

    /// Returns the packets of this traffic per second that a router without switches could forward.
    pub fn capacity(&self, traffic: &Traffic) -> u64 {
        let functions = self.functions.iter().zip(traffic.by_function);
        let packets = traffic.packets.len();
        let forwarded: u64 = traffic.by_function.iter().sum();
        let busy_ns = self.input * packets as u64
            + functions.map(|(cost, packets)| cost * packets).sum::<u64>()
            + self.output * forwarded;
        (1_000_000_000 * packets as u128 / u128::from(busy_ns.max(1))).max(1) as u64
    }

    fn map(self, each: impl Fn(u64) -> u64) -> Self {
        Self {
            input: each(self.input),
            functions: self.functions.map(&each),
            output: each(self.output),
            switch: each(self.switch),
            kilobyte: self.kilobyte,
        }
    }
}

/// Returns the frame for a packet.
pub(crate) fn written(packet: &Datagram, port: Port) -> Vec<u8> {
    [&port.ethernet(packet.is_v4())[..], &packet.bytes].concat()
}

/// Returns the median time of a packet in a group.
fn median(arrivals: &[Arrival], mut each: impl FnMut(&mut Datagram)) -> Option<u64> {
    let mut times_ns = vec![];
    for group in arrivals.chunks(Costs::GROUP) {
        let mut packets: Vec<Datagram> = group.iter().map(|one| one.packet.clone()).collect();
        let begun = Instant::now();
        packets.iter_mut().for_each(&mut each);
        times_ns.push(begun.elapsed().as_nanos() as u64 / group.len() as u64);
    }
    middle(times_ns)
}

/// Returns the median time of the scheduler for one turn and two updates of occupancy.
fn turn() -> Result<u64, ScheduleError> {
    let cost = Duration::from_nanos(100);
    let shares = ProportionalShare::new(16, 100, Order::Wf2qPlus)?;
    let mut scheduler = Scheduler::new(shares, cost, Policy::Budget(Budget::packets(1)))?;
    for _ in 0..16 {
        let thread = scheduler.add(ThreadConfig::new(6, cost))?;
        scheduler.set_occupancy(thread, Occupancy::queued(9), Timestamp::ZERO)?;
    }
    let mut times_ns = vec![];
    for _ in 0..1000 {
        let begun = Instant::now();
        for _ in 0..Costs::GROUP {
            let Some(turn) = scheduler.next(Timestamp::ZERO) else { break };
            let thread = turn.thread;
            scheduler.finish(turn, cost, Occupancy::queued(9), Timestamp::ZERO)?;
            scheduler.set_occupancy(thread, Occupancy::queued(9), Timestamp::ZERO)?;
        }
        times_ns.push(begun.elapsed().as_nanos() as u64 / Costs::GROUP as u64);
    }
    Ok(middle(times_ns).unwrap_or(0))
}

fn middle(mut values: Vec<u64>) -> Option<u64> {
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}
