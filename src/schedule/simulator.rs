//! The paper's simulator: flows with steady rates, one processor, switches and turns, in whole nanoseconds.
//!
//! ```text
//!     time ─▸   3      1 1 1   3       10        3     1    …
//!             switch   flow 3  switch  flow 12   switch
//!     arrivals  ·  ·  ·  ·  ·  ·  ·  ·  ·  ·  ·  ·  ·  ·      are delivered after each packet that was done
//! ```
//!
//! There is no second scheduler in here: it is [`Scheduler`] that gives the turns. The same flows give the same
//! outcome, always.
//!
//! What the paper does not say, and what we do:
//!
//! - *Phases.* All flows begin at the same moment unless they are [told otherwise](Flow::with_phase). That decides
//!   much: see `benches/paper/scheduling_2001.rs`.
//! - *Ties* go to the flow that comes later in the list. For the other order give the flows in reverse.
//! - The switch comes before the turn, also when a thread follows itself.
//!
//! Price: O(flows) for each packet that is done. 0.1 s of the paper's router take some milliseconds.
//!
//! Paper: Qie et al., table 5 and figures 10 to 18.

use alloc::vec::Vec;
use core::time::Duration;

use super::budget::Policy;
use super::queue::BoundedQueue;
use super::scheduler::{Account, Scheduler};
use super::thread::{Occupancy, ThreadConfig};
use super::{ScheduleError, Turn};
use crate::schedule::share::Thread;
use crate::timestamp::Timestamp;

/// Buffers of a flow, if nothing else is said.
const BUFFERS: u32 = 128;

/// A flow of evenly spaced packets.
///
/// # Example
///
/// ```
/// use core::time::Duration;
/// use flowtable::schedule::simulator::Flow;
///
/// let us = Duration::from_micros;
/// // 1000 packets a second that take 10 µs each, and 5 % of the processor for them: half of it is to spare.
/// let flow = Flow::new(1000, us(10), 5).with_timeout(us(500)).with_buffers(64).with_phase(us(250));
/// assert_eq!((flow.timeout, flow.buffers, flow.phase), (Some(us(500)), 64, us(250)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Packets that come in a second.
    pub packets_per_second: u32,
    /// What each costs.
    pub cost: Duration,
    /// Its share of the whole.
    pub share: u32,
    /// After what time it may have a turn whatever its threshold, if it is privileged.
    pub timeout: Option<Duration>,
    /// Packets that its input queue has room for.
    pub buffers: u32,
    /// When its first packet comes.
    pub phase: Duration,
}

impl Flow {
    /// Without a timeout, with 128 buffers, from the beginning.
    #[must_use]
    pub const fn new(packets_per_second: u32, cost: Duration, share: u32) -> Self {
        let (timeout, buffers, phase) = (None, BUFFERS, Duration::ZERO);
        Self { packets_per_second, cost, share, timeout, buffers, phase }
    }

    /// With a timeout.
    #[must_use]
    pub const fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout: Some(timeout), ..self }
    }

    /// With so many buffers.
    #[must_use]
    pub const fn with_buffers(self, buffers: u32) -> Self {
        Self { buffers, ..self }
    }

    /// With a first packet that comes so long after the beginning.
    #[must_use]
    pub const fn with_phase(self, phase: Duration) -> Self {
        Self { phase, ..self }
    }

    /// When its packet of this number comes. `None` if no packets come.
    fn arrival(&self, number: u64) -> Option<Timestamp> {
        let after = u128::from(number) * 1_000_000_000;
        let after = after.checked_div(u128::from(self.packets_per_second))?;
        let after = Duration::from_nanos(u64::try_from(after).unwrap_or(u64::MAX));
        Some(Timestamp::from(self.phase) + after)
    }
}

/// What is to be simulated.
///
/// # Example
///
/// ```
/// use core::time::Duration;
/// use flowtable::schedule::simulator::{Flow, Simulation};
/// use flowtable::schedule::{Budget, Policy};
///
/// let us = Duration::from_micros;
/// let flows = [Flow::new(10_000, us(10), 10), Flow::new(100_000, us(10), 10)];
/// let outcome = Simulation {
///     flows: &flows,
///     policy: Policy::Budget(Budget::packets(1)),
///     switch: us(3),
///     whole: 100,
///     duration: Duration::from_millis(100),
/// }
/// .run()?;
/// // A switch with each packet.
/// assert!((outcome.account.efficiency().unwrap() - 10.0 / 13.0).abs() < 1e-9);
/// // The one that wants a tenth gets it. The other one wants more than there is.
/// assert_eq!((outcome.flows[0].arrived, outcome.flows[0].dropped), (1000, 0));
/// assert!(outcome.flows[1].dropped > 3000);
/// # Ok::<(), flowtable::schedule::ScheduleError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Simulation<'a> {
    /// The flows.
    pub flows: &'a [Flow],
    /// When they may run, and for how long.
    pub policy: Policy,
    /// What a switch costs.
    pub switch: Duration,
    /// What shares are parts of.
    pub whole: u32,
    /// How long it goes on. Packets come before that; a packet that is being done then is finished.
    pub duration: Duration,
}

