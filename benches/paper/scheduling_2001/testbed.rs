//! The testbed of the paper: the pipeline of the crate with published costs, and a simulated clock.
//!
//! ```text
//!     flow ─▸ ░░░░ card ─▸ input ─▸ ▒▒▒ path ─▸ forwarding ─▸ ▒▒▒ ─▸ output ─▸ counted
//! ```
//!
//! The testbed is not available; its costs are known. Tables 2 and 3 and figures 4 to 8 are this
//! program with other flows, paths and shares.

use std::error::Error;
use std::time::Duration;

use flowtable::Timestamp;
use flowtable::papers::schedule::pipeline::{Device, Pipeline, Reading};
use flowtable::papers::schedule::{BoundedQueue, EstimatorError, QueueEstimator, longest_sleep};

/// The packets of a poll, and of any turn, at most.
pub(crate) const BATCH: u32 = 16;
/// A switch by which, with turns of nine packets, all rows of table 2 come out.
pub(crate) const SWITCH: Duration = Duration::from_nanos(920);
/// Buffers of a card, and of each queue in the router.
pub(crate) const CARD: u32 = 64;
pub(crate) const QUEUE: usize = 128;
/// The smallest packets of a link of 100 Mb/s, in a second.
pub(crate) const LINE_RATE: u64 = 148_800;
/// The time of such a packet on a link.
const ON_LINK: Duration = Duration::from_nanos(1_000_000_000 / LINE_RATE);
/// The costs to read a packet, to forward it on the fast path, and to write it.
pub(crate) const READ: Duration = Duration::from_nanos(1_600);
pub(crate) const FORWARD: Duration = Duration::from_nanos(300);
pub(crate) const WRITE: Duration = Duration::from_nanos(1_400);

/// The estimator of the crate for a card of the testbed.
pub(crate) fn estimator() -> Result<QueueEstimator, EstimatorError> {
    QueueEstimator::new(BATCH, longest_sleep(CARD, LINE_RATE))
}

/// Evenly spaced packets of one path, to one card.
struct Flow {
    packets_per_second: u64,
    card: usize,
    path: usize,
    /// The beginning of this rate, and the packets since.
    since: Timestamp,
    arrived: u64,
}

/// The costs of the steps of a packet.
#[derive(Clone)]
pub(crate) struct Costs {
    pub(crate) read: Duration,
    /// By path.
    pub(crate) forward: Vec<Duration>,
    pub(crate) switch: Duration,
    /// The cost of a poll that finds no packet.
    pub(crate) empty: Duration,
    /// Whether the switch to an empty port is charged to its thread.
    pub(crate) charges_polls: bool,
    /// The cost of the interrupt by which a packet is read. `None`: input threads read.
    pub(crate) interrupt: Option<Duration>,
    /// Whether the input thread forwards and writes, too: a router of one process.
    pub(crate) is_one_process: bool,
    /// Whether forwarding threads consume packets: there are no outputs.
    pub(crate) consumes: bool,
}

impl Costs {
    /// The costs of the paper with these costs of forwarding.
    pub(crate) fn new(forward: &[Duration], switch: Duration) -> Self {
        let (forward, empty) = (forward.to_vec(), Duration::from_micros(1));
        let (charges_polls, is_one_process, consumes) = (false, false, false);
        let (read, interrupt) = (READ, None);
        Self { read, forward, switch, empty, charges_polls, interrupt, is_one_process, consumes }
    }
}

/// The cards, the flows and the clock.
pub(crate) struct Testbed {
    now: Timestamp,
    costs: Costs,
    flows: Vec<Flow>,
    /// The paths of the packets in each card.
    cards: Vec<BoundedQueue<usize>>,
    /// When each link will have sent its packets. No links: outputs are unlimited.
    links: Vec<Timestamp>,
    /// The packets of each path that were written, or consumed by their function.
    pub(crate) sent: Vec<u64>,
}

impl Testbed {
    pub(crate) fn new(costs: Costs, cards: usize) -> Result<Self, Box<dyn Error>> {
        let cards = (0..cards).map(|_| BoundedQueue::new(CARD as usize)).collect::<Result<_, _>>();
        let sent = vec![0; costs.forward.len()];
        let (now, flows, links) = (Timestamp::ZERO, vec![], vec![]);
        Ok(Self { now, costs, flows, cards: cards?, links, sent })
    }

    /// Adds a flow of packets of a path.
    pub(crate) fn with_flow(mut self, packets_per_second: u64, card: usize, path: usize) -> Self {
        let (since, arrived) = (self.now, 0);
        self.flows.push(Flow { packets_per_second, card, path, since, arrived });
        self
    }

