//! Budgets of turns, the policies that set them, and the account of the time.

use core::time::Duration;

use super::throttle::Throttle;
use crate::papers::schedule::share::Thread;
use crate::timestamp::nanos;

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

/// The turn of a thread. Return it to [`Scheduler::finish`](super::Scheduler::finish); if it was
/// dropped, call [`Scheduler::abandon`](super::Scheduler::abandon).
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
#[derive(Debug, PartialEq, Eq)]
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