/// What became of it all: see [`Simulation`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outcome {
    /// Processing, switching, turns.
    pub account: Account,
    /// Time in which nobody was to run.
    pub idle: Duration,
    /// The flows, in their order.
    pub flows: Vec<FlowOutcome>,
}

/// What became of a flow: see [`Simulation`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FlowOutcome {
    /// Packets that came, those included that were dropped.
    pub arrived: u64,
    /// Packets that found the queue full.
    pub dropped: u64,
    /// Packets that were done.
    pub forwarded: u64,
    /// Turns that it had.
    pub turns: u64,
    /// The most packets that waited at once.
    pub longest_queue: u32,
    /// The longest turn.
    pub longest_run: Duration,
}

impl Simulation<'_> {
    /// Simulates it. O(packets), times the logarithm of the number of flows.
    ///
    /// # Errors
    ///
    /// If the flows are not such as a scheduler takes: no share, more than the whole, no cost, no buffers.
    pub fn run(&self) -> Result<Outcome, ScheduleError> {
        let mut router = Router::new(self)?;
        let (mut now, end) = (Timestamp::ZERO, Timestamp::from(self.duration));
        let mut idle = Duration::ZERO;
        while now < end {
            router.deliver(now)?;
            if let Some(turn) = router.scheduler.next(now) {
                now = router.run(turn, now)?;
            } else {
                let next = router.next_event().map_or(end, |next| next.min(end));
                idle += next.since(now);
                now = next;
            }
        }
        Ok(router.outcome(idle))
    }
}

/// A flow under way.
struct Path {
    flow: Flow,
    thread: Thread,
    queue: BoundedQueue<()>,
    /// When its next packet comes, if one does.
    next: Option<Timestamp>,
    outcome: FlowOutcome,
}

struct Router {
    scheduler: Scheduler,
    /// By the number of the thread.
    paths: Vec<Path>,
    switch: Duration,
    end: Timestamp,
}

impl Router {
    fn new(setup: &Simulation<'_>) -> Result<Self, ScheduleError> {
        let (flows, end) = (setup.flows, Timestamp::from(setup.duration));
        let mut scheduler = Scheduler::new(flows.len(), setup.whole, setup.switch, setup.policy)?;
        let mut paths = Vec::new();
        for &flow in flows {
            let config =
                ThreadConfig::new(flow.share, flow.cost).with_own_buffers(flow.buffers, u32::MAX);
            let config = flow.timeout.map_or(config, |timeout| config.with_timeout(timeout));
            let thread = scheduler.add(config)?;
            let queue = BoundedQueue::new(flow.buffers as usize)?;
            let next = flow.arrival(0).filter(|next| *next < end);
            paths.push(Path { flow, thread, queue, next, outcome: FlowOutcome::default() });
        }
        Ok(Self { scheduler, paths, switch: setup.switch, end })
    }

    /// Delivers all packets that have come.
    fn deliver(&mut self, now: Timestamp) -> Result<(), ScheduleError> {
        for path in &mut self.paths {
            while let Some(arrival) = path.next.filter(|next| *next <= now) {
                path.outcome.arrived += 1;
                path.next = path.flow.arrival(path.outcome.arrived).filter(|next| *next < self.end);
                if path.queue.push(()).is_ok() {
                    self.scheduler.tell(path.thread, path.occupancy(), arrival)?;
                }
            }
        }
        Ok(())
    }

    /// Does a turn; returns when it was over.
    fn run(&mut self, turn: Turn, now: Timestamp) -> Result<Timestamp, ScheduleError> {
        let index = turn.thread().index();
        let cost = self.paths[index].flow.cost;
        let (mut now, mut packets, mut spent) = (now + self.switch, 0, Duration::ZERO);
        self.deliver(now)?;
        loop {
            now = now + cost;
            spent += cost;
            packets += 1;
            self.paths[index].queue.pop();
            self.deliver(now)?;
            let is_empty = self.paths[index].queue.is_empty();
            if is_empty || now >= self.end || !turn.goes_on(packets, spent) {
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

    /// When a packet comes or a timeout is over.
    fn next_event(&self) -> Option<Timestamp> {
        let arrivals = self.paths.iter().filter_map(|path| path.next);
        arrivals.chain(self.scheduler.wake_at()).min()
    }

    fn outcome(self, idle: Duration) -> Outcome {
        let outcome = |path: Path| FlowOutcome {
            dropped: path.queue.dropped(),
            longest_queue: path.queue.longest() as u32,
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
