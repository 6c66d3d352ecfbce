//! What the scheduler knows of a thread.

use core::time::Duration;

use crate::timestamp::{Timestamp, nanos};

/// What a thread is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// There is nothing to do, or no place for what comes of it.
    Idle,
    /// There is something to do, but not enough for a turn.
    Eligible,
    /// It waits for its turn.
    Active,
    /// It has its turn.
    Running,
}

/// How full the queues of a thread are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Occupancy {
    /// Packets in its input queue.
    pub queued: u32,
    /// Places that are free in its output queue.
    pub room: u32,
}

impl Occupancy {
    /// So many packets in the input queue, and an output queue that is never full.
    #[must_use]
    pub const fn queued(packets: u32) -> Self {
        Self { queued: packets, room: u32::MAX }
    }

    /// Packets that can be done.
    pub(super) fn work(self) -> u32 {
        self.queued.min(self.room)
    }
}

/// A thread to be.
///
/// # Example
///
/// ```
/// use core::time::Duration;
/// use flowtable::schedule::{Budget, Policy, Scheduler, ThreadConfig};
///
/// let us = Duration::from_micros;
/// let mut scheduler = Scheduler::new(8, 100, us(3), Policy::Budget(Budget::packets(16)))?;
/// let best_effort = scheduler.add(ThreadConfig::new(10, us(1)))?;
/// let privileged = scheduler.add(ThreadConfig::new(5, us(10)).with_timeout(us(500)))?;
/// assert_ne!(best_effort, privileged);
/// # Ok::<(), flowtable::schedule::ScheduleError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadConfig {
    pub(super) share: u32,
    pub(super) cost: u64,
    pub(super) timeout: Option<u64>,
    pub(super) buffers: u32,
}

impl ThreadConfig {
    /// With this share of the whole, and packets that cost so much each, as far as is known.
    #[must_use]
    pub fn new(share: u32, cost: Duration) -> Self {
        Self { share, cost: nanos(cost), timeout: None, buffers: u32::MAX }
    }

    /// With a privilege: after this time it may have a turn, however few packets there are.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout: Some(nanos(timeout)), ..self }
    }

    /// With queues of so many places, which it may share with other threads: one that fills the first, one that
    /// empties the second. Thresholds are [capped](super::Throttle) at half of the places. Without this, they are not.
    ///
    /// Half, as who fills a queue waits for as many places as his threshold says, and who empties it for as many
    /// packets: if both numbers did not fit into the queue together, both could wait for each other.
    #[must_use]
    pub fn with_buffers(self, input: u32, output: u32) -> Self {
        self.with_own_buffers(input.div_ceil(2), output.div_ceil(2))
    }

    /// With queues of so many places, at whose other ends nobody waits for packets or places: network cards, or
    /// whoever is not throttled. Thresholds are [capped](super::Throttle) at the smaller number.
    ///
    /// # Example
    ///
    /// ```
    /// use core::time::Duration;
    /// use flowtable::schedule::{Overhead, Policy, Scheduler, ThreadConfig, Throttle};
    ///
    /// let us = Duration::from_micros;
    /// let throttle = Throttle::new(us(3), Overhead::from_percent(10).unwrap(), us(30))?;
    /// let mut scheduler = Scheduler::new(8, 100, us(3), Policy::Throttle(throttle))?;
    /// // A threshold of 30 packets would be right, and there are 16 places.
    /// let shared = scheduler.add(ThreadConfig::new(10, us(1)).with_buffers(16, 16))?;
    /// let own = scheduler.add(ThreadConfig::new(10, us(1)).with_own_buffers(16, 16))?;
    /// assert_eq!((scheduler.threshold(shared), scheduler.threshold(own)), (Some(8), Some(16)));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_own_buffers(self, input: u32, output: u32) -> Self {
        Self { buffers: input.min(output), ..self }
    }
}

/// What the scheduler keeps for a thread.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// Whether there is a thread.
    pub(super) is_present: bool,
    /// Whether it is in the list of those that `next` looks at.
    pub(super) is_touched: bool,
    pub(super) is_running: bool,
    /// Whether it is active in the shares. Not while it runs.
    pub(super) is_active: bool,
    /// Whether its timeout is over since it became eligible.
    pub(super) is_late: bool,
    /// Since when it is eligible; `None` while it is idle or runs.
    pub(super) since: Option<Timestamp>,
    pub(super) occupancy: Occupancy,
    /// Packets that it has to wait for.
    pub(super) threshold: u32,
    pub(super) config: ThreadConfig,
}

impl Entry {
    /// Whether it may have a turn.
    pub(super) fn may_run(&self) -> bool {
        let work = self.occupancy.work();
        work > 0 && (work >= self.threshold || self.is_late)
    }

    /// When its timeout is over, if it waits for that.
    pub(super) fn deadline(&self) -> Option<Timestamp> {
        let waits = self.is_present && !self.is_running && !self.is_active && !self.is_late;
        let (since, timeout) = (self.since.filter(|_| waits)?, self.config.timeout?);
        Some(since + Duration::from_nanos(timeout))
    }
}
