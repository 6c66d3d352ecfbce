//! What a thread may do in a turn.

use core::time::Duration;

use super::throttle::Throttle;
use crate::schedule::share::Thread;
use crate::timestamp::nanos;

/// What a thread may do in a turn: so many packets, a timeslice, or both. It may always do one packet, and the
/// slice is looked at after each: there is no preemption.
///
/// # Example
///
/// ```
/// use core::time::Duration;
/// use flowtable::schedule::Budget;
///
/// let us = Duration::from_micros;
/// let budget = Budget::both(16, us(30));
/// assert!(budget.goes_on(0, us(0)) && budget.goes_on(15, us(29)));
/// assert!(!budget.goes_on(16, us(16)) && !budget.goes_on(3, us(30)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    packets: u32,
    slice: u64,
}

impl Budget {
    /// Until nothing is left, or the output queue is full.
    pub const UNTIL_EMPTY: Self = Self { packets: u32::MAX, slice: u64::MAX };

    /// So many packets.
    #[must_use]
    pub const fn packets(packets: u32) -> Self {
        Self { packets, ..Self::UNTIL_EMPTY }
    }

    /// Packets until so much time is used.
    #[must_use]
    pub fn slice(slice: Duration) -> Self {
        Self { slice: nanos(slice), ..Self::UNTIL_EMPTY }
    }

    /// Whichever is used up first.
    #[must_use]
    pub fn both(packets: u32, slice: Duration) -> Self {
        Self { packets, slice: nanos(slice) }
    }

    /// Whether there is a packet more in it after so many and so much time.
    #[must_use]
    pub fn goes_on(&self, packets: u32, spent: Duration) -> bool {
        packets == 0 || (packets < self.packets && nanos(spent) < self.slice)
    }

    /// How long a turn will take if so many packets can be done that cost so much each.
    pub(super) fn expected_run(&self, packets: u32, cost: u64) -> u64 {
        let in_slice = self.slice.div_ceil(cost.max(1));
        let packets = u64::from(packets.min(self.packets)).min(in_slice).max(1);
        packets.saturating_mul(cost)
    }
}

/// When threads may have a turn, and what they may do in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// As soon as there is a packet, and so much.
    Budget(Budget),
    /// When enough packets wait, and for a timeslice.
    Throttle(Throttle),
}

impl Policy {
    /// What a thread may do in a turn.
    #[must_use]
    pub fn budget(&self) -> Budget {
        match self {
            Self::Budget(budget) => *budget,
            Self::Throttle(throttle) => Budget::slice(throttle.slice()),
        }
    }

    /// How many packets a thread has to wait for: one but for a throttle.
    #[must_use]
    pub fn threshold(&self, cost: Duration, buffers: u32) -> u32 {
        match self {
            Self::Budget(_) => 1,
            Self::Throttle(throttle) => throttle.threshold(cost, buffers),
        }
    }
}

/// A thread's turn. It ends by [`Scheduler::finish`](super::Scheduler::finish); that of one that was dropped by
/// [`Scheduler::abandon`](super::Scheduler::abandon).
///
/// # Example
///
/// ```
/// use core::time::Duration;
/// use flowtable::Timestamp;
/// use flowtable::schedule::{Budget, Occupancy, Policy, Scheduler, ThreadConfig};
///
/// let us = Duration::from_micros;
/// let policy = Policy::Budget(Budget::packets(2));
/// let mut scheduler = Scheduler::new(8, 100, us(3), policy)?;
/// let thread = scheduler.add(ThreadConfig::new(50, us(10)))?;
/// scheduler.tell(thread, Occupancy::queued(5), Timestamp::ZERO)?;
/// let turn = scheduler.next(Timestamp::ZERO).unwrap();
/// assert_eq!((turn.thread(), turn.budget()), (thread, policy.budget()));
/// let mut done = 0;
/// while turn.goes_on(done, us(10) * done) {
///     done += 1; // forward a packet here
/// }
/// assert_eq!(done, 2);
/// # Ok::<(), flowtable::schedule::ScheduleError>(())
/// ```
#[derive(Debug, PartialEq, Eq)]
#[must_use = "the thread runs until the turn is finished"]
pub struct Turn {
    pub(super) thread: Thread,
    pub(super) budget: Budget,
}

impl Turn {
    /// Whose it is.
    #[must_use]
    pub const fn thread(&self) -> Thread {
        self.thread
    }

    /// What the thread may do.
    #[must_use]
    pub const fn budget(&self) -> Budget {
        self.budget
    }

    /// Whether the thread may do another packet after so many and so much time, if there is one.
    #[must_use]
    pub fn goes_on(&self, packets: u32, spent: Duration) -> bool {
        self.budget.goes_on(packets, spent)
    }
}
