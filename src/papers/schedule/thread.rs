//! Threads and their turns: configuration, occupancy, budgets, policies, and the account.

use core::time::Duration;

use super::share::Thread;
use super::throttle::Throttle;
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

/// The limits of a turn: a number of packets, a timeslice, or both. One packet is always allowed,
/// and the timeslice is checked after each packet: there is no preemption.
///
/// Paper: Qie et al., sections 4.1 and 4.3.
///
/// # Example
///
/// ```
/// use core::time::Duration;
/// use flowtable::papers::schedule::Budget;
///
/// let us = Duration::from_micros;
/// let budget = Budget { packets: 16, slice: us(30) };
/// assert!(budget.allows_more(0, us(0)) && budget.allows_more(15, us(29)));
/// assert!(!budget.allows_more(16, us(16)) && !budget.allows_more(3, us(30)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// The number of packets.
    pub packets: u32,
    /// The timeslice.
    pub slice: Duration,
}

impl Budget {
    /// The unlimited budget: a turn ends when no work is left, or the output queue is full.
    pub const UNTIL_EMPTY: Self = Self { packets: u32::MAX, slice: Duration::MAX };

    /// Creates a budget of `packets` packets.
    #[must_use]
    pub const fn packets(packets: u32) -> Self {
        Self { packets, ..Self::UNTIL_EMPTY }
    }

    /// Returns whether the budget allows another packet after `packets` packets and the time
    /// `spent`.
    #[must_use]
    pub fn allows_more(&self, packets: u32, spent: Duration) -> bool {
        packets == 0 || (packets < self.packets && spent < self.slice)
    }

    /// Returns the smaller of both limits, of packets and of time.
    pub(super) fn limited_by(self, other: Self) -> Self {
        let packets = self.packets.min(other.packets);
        Self { packets, slice: self.slice.min(other.slice) }
    }

    /// Returns the expected length of a turn with `packets` packets available at `cost` each.
    pub(super) fn expected_run(&self, packets: u32, cost: u64) -> u64 {
        let in_slice = nanos(self.slice).div_ceil(cost.max(1));
        let packets = u64::from(packets.min(self.packets)).min(in_slice).max(1);
        packets.saturating_mul(cost)
    }
}

/// The policy of turns: when a thread may have one, and its budget.
///
/// Paper: Qie et al., sections 4.1 to 4.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// A turn as soon as there is a packet, with this budget.
    Budget(Budget),
    /// A turn when enough packets wait, for a timeslice.
    Throttle(Throttle),
}

impl Policy {
    /// Returns the budget of a turn.
    pub(super) fn budget(&self) -> Budget {
        match self {
            Self::Budget(budget) => *budget,
            Self::Throttle(throttle) => Budget { slice: throttle.slice(), ..Budget::UNTIL_EMPTY },
        }
    }

    /// Returns the number of packets that a thread must wait for: one, unless throttled.
    pub(super) fn threshold(&self, cost: Duration, buffers: u32) -> u32 {
        match self {
            Self::Budget(_) => 1,
            Self::Throttle(throttle) => throttle.threshold(cost, buffers),
        }
    }
}

/// The turn of a thread, which runs until [`Scheduler::finish`](super::Scheduler::finish).
///
/// Paper: Qie et al., section 4.1.
///
/// # Example
///
/// ```
/// use core::time::Duration;
/// use flowtable::Timestamp;
/// use flowtable::papers::schedule::share::{Order, ProportionalShare};
/// use flowtable::papers::schedule::{Budget, Occupancy, Policy, Scheduler, ThreadConfig};
///
/// let us = Duration::from_micros;
/// let policy = Policy::Budget(Budget::packets(2));
/// let shares = ProportionalShare::new(8, 100, Order::Wf2qPlus)?;
/// let mut scheduler = Scheduler::new(shares, us(3), policy)?;
/// let thread = scheduler.add(ThreadConfig::new(50, us(10)))?;
/// scheduler.set_occupancy(thread, Occupancy::queued(5), Timestamp::ZERO)?;
/// let turn = scheduler.next(Timestamp::ZERO).unwrap();
/// assert_eq!((turn.thread, turn.budget), (thread, Budget::packets(2)));
/// let mut done = 0;
/// while turn.budget.allows_more(done, us(10) * done) {
///     done += 1; // forward a packet here
/// }
/// assert_eq!(done, 2);
/// # Ok::<(), flowtable::papers::schedule::ScheduleError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "the thread runs until the turn is finished"]
#[non_exhaustive]
pub struct Turn {
    /// The thread that has the turn.
    pub thread: Thread,
    /// The budget of the turn.
    pub budget: Budget,
}

/// The accounting of a scheduler: time spent since its creation.
///
/// Paper: Qie et al., section 4.1: the efficiency index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Account {
    /// The time that threads spent on packets.
    pub processing: Duration,
    /// The time of switches, one for each turn.
    pub switching: Duration,
    /// The number of finished turns.
    pub turns: u64,
}

impl Account {
    /// Returns the efficiency index: the fraction of the busy time that was processing. `None`
    /// before the first turn.
    ///
    /// # Example
    ///
    /// ```
    /// use core::time::Duration;
    /// use flowtable::Timestamp;
    /// use flowtable::papers::schedule::share::{Order, ProportionalShare};
    /// use flowtable::papers::schedule::{Budget, Occupancy, Policy, Scheduler, ThreadConfig};
    ///
    /// let (us, now) = (Duration::from_micros, Timestamp::ZERO);
    /// let shares = ProportionalShare::new(1, 100, Order::Wf2qPlus)?;
    /// let mut scheduler = Scheduler::new(shares, us(3), Policy::Budget(Budget::packets(16)))?;
    /// let thread = scheduler.add(ThreadConfig::new(50, us(9)))?;
    /// assert_eq!(scheduler.account().efficiency(), None);
    /// scheduler.set_occupancy(thread, Occupancy::queued(1), now)?;
    /// let turn = scheduler.next(now).unwrap();
    /// scheduler.finish(turn, us(9), Occupancy::queued(0), now + us(12))?;
    /// assert_eq!(scheduler.account().efficiency(), Some(9.0 / 12.0));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[must_use]
    pub fn efficiency(&self) -> Option<f64> {
        let busy = self.processing.saturating_add(self.switching);
        (!busy.is_zero()).then(|| self.processing.as_nanos() as f64 / busy.as_nanos() as f64)
    }
}
