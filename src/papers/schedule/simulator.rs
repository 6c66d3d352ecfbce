//! The paper's simulator: flows with constant rates, one CPU, switches and turns, in nanoseconds.
//!
//! ```text
//!     time ─▸   3      1 1 1   3       10        3     1    …
//!             switch   flow 3  switch  flow 12   switch
//!     arrivals  ·  ·  ·  ·  ·  ·  ·  ·  ·  ·  ·  ·  ·  ·  are enqueued after each processed packet
//! ```
//!
//! [`Scheduler`] decides the turns; there is no second implementation here. A simulation is
//! deterministic.
//!
//! Decisions that the paper leaves open:
//!
//! - *Order.* WF²Q+, which its prototype has, or start-time fair queueing.
//! - *Phases.* All flows begin at time zero unless [configured otherwise](Flow::phase). That
//!   has a large effect: see the bench `paper`, scheduling 2001.
//! - *Ties* go to the later flow of the list. For the other order reverse the flows.
//! - The switch precedes the turn, even if a thread follows itself.
//!
//! Cost: O(flows) for each processed packet. 0.1 s of the paper's router take some milliseconds.
//!
//! Paper: Qie et al., section 4.3, table 5 and figures 10 to 18.

use alloc::vec::Vec;
use core::time::Duration;

use super::path::BoundedQueue;
use super::scheduler::Scheduler;
use super::thread::{Account, Occupancy, Policy, ThreadConfig};
use super::{ScheduleError, Turn};
use crate::papers::schedule::share::{Order, ProportionalShare, Thread};
use crate::timestamp::Timestamp;

/// The default number of buffers of a flow.
const BUFFERS: u32 = 128;

/// A flow of evenly spaced packets.
///
/// Paper: Qie et al., table 5.
///
/// # Example
///
/// ```
/// use core::time::Duration;
/// use flowtable::papers::schedule::simulator::Flow;
///
/// let us = Duration::from_micros;
/// // 1000 packets per second of 10 µs each use 1 % of the CPU; the share is 5 %.
/// let flow = Flow { timeout: Some(us(500)), phase: us(250), ..Flow::new(1000, us(10), 5) };
/// assert_eq!(flow.buffers, 128);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// The arrival rate.
    pub packets_per_second: u32,
    /// The cost per packet.
    pub cost: Duration,
    /// The share of the whole.
    pub share: u32,
    /// The timeout after which a privileged flow may have a turn below its threshold.
    pub timeout: Option<Duration>,
    /// The capacity of the input queue.
    pub buffers: u32,
    /// The arrival time of the first packet.
    pub phase: Duration,
}

impl Flow {
    /// Creates a flow without a timeout, with 128 buffers and a phase of zero.
    #[must_use]
    pub const fn new(packets_per_second: u32, cost: Duration, share: u32) -> Self {
        let (timeout, buffers, phase) = (None, BUFFERS, Duration::ZERO);
        Self { packets_per_second, cost, share, timeout, buffers, phase }
    }

    /// Returns the arrival time of a packet by its index. `None` if the rate is zero.
    fn arrival(&self, index: u64) -> Option<Timestamp> {
        let after = u128::from(index) * 1_000_000_000;
        let after = after.checked_div(u128::from(self.packets_per_second))?;
        let after = Duration::from_nanos(u64::try_from(after).unwrap_or(u64::MAX));
        Some(Timestamp::from(self.phase) + after)
    }
}

