//! Threads: their states, queues and configuration.

use core::time::Duration;

use crate::papers::schedule::budget::Budget;
use crate::timestamp::{Timestamp, nanos};

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
/// # Example
///
/// ```
/// use core::time::Duration;
/// use flowtable::papers::schedule::{Budget, Policy, Scheduler, ThreadConfig};
///
/// let us = Duration::from_micros;
/// let mut scheduler = Scheduler::new(8, 100, us(3), Policy::Budget(Budget::packets(16)))?;
/// let best_effort = scheduler.add(ThreadConfig::new(10, us(1)))?;
/// let privileged = scheduler.add(ThreadConfig::new(5, us(10)).with_timeout(us(500)))?;
/// assert_ne!(best_effort, privileged);
/// # Ok::<(), flowtable::papers::schedule::ScheduleError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadConfig {
    pub(super) share: u32,
    pub(super) cost: u64,
    pub(super) timeout: Option<u64>,
    pub(super) buffers: u32,
    /// A limit of turns, in addition to the limit of the policy.
    pub(super) budget: Budget,
    /// Whether only the timeout makes the thread active.
    pub(super) is_polled: bool,
}

impl ThreadConfig {
    /// Creates a configuration with this share of the whole, and an estimated cost per packet.
    #[must_use]
    pub fn new(share: u32, cost: Duration) -> Self {
        let (timeout, buffers, budget) = (None, u32::MAX, Budget::UNTIL_EMPTY);
        Self { share, cost: nanos(cost), timeout, buffers, budget, is_polled: false }
    }

    /// Makes the thread privileged: after this time it may have a turn with fewer packets than its
    /// threshold.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout: Some(nanos(timeout)), ..self }
    }

    /// Makes the thread one that polls: the length of its input queue is not known, so only its
    /// timeout makes it active, and no threshold. The timeout is the time between the end of a poll
    /// and the next poll, even if the thread had no output slots in between; it is zero until it is
    /// [set](super::Scheduler::set_timeout). It replaces the timeout of
    /// [`with_timeout`](Self::with_timeout).
    ///
    /// Paper: Qie et al., sections 3.2 and 4.2: the estimator of an input queue determines the
    /// timeout `D_i` of its thread.
    ///
    /// # Example
    ///
    /// ```
    /// use core::time::Duration;
    /// use flowtable::Timestamp;
    /// use flowtable::papers::schedule::{
    ///     Budget, Occupancy, Policy, QueueEstimator, Scheduler, ThreadConfig, longest_sleep,
    /// };
    ///
    /// let us = Duration::from_micros;
    /// let mut scheduler = Scheduler::new(1, 100, us(1), Policy::Budget(Budget::packets(16)))?;
    /// let thread = scheduler.add(ThreadConfig::new(50, us(2)).with_polling())?;
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
    #[must_use]
    pub const fn with_polling(self) -> Self {
        Self { timeout: Some(0), is_polled: true, ..self }
    }

    /// Sets the capacities of queues that are shared with other threads: one that fills the input
    /// queue, one that empties the output queue. Thresholds are [capped](super::Throttle) at half
    /// of the slots. By default they are not capped.
    ///
    /// Half, as the producer of a queue waits for a threshold of free slots, and the consumer for a
    /// threshold of packets: if the sum of both exceeded the capacity, both could wait for each
    /// other.
    #[must_use]
    pub fn with_buffers(self, input: u32, output: u32) -> Self {
        self.with_unshared_buffers(input.div_ceil(2), output.div_ceil(2))
    }

    /// Sets the capacities of queues without a waiting thread at the other end: the queues of
    /// network cards, or of threads that are not throttled. Thresholds are
    /// [capped](super::Throttle) at the smaller capacity.
    ///
    /// # Example
    ///
    /// ```
    /// use core::time::Duration;
    /// use flowtable::papers::schedule::{Overhead, Policy, Scheduler, ThreadConfig, Throttle};
    ///
    /// let us = Duration::from_micros;
    /// let throttle = Throttle::new(us(3), Overhead::from_percent(10).unwrap(), us(30))?;
    /// let mut scheduler = Scheduler::new(8, 100, us(3), Policy::Throttle(throttle))?;
    /// // The threshold would be 30 packets, but the queues have 16 slots.
    /// let config = ThreadConfig::new(10, us(1));
    /// let shared = scheduler.add(config.with_buffers(16, 16))?;
    /// let unshared = scheduler.add(config.with_unshared_buffers(16, 16))?;
    /// assert_eq!(scheduler.threshold(shared), Some(8));
    /// assert_eq!(scheduler.threshold(unshared), Some(16));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_unshared_buffers(self, input: u32, output: u32) -> Self {
        Self { buffers: input.min(output), ..self }
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
        Some(self.since? + Duration::from_nanos(timeout))
    }
}
