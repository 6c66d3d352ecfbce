//! A comparison of schedules on the same traffic.

use flowtable::papers::hash::{Crc32, hash_bytes};

use super::{Costs, Outcome, Plan, Router, Traffic};
use crate::program::failure::{Failure, Kind};

/// Results of all schedules.
#[derive(Debug)]
pub struct Comparison<'a> {
    pub traffic: &'a Traffic,
    pub costs: &'a Costs,
    /// Offered packets per second.
    pub rate: u64,
    /// In the order of [`Plan::COMPARED`].
    pub outcomes: Vec<Outcome>,
    pub curve: Vec<Point>,
    pub agreement: Agreement,
}

/// Results at one load.
#[derive(Debug)]
pub struct Point {
    pub rate: u64,
    /// In the order of [`Plan::LIVELOCK`].
    pub outcomes: Vec<Outcome>,
}

impl<'a> Comparison<'a> {
    /// Loads of the curve, in percent of the capacity.
    const LOADS: [u32; 8] = [25, 50, 75, 100, 150, 200, 300, 400];

    /// Number of runs of the traffic.
    pub const RUNS: u64 = (Plan::COMPARED.len() + Self::LOADS.len() * Plan::LIVELOCK.len()) as u64;

    /// Runs all schedules at `load` percent of the capacity without switches. Calls `on_run_end`
    /// after each run.
    pub fn new(traffic: &'a Traffic, costs: &'a Costs, load: u32, on_run_end: impl Fn()) -> Self {
        let mut agreement = Agreement::new(traffic.packets.len());
        let capacity = costs.capacity(traffic);
        let rate = |load: u32| (capacity * u64::from(load) / 100).max(1);
        let mut run = |plan, load| {
            let router = Router::new(plan, costs, traffic, rate(load));
            let outcome = router.run(|frame| agreement.add(frame.index, &frame.bytes));
            on_run_end();
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

    /// Returns whether each packet is accounted for exactly once under each schedule.
    pub fn adds_up(&self) -> bool {
        let curve = self.curve.iter().flat_map(|point| &point.outcomes);
        self.outcomes.iter().chain(curve).all(Outcome::adds_up)
    }

    /// Returns an error if the results are inconsistent.
    pub fn verdict(&self) -> Result<(), Failure> {
        let wrong = |what| Err(Failure::new(Kind::Results, what));
        match self.agreement.disagreements {
            _ if !self.adds_up() => wrong("packets are unaccounted for"),
            0 => Ok(()),
            _ => wrong("schedules send different frames"),
        }
    }
}

/// A check that a packet leaves as the same frame under all schedules.
#[derive(Debug)]
pub struct Agreement {
    /// The CRC of the first frame of each packet.
    frames: Vec<Option<u32>>,
    pub disagreements: u64,
}

impl Agreement {
    pub fn new(packets: usize) -> Self {
        Self { frames: vec![None; packets], disagreements: 0 }
    }

    /// Adds the frame of a packet.
    pub fn add(&mut self, index: u32, bytes: &[u8]) {
        let crc = hash_bytes::<Crc32>(bytes) as u32;
        let first = *self.frames[index as usize].get_or_insert(crc);
        self.disagreements += u64::from(first != crc);
    }
}