/// The setup of a simulation.
///
/// Paper: Qie et al., section 4.3.
///
/// # Example
///
/// ```
/// use core::time::Duration;
/// use flowtable::papers::schedule::share::Order;
/// use flowtable::papers::schedule::simulator::{Flow, Simulation};
/// use flowtable::papers::schedule::{Budget, Policy};
///
/// let us = Duration::from_micros;
/// let flows = [Flow::new(10_000, us(10), 10), Flow::new(100_000, us(10), 10)];
/// let outcome = Simulation {
///     flows: &flows,
///     policy: Policy::Budget(Budget::packets(1)),
///     switch: us(3),
///     whole: 100,
///     duration: Duration::from_millis(100),
///     order: Order::default(),
/// }
/// .run()?;
/// // A switch per packet.
/// assert!((outcome.account.efficiency().unwrap() - 10.0 / 13.0).abs() < 1e-9);
/// // The first flow demands a tenth of the CPU and gets it. The second demands all of it.
/// assert_eq!((outcome.flows[0].arrived, outcome.flows[0].dropped), (1000, 0));
/// assert!(outcome.flows[1].dropped > 3000);
/// # Ok::<(), flowtable::papers::schedule::ScheduleError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Simulation<'a> {
    /// The flows.
    pub flows: &'a [Flow],
    /// The policy of turns.
    pub policy: Policy,
    /// The cost of a switch.
    pub switch: Duration,
    /// The sum of all shares.
    pub whole: u32,
    /// The end of the simulation. No packets arrive after it; a packet in process is finished.
    pub duration: Duration,
    /// The order of turns.
    pub order: Order,
}

/// The outcome of a [`Simulation`].
///
/// Paper: Qie et al., section 4.3.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outcome {
    /// The time of processing and switching, and the turns.
    pub account: Account,
    /// The time in which no thread could run.
    pub idle: Duration,
    /// The outcomes of the flows, in their order.
    pub flows: Vec<FlowOutcome>,
}

/// The outcome of a flow in a [`Simulation`].
///
/// Paper: Qie et al., figures 11 and 12.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FlowOutcome {
    /// Packets that arrived, including those dropped.
    pub arrived: u64,
    /// Packets that were dropped as the queue was full.
    pub dropped: u64,
    /// Packets that were processed.
    pub forwarded: u64,
    /// The number of turns.
    pub turns: u64,
    /// The maximum length of the queue.
    pub longest_queue: u32,
    /// The longest turn.
    pub longest_run: Duration,
}

impl Simulation<'_> {
    /// Runs the simulation. O(packets × flows).
    ///
    /// # Errors
    ///
    /// If the scheduler rejects a flow: its share, cost or buffers are zero, or the shares exceed
    /// the whole.
    pub fn run(&self) -> Result<Outcome, ScheduleError> {
        self.run_with(|flow, _| self.flows[flow].cost)
    }

    /// Runs the simulation with costs that depend on the data of packets: `cost` returns the cost
    /// of a packet, by the index of its flow and its index among the forwarded packets of the flow.
    /// The scheduler has only the estimate, the [cost of the flow](Flow::cost).
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    ///
    /// Paper: Qie et al., section 4.3: all packets of a flow cost the same. Section 6:
    /// data-dependent costs are future work.
    ///
    /// # Example
    ///
    /// ```
    /// use core::time::Duration;
    /// use flowtable::papers::schedule::share::Order;
    /// use flowtable::papers::schedule::simulator::{Flow, Simulation};
    /// use flowtable::papers::schedule::{Budget, Policy};
    ///
    /// let us = Duration::from_micros;
    /// let outcome = Simulation {
    ///     flows: &[Flow::new(10_000, us(10), 100)],
    ///     policy: Policy::Budget(Budget::packets(1)),
    ///     switch: us(3),
    ///     whole: 100,
    ///     duration: Duration::from_millis(10),
    ///     order: Order::default(),
    /// }
    /// // Every tenth packet takes 55 µs, the others 5.
    /// .run_with(|_, packet| us(if packet % 10 == 9 { 55 } else { 5 }))?;
    /// assert_eq!((outcome.account.processing, outcome.flows[0].longest_run), (us(1000), us(55)));
    /// # Ok::<(), flowtable::papers::schedule::ScheduleError>(())
    /// ```
    pub fn run_with(
        &self,
        mut cost: impl FnMut(usize, u64) -> Duration,
    ) -> Result<Outcome, ScheduleError> {
        let mut router = Router::new(self)?;
        let (mut now, end) = (Timestamp::ZERO, Timestamp::from(self.duration));
        let mut idle = Duration::ZERO;
        while now < end {
            router.deliver(now)?;
            if let Some(turn) = router.scheduler.next(now) {
                now = router.run(turn, now, &mut cost)?;
            } else {
                let next = router.next_event().map_or(end, |next| next.min(end));
                idle += next.since(now);
                now = next;
            }
        }
        Ok(router.outcome(idle))
    }
}

