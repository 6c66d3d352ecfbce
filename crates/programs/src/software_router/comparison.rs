//! The same traffic under several schedules.

use flowtable::hash::Crc32;

use super::{Costs, Outcome, Plan, Router, Traffic};
use crate::program::failure::{Failure, Kind};

/// What each schedule made of the traffic.
#[derive(Debug)]
pub struct Comparison<'a> {
    pub traffic: &'a Traffic,
    pub costs: &'a Costs,
    /// Packets offered in a second.
    pub rate: u64,
    /// By the places of [`Plan::COMPARED`].
    pub outcomes: Vec<Outcome>,
    pub curve: Vec<Point>,
    pub agreement: Agreement,
}

/// What comes of a load.
#[derive(Debug)]
pub struct Point {
    pub rate: u64,
    /// By the places of [`Plan::LIVELOCK`].
    pub outcomes: Vec<Outcome>,
}

impl<'a> Comparison<'a> {
    /// Loads of the curve, in percent of the capacity.
    const LOADS: [u32; 8] = [25, 50, 75, 100, 150, 200, 300, 400];

    /// How often the traffic is run.
    pub const RUNS: u64 = (Plan::COMPARED.len() + Self::LOADS.len() * Plan::LIVELOCK.len()) as u64;

    /// At so many percent of what could be forwarded without switches. Tells of the end of each
    /// run.
    pub fn new(traffic: &'a Traffic, costs: &'a Costs, load: u32, has_run: impl Fn()) -> Self {
        let mut agreement = Agreement::new(traffic.packets.len());
        let capacity = traffic.capacity(costs);
        let rate = |load: u32| (capacity * u64::from(load) / 100).max(1);
        let mut run = |plan, load| {
            let router = Router::new(plan, costs, traffic, rate(load));
            let outcome = router.run(|frame| agreement.add(frame.number, &frame.bytes));
            has_run();
            outcome
        };
        let outcomes = Plan::COMPARED.map(|plan| run(plan, load)).to_vec();
        let mut point = |load| {
            let outcomes = Plan::LIVELOCK.map(|plan| run(plan, load)).to_vec();
            Point { rate: rate(load), outcomes }
        };
        let curve = Self::LOADS.map(&mut point).into_iter().collect();
        Self { traffic, costs, rate: rate(load), outcomes, curve, agreement }
    }

    /// Whether each packet is somewhere, and once, under each schedule.
    pub fn adds_up(&self) -> bool {
        let curve = self.curve.iter().flat_map(|point| &point.outcomes);
        self.outcomes.iter().chain(curve).all(Outcome::adds_up)
    }

    /// What is wrong with the results, if anything.
    pub fn verdict(&self) -> Result<(), Failure> {
        let wrong = |what| Err(Failure::new(Kind::Results, what));
        match self.agreement.disagreements {
            _ if !self.adds_up() => wrong("packets are nowhere"),
            0 => Ok(()),
            _ => wrong("schedules send other frames"),
        }
    }
}

/// Whether a packet leaves as the same frame, whoever runs when.
#[derive(Debug)]
pub struct Agreement {
    /// The CRC of the frame of each packet, as it was sent first.
    frames: Vec<Option<u32>>,
    pub disagreements: u64,
}

impl Agreement {
    pub fn new(packets: usize) -> Self {
        Self { frames: vec![None; packets], disagreements: 0 }
    }

    /// The frame of a packet.
    pub fn add(&mut self, number: u32, bytes: &[u8]) {
        let crc = Crc32::of(bytes);
        let first = *self.frames[number as usize].get_or_insert(crc);
        self.disagreements += u64::from(first != crc);
    }
}