    /// Limits outputs to the rate of a link each.
    pub(crate) fn with_links(self, outputs: usize) -> Self {
        Self { links: vec![self.now; outputs], ..self }
    }

    /// Changes the rate of a flow from now on.
    pub(crate) fn set_rate(&mut self, flow: usize, packets_per_second: u64) {
        let (now, flow) = (self.now, &mut self.flows[flow]);
        (flow.packets_per_second, flow.since, flow.arrived) = (packets_per_second, now, 0);
    }

    /// Advances the clock, and adds the packets that have arrived to the cards, which drop.
    fn pass(&mut self, duration: Duration) {
        self.now = self.now + duration;
        for flow in &mut self.flows {
            let nanos = self.now.since(flow.since).as_nanos() as u64;
            let due = nanos * flow.packets_per_second / 1_000_000_000;
            for _ in flow.arrived..due {
                let _dropped = self.cards[flow.card].push(flow.path);
            }
            flow.arrived = due;
        }
    }

    /// Reads a packet of the cards, by an interrupt that costs this. Returns false if there is
    /// none.
    fn interrupt(&mut self, pipeline: &mut Pipeline<usize>, cost: Duration) -> bool {
        let cards = self.cards.len();
        let Some(path) = (0..cards).find_map(|card| self.cards[card].pop()) else { return false };
        self.pass(cost);
        // The queue counts drops.
        let _dropped = pipeline.enqueue(path, path, self.now);
        true
    }

    /// Runs the pipeline for a time. Returns the thousands of packets per second of each path.
    pub(crate) fn run(
        &mut self,
        pipeline: &mut Pipeline<usize>,
        duration: Duration,
    ) -> Result<Vec<f64>, Box<dyn Error>> {
        let before = self.sent.clone();
        let end = self.now + duration;
        while self.now < end {
            pipeline.update(self);
            // Interrupts come before any turn.
            if self.costs.interrupt.is_some_and(|cost| self.interrupt(pipeline, cost)) {
                continue;
            }
            let Some(turn) = pipeline.next(self.now) else {
                // Cards are polled, or else looked at each microsecond, as full links are.
                let is_full = (0..self.links.len()).any(|output| self.room(output) == 0);
                let wake = match self.costs.interrupt {
                    None if !is_full => pipeline.scheduler().wake_at().unwrap_or(end),
                    _ => self.now + Duration::from_micros(1),
                };
                self.pass(wake.min(end).since(self.now));
                continue;
            };
            self.pass(self.costs.switch);
            pipeline.run(turn, self)?;
        }
        let kpps = |(after, before): (&u64, u64)| {
            (after - before) as f64 / duration.as_secs_f64() / 1000.0
        };
        Ok(self.sent.iter().zip(before).map(kpps).collect())
    }
}

impl Device for Testbed {
    type Packet = usize;

    fn now(&self) -> Timestamp {
        self.now
    }

    fn read(&mut self, input: usize) -> Reading<usize> {
        let Some(path) = self.cards[input].pop() else { return Reading::Empty };
        self.pass(self.costs.read);
        if self.costs.is_one_process {
            self.pass(self.costs.forward[path] + WRITE);
            self.sent[path] += 1;
            return Reading::Discarded;
        }
        Reading::Packet { path, packet: path }
    }

    fn forward(&mut self, path: usize, packet: usize) -> Option<usize> {
        self.pass(self.costs.forward[path]);
        self.sent[path] += u64::from(self.costs.consumes);
        (!self.costs.consumes).then_some(packet)
    }

    fn write(&mut self, output: usize, path: usize, _: usize) {
        self.pass(WRITE);
        self.sent[path] += 1;
        if let Some(link) = self.links.get_mut(output) {
            *link = self.now.max(*link) + ON_LINK;
        }
    }

    /// The free slots of a card, which sends a packet after the other.
    fn room(&self, output: usize) -> u32 {
        let Some(link) = self.links.get(output) else { return u32::MAX };
        let waiting = link.since(self.now).as_nanos().div_ceil(ON_LINK.as_nanos());
        CARD.saturating_sub(waiting as u32)
    }

    fn length(&self, _: &usize) -> u64 {
        1
    }

    fn empty_poll(&mut self, _: usize) -> Duration {
        self.pass(self.costs.empty);
        if self.costs.charges_polls { self.costs.switch } else { Duration::ZERO }
    }
}