/// The state of a flow.
struct Path {
    flow: Flow,
    thread: Thread,
    queue: BoundedQueue<()>,
    /// The arrival time of the next packet, if there is one.
    next: Option<Timestamp>,
    outcome: FlowOutcome,
}

struct Router {
    scheduler: Scheduler,
    /// The flows, by the index of their thread.
    paths: Vec<Path>,
    switch: Duration,
    end: Timestamp,
}

impl Router {
    fn new(setup: &Simulation<'_>) -> Result<Self, ScheduleError> {
        let (flows, end) = (setup.flows, Timestamp::from(setup.duration));
        let Simulation { whole, switch, policy, order, .. } = *setup;
        let shares = ProportionalShare::new(flows.len(), whole, order)?;
        let mut scheduler = Scheduler::new(shares, switch, policy)?;
        let mut paths = Vec::new();
        for &flow in flows {
            let Flow { timeout, buffers, .. } = flow;
            let config =
                ThreadConfig { timeout, buffers, ..ThreadConfig::new(flow.share, flow.cost) };
            let thread = scheduler.add(config)?;
            let queue = BoundedQueue::new(flow.buffers as usize)?;
            let next = flow.arrival(0).filter(|next| *next < end);
            paths.push(Path { flow, thread, queue, next, outcome: FlowOutcome::default() });
        }
        Ok(Self { scheduler, paths, switch: setup.switch, end })
    }

    /// Enqueues all packets that have arrived.
    fn deliver(&mut self, now: Timestamp) -> Result<(), ScheduleError> {
        for path in &mut self.paths {
            while let Some(arrival) = path.next.filter(|next| *next <= now) {
                path.outcome.arrived += 1;
                path.next = path.flow.arrival(path.outcome.arrived).filter(|next| *next < self.end);
                if path.queue.push(()).is_ok() {
                    self.scheduler.set_occupancy(path.thread, path.occupancy(), arrival)?;
                }
            }
        }
        Ok(())
    }

    /// Runs a turn. Returns the time of its end.
    fn run(
        &mut self,
        turn: Turn,
        now: Timestamp,
        cost: &mut impl FnMut(usize, u64) -> Duration,
    ) -> Result<Timestamp, ScheduleError> {
        let index = turn.thread.index();
        let first = self.paths[index].outcome.forwarded;
        let (mut now, mut packets, mut spent) = (now + self.switch, 0, Duration::ZERO);
        self.deliver(now)?;
        loop {
            let cost = cost(index, first + u64::from(packets));
            now = now + cost;
            spent += cost;
            packets += 1;
            self.paths[index].queue.pop();
            self.deliver(now)?;
            let is_empty = self.paths[index].queue.is_empty();
            if is_empty || now >= self.end || !turn.budget.allows_more(packets, spent) {
                break;
            }
        }
        let path = &mut self.paths[index];
        path.outcome.forwarded += u64::from(packets);
        path.outcome.turns += 1;
        path.outcome.longest_run = path.outcome.longest_run.max(spent);
        self.scheduler.finish(turn, spent, path.occupancy(), now)?;
        Ok(now)
    }

    /// Returns the time of the next arrival or timeout.
    fn next_event(&self) -> Option<Timestamp> {
        let arrivals = self.paths.iter().filter_map(|path| path.next);
        arrivals.chain(self.scheduler.wake_at()).min()
    }

    fn outcome(self, idle: Duration) -> Outcome {
        let outcome = |path: Path| FlowOutcome {
            dropped: path.queue.dropped,
            longest_queue: path.queue.longest as u32,
            ..path.outcome
        };
        let flows = self.paths.into_iter().map(outcome).collect();
        Outcome { account: self.scheduler.account(), idle, flows }
    }
}

impl Path {
    fn occupancy(&self) -> Occupancy {
        Occupancy::queued(self.queue.len() as u32)
    }
}
