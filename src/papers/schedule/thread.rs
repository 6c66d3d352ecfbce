//! Threads: their states, queues and configuration.

use core::time::Duration;

use crate::papers::schedule::budget::Budget;
use crate::timestamp::Timestamp;

/// The state of a thread.
///
/// Paper: Qie et al., figure 9.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The thread has no packets, or no free output slots.
    Idle,
    /// The thread has work, but not enough for a turn.
    Eligible,
    /// The thread waits for its turn.
    Active,
    /// The thread has its turn.
    Running,
}

/// The occupancy of the queues of a thread.
///
/// Paper: Qie et al., section 3.1: a thread needs packets in its input queue, and room in its
/// output queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Occupancy {
    /// Packets in the input queue.
    pub queued: u32,
    /// Free slots of the output queue.
    pub free: u32,
}

impl Occupancy {
    /// Creates the occupancy of an input queue with `packets` packets and an unbounded output
    /// queue.
    #[must_use]
    pub const fn queued(packets: u32) -> Self {
        Self { queued: packets, free: u32::MAX }
    }

    /// Returns the number of packets that can be processed.
    pub(super) fn work(self) -> u32 {
        self.queued.min(self.free)
    }
}

/// The configuration of a thread.
///
/// Paper: Qie et al., sections 2.1 and 3.1; timeouts: section 4.2.
///
/// # Examples
///
/// A cap of the threshold:
///
/// ```
/// use core::time::Duration;
/// use flowtable::papers::schedule::share::{Order, ProportionalShare};
/// use flowtable::papers::schedule::{Overhead, Policy, Scheduler, ThreadConfig, Throttle};
///
/// let us = Duration::from_micros;
/// let throttle = Throttle::new(us(3), Overhead::from_ppm(100_000).unwrap(), us(30))?;
/// let shares = ProportionalShare::new(8, 100, Order::Wf2qPlus)?;
/// let mut scheduler = Scheduler::new(shares, us(3), Policy::Throttle(throttle))?;
/// // The threshold would be 30 packets, but the queues have 16 slots.
/// let config = ThreadConfig::new(10, us(1));
/// let shared = scheduler.add(ThreadConfig { buffers: 16 / 2, ..config })?;
/// let unshared = scheduler.add(ThreadConfig { buffers: 16, ..config })?;
/// assert_eq!(scheduler.threshold(shared), Some(8));
/// assert_eq!(scheduler.threshold(unshared), Some(16));
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
///
/// A thread that polls:
///
/// ```
/// use core::time::Duration;
/// use flowtable::Timestamp;
/// use flowtable::papers::schedule::share::{Order, ProportionalShare};
/// use flowtable::papers::schedule::{
///     Budget, Occupancy, Policy, QueueEstimator, Scheduler, ThreadConfig, longest_sleep,
/// };
///
/// let us = Duration::from_micros;
/// let shares = ProportionalShare::new(1, 100, Order::Wf2qPlus)?;
/// let mut scheduler = Scheduler::new(shares, us(1), Policy::Budget(Budget::packets(16)))?;
/// let config = ThreadConfig { is_polled: true, ..ThreadConfig::new(50, us(2)) };
/// let thread = scheduler.add(config)?;
/// let mut estimator = QueueEstimator::new(16, longest_sleep(64, 148_800))?;
/// // It may have packets, and is polled at once: it has none.
/// let mut now = Timestamp::ZERO;
/// scheduler.set_occupancy(thread, Occupancy::queued(1), now)?;
/// for _ in 0..20 {
///     let turn = scheduler.next(now).unwrap();
///     scheduler.set_timeout(thread, Some(estimator.polled(0)))?;
///     scheduler.finish(turn, us(1), Occupancy::queued(1), now)?;
///     now = scheduler.wake_at().unwrap_or(now);
/// }
/// // Polls are 430 µs apart in the end.
/// assert!(now > Timestamp::from_micros(4 * 430));
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadConfig {
    /// The share of the whole.
    pub share: u32,
    /// The estimated cost per packet.
    pub cost: Duration,
    /// The time after which a privileged thread may have a turn with fewer packets than its
    /// threshold.
    pub timeout: Option<Duration>,
    /// The number of packets that the thread may wait for: a [cap](super::Throttle) of its
    /// threshold.
    ///
    /// Of a queue whose other end has a waiting thread, half of the slots, as the producer waits
    /// for a threshold of free slots, and the consumer for a threshold of packets: if the sum of
    /// both exceeded the capacity, both could wait for each other. Of other queues, such as the
    /// ring of a network card, all slots. The minimum of both queues; by default there is no cap.
    pub buffers: u32,
    /// A limit of turns, in addition to the limit of the policy.
    pub budget: Budget,
    /// Whether the length of the input queue is not known, so only the timeout makes the thread
    /// active, and no threshold.
    ///
    /// The timeout is the time between the end of a poll and the next poll, even if the thread had
    /// no output slots in between; `None` is zero until the timeout is
    /// [set](super::Scheduler::set_timeout).
    ///
    /// Paper: Qie et al., sections 3.2 and 4.2: the estimator of an input queue determines the
    /// timeout `D_i` of its thread.
    pub is_polled: bool,
}

impl ThreadConfig {
    /// Creates a configuration with this share of the whole and estimated cost per packet, without
    /// timeout, cap, or limit of turns.
    #[must_use]
    pub const fn new(share: u32, cost: Duration) -> Self {
        let (timeout, buffers, budget) = (None, u32::MAX, Budget::UNTIL_EMPTY);
        Self { share, cost, timeout, buffers, budget, is_polled: false }
    }
}

/// The scheduler's record of a thread.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// Whether the index belongs to a thread.
    pub(super) is_present: bool,
    /// Whether the thread is in the list of changed threads, which `next` reevaluates.
    pub(super) is_changed: bool,
    pub(super) is_running: bool,
    /// Whether the thread is active in the shares. False while it runs.
    pub(super) is_active: bool,
    /// Whether the timeout has expired since the thread became eligible.
    pub(super) is_overdue: bool,
    /// When the thread became eligible; the end of its last turn, if it polls. `None` before.
    pub(super) since: Option<Timestamp>,
    pub(super) occupancy: Occupancy,
    /// The number of packets that the thread must wait for.
    pub(super) threshold: u32,
    pub(super) config: ThreadConfig,
}

impl Entry {
    /// Returns whether the thread has work, and waits.
    pub(super) fn is_eligible(&self) -> bool {
        self.is_present && !self.is_running && self.occupancy.work() > 0
    }

    /// Returns whether the thread may have a turn.
    pub(super) fn may_run(&self) -> bool {
        let work = self.occupancy.work();
        let is_enough = work >= self.threshold && !self.config.is_polled;
        work > 0 && (is_enough || self.is_overdue)
    }

    /// Returns the deadline of the timeout, if it is pending.
    pub(super) fn deadline(&self) -> Option<Timestamp> {
        let waits = self.is_eligible() && !self.is_active && !self.is_overdue;
        let timeout = self.config.timeout.filter(|_| waits)?;
        Some(self.since? + timeout)
    }
}
