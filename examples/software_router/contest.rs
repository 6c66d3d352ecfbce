//! The same traffic under several schedules.

use flowtable::hash::Crc32;

use crate::program::failure::{Failure, Kind};

use super::{Costs, Outcome, Plan, Router, Traffic};

/// What each schedule made of the traffic.
#[derive(Debug)]
pub(crate) struct Contest<'a> {
    pub(crate) traffic: &'a Traffic,
    pub(crate) costs: &'a Costs,
    /// Packets offered in a second.
    pub(crate) rate: u64,
    /// By the places of [`Plan::CONTEST`].
    pub(crate) outcomes: Vec<Outcome>,
    pub(crate) curve: Vec<Point>,
    pub(crate) agreement: Agreement,
}

/// What comes of a load.
#[derive(Debug)]
pub(crate) struct Point {
    pub(crate) rate: u64,
    /// By the places of [`Plan::LIVELOCK`].
    pub(crate) outcomes: Vec<Outcome>,
}

impl<'a> Contest<'a> {
    /// Loads of the curve, in percent of the capacity.
    const LOADS: [u32; 8] = [25, 50, 75, 100, 150, 200, 300, 400];

    /// How often the traffic is run.
    pub(crate) const RUNS: u64 =
        (Plan::CONTEST.len() + Self::LOADS.len() * Plan::LIVELOCK.len()) as u64;

    /// At so many percent of what could be forwarded without switches. Tells of the end of each run.
    pub(crate) fn new(
        traffic: &'a Traffic,
        costs: &'a Costs,
        load: u32,
        has_run: impl Fn(),
    ) -> Self {
        let mut agreement = Agreement::new(traffic.packets.len());
        let capacity = traffic.capacity(costs);
        let rate = |load: u32| (capacity * u64::from(load) / 100).max(1);
        let mut run = |plan, load| {
            let router = Router::new(plan, costs, traffic, rate(load));
            let outcome = router.run(|frame| agreement.add(frame.number, &frame.bytes));
            has_run();
            outcome
        };
        let outcomes = Plan::CONTEST.map(|plan| run(plan, load)).to_vec();
        let mut point = |load| {
            let outcomes = Plan::LIVELOCK.map(|plan| run(plan, load)).to_vec();
            Point { rate: rate(load), outcomes }
        };
        let curve = Self::LOADS.map(&mut point).into_iter().collect();
        Self { traffic, costs, rate: rate(load), outcomes, curve, agreement }
    }

    /// Whether each packet is somewhere, and once, under each schedule.
    pub(crate) fn adds_up(&self) -> bool {
        let curve = self.curve.iter().flat_map(|point| &point.outcomes);
        self.outcomes.iter().chain(curve).all(Outcome::adds_up)
    }

    /// What is wrong with the results, if anything.
    pub(crate) fn verdict(&self) -> Result<(), Failure> {
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
pub(crate) struct Agreement {
    /// The CRC of the frame of each packet, as it was sent first.
    frames: Vec<Option<u32>>,
    pub(crate) disagreements: u64,
}

impl Agreement {
    pub(crate) fn new(packets: usize) -> Self {
        Self { frames: vec![None; packets], disagreements: 0 }
    }

    /// The frame of a packet.
    pub(crate) fn add(&mut self, number: u32, bytes: &[u8]) {
        let crc = Crc32::of(bytes);
        let first = *self.frames[number as usize].get_or_insert(crc);
        self.disagreements += u64::from(first != crc);
    }
}
