//! The scheduler: states of threads, and the choice of the next turn.

use alloc::format;
use alloc::vec::Vec;
use core::time::Duration;

use super::ScheduleError;
use super::thread::{Account, Entry, Occupancy, Policy, State, ThreadConfig, Turn};
use crate::invariant::{InvariantError, ensure};
use crate::papers::schedule::share::{IndexedHeap, ProportionalShare, ShareError, Thread};
use crate::timestamp::{Timestamp, nanos};

/// A scheduler of threads by shares, thresholds and timeouts.
///
/// The caller owns the queues and the clock: it [sets the occupancy](Self::set_occupancy) of queues
/// when packets are added or removed, requests the [next](Self::next) turn, runs it, and
/// [finishes](Self::finish) it with the time that it took. The switch before a turn is charged to
/// no thread. The [module](crate::papers::schedule) has the states of a thread.
///
/// | method | cost, for n threads |
/// |---|---|
/// | `set_occupancy`, `finish`, `remove`, `set_timeout`, `set_cost` | O(log n) |
/// | `next` | O(log n) on average |
/// | `set_policy` | O(n log n) |
/// | `new` | O(n); it allocates all of the memory |
/// | `add`, `state`, `threshold`, `account`, `wake_at` | O(1) |
///
/// Paper: Qie et al., sections 3.1 and 4.2, and figure 9.
///
/// # Example
///
/// ```
/// use core::time::Duration;
/// use flowtable::Timestamp;
/// use flowtable::papers::schedule::share::{Order, ProportionalShare};
/// use flowtable::papers::schedule::*;
///
/// let us = Duration::from_micros;
/// let ten = Overhead::from_ppm(100_000).unwrap();
/// let policy = Policy::Throttle(Throttle::new(us(3), ten, us(30))?);
/// let shares = ProportionalShare::new(8, 100, Order::Wf2qPlus)?;
/// let mut scheduler = Scheduler::new(shares, us(3), policy)?;
/// let config = ThreadConfig { timeout: Some(us(500)), ..ThreadConfig::new(50, us(10)) };
/// let thread = scheduler.add(config)?;
///
/// // Two packets wait. The threshold is three.
/// let start = Timestamp::ZERO;
/// scheduler.set_occupancy(thread, Occupancy::queued(2), start)?;
/// assert_eq!(scheduler.next(start), None);
/// assert_eq!(scheduler.wake_at(), Some(start + us(500)));
/// // After the timeout two are enough.
/// let turn = scheduler.next(start + us(500)).unwrap();
/// scheduler.finish(turn, us(20), Occupancy::queued(0), start + us(523))?;
/// assert_eq!(scheduler.account().efficiency(), Some(20.0 / 23.0));
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Scheduler {
    policy: Policy,
    switch: Duration,
    shares: ProportionalShare,
    /// The threads, by index.
    entries: Vec<Entry>,
    /// Threads that changed since the last call of `next`.
    changed: Vec<Thread>,
    /// The pending deadlines: of threads that are eligible, have a timeout, and are not active.
    timeouts: IndexedHeap<Timestamp>,
    account: Account,
}

impl Scheduler {
    /// Creates a scheduler without threads, with the shares that they will have, the cost of a
    /// switch, and the policy.
    ///
    /// The cost of a switch is for the [account](Self::account); thresholds use the cost of the
    /// throttle, which should be equal.
    ///
    /// # Errors
    ///
    /// If the shares have or had threads, or the allocation fails.
    pub fn new(
        shares: ProportionalShare,
        switch: Duration,
        policy: Policy,
    ) -> Result<Self, ScheduleError> {
        if !shares.is_unused() {
            return Err(ScheduleError::SharesInUse);
        }
        let threads = shares.capacity();
        let (mut entries, mut changed) = (Vec::new(), Vec::new());
        entries.try_reserve_exact(threads).map_err(|_| ScheduleError::NoMemory)?;
        changed.try_reserve_exact(threads).map_err(|_| ScheduleError::NoMemory)?;
        let timeouts = IndexedHeap::new(threads).ok_or(ScheduleError::NoMemory)?;
        let account = Account::default();
        Ok(Self { policy, switch, shares, entries, changed, timeouts, account })
    }

    /// Adds a thread, which is idle. O(1).
    ///
    /// # Errors
    ///
    /// If its share is zero or exceeds the unclaimed part, its cost or its buffers are zero, or
    /// the number of threads is at its maximum.
    pub fn add(&mut self, config: ThreadConfig) -> Result<Thread, ScheduleError> {
        if config.cost.is_zero() {
            return Err(ScheduleError::NoCost);
        }
        if config.buffers == 0 {
            return Err(ScheduleError::Buffers);
        }
        let polls = config.is_polled.then_some(Duration::ZERO);
        let config = ThreadConfig { timeout: config.timeout.or(polls), ..config };
        let thread = self.shares.add(config.share)?;
        let old = self.entries.get(thread.index());
        let entry = Entry {
            is_present: true,
            // A removed thread with the same index may still be in the list.
            is_changed: old.is_some_and(|old| old.is_changed),
            is_running: false,
            is_active: false,
            is_overdue: false,
            since: None,
            occupancy: Occupancy::default(),
            threshold: self.policy.threshold(config.cost, config.buffers),
            config,
        };
        match self.entries.get_mut(thread.index()) {
            Some(old) => *old = entry,
            None => self.entries.push(entry),
        }
        Ok(thread)
    }

    /// Removes a thread. O(log n).
    ///
    /// # Errors
    ///
    /// If the thread does not exist, or has its turn.
    pub fn remove(&mut self, thread: Thread) -> Result<(), ScheduleError> {
        self.shares.remove(thread)?;
        self.timeouts.remove(thread.index() as u32);
        self.entries[thread.index()].is_present = false;
        Ok(())
    }

    /// Sets the occupancy of the queues of a thread. O(log n).
    ///
    /// Call it when a packet was added to the input queue, or removed from the output queue. A
    /// timeout starts with the first such call that leaves work for the thread, or with the end of
    /// its last turn if it [polls](ThreadConfig::is_polled); the timestamps of calls need not be
    /// in order. For a thread that polls a card, pass the packets there, or one if their number is
    /// unknown.
    ///
    /// # Errors
    ///
    /// If the thread does not exist.
    pub fn set_occupancy(
        &mut self,
        thread: Thread,
        occupancy: Occupancy,
        now: Timestamp,
    ) -> Result<(), ScheduleError> {
        let entry = self.entry_mut(thread)?;
        let was_eligible = entry.is_eligible();
        entry.occupancy = occupancy;
        if entry.is_running {
            return Ok(()); // `finish` reevaluates it
        }
        if entry.is_eligible() && !was_eligible {
            if !entry.config.is_polled || entry.since.is_none() {
                entry.since = Some(now);
            }
            self.mark_eligible(thread);
        } else if was_eligible && !entry.is_eligible() {
            self.mark_idle(thread);
        }
        self.mark_changed(thread);
        Ok(())
    }

    /// Returns the next turn, if any thread may run. O(log n) on average.
    pub fn next(&mut self, now: Timestamp) -> Option<Turn> {
        while let Some(thread) = self.changed.pop() {
            self.entries[thread.index()].is_changed = false;
            self.reevaluate(thread);
        }
        // After the changes: a greater threshold can make a thread wait whose timeout has expired.
        while let Some((deadline, index)) = self.timeouts.first() {
            if deadline > now {
                break;
            }
            self.timeouts.pop();
            self.entries[index as usize].is_overdue = true;
            self.reevaluate(Thread::from_index(index));
        }
        let thread = self.shares.pick()?;
        let entry = &mut self.entries[thread.index()];
        (entry.is_running, entry.is_active) = (true, false);
        let budget = self.policy.budget().limited_by(entry.config.budget);
        Some(Turn { thread, budget })
    }

    /// Finishes a turn, given its processing time, without the switch, and the occupancy of the
    /// queues after it. O(log n).
    ///
    /// If the caller's clock is too coarse and the time is zero, the thread is charged for one
    /// packet.
    ///
    /// # Errors
    ///
    /// If no thread with its index runs here: it is of another scheduler, or was finished. Nothing
    /// has changed.
    pub fn finish(
        &mut self,
        turn: Turn,
        processing: Duration,
        occupancy: Occupancy,
        now: Timestamp,
    ) -> Result<(), ScheduleError> {
        self.finish_charged(turn, processing, Duration::ZERO, occupancy, now)
    }

    /// Finishes a turn that is charged to the shares for `extra` time in addition to its
    /// processing, which alone is booked in the account. O(log n).
    pub(super) fn finish_charged(
        &mut self,
        Turn { thread, .. }: Turn,
        processing: Duration,
        extra: Duration,
        occupancy: Occupancy,
        now: Timestamp,
    ) -> Result<(), ScheduleError> {
        let entry = self.entry_mut(thread)?;
        if !entry.is_running {
            return Err(ShareError::NotRunning.into());
        }
        entry.is_running = false;
        (entry.occupancy, entry.since) = (occupancy, Some(now));
        let charged = match nanos(processing.saturating_add(extra)) {
            0 => nanos(entry.config.cost),
            charged => charged,
        };
        if occupancy.work() > 0 {
            self.mark_eligible(thread);
        } else {
            self.mark_idle(thread);
        }
        let more = self.work(thread);
        self.shares.charge(thread, charged, more)?;
        self.set_active(thread, more.is_some());
        self.account.processing = self.account.processing.saturating_add(processing);
        self.account.switching = self.account.switching.saturating_add(self.switch);
        self.account.turns += 1;
        Ok(())
    }

    /// Returns the earliest pending deadline of a timeout. `None` if there is none.
    ///
    /// If [`next`](Self::next) returns `None`, no thread can run before that time, unless
    /// [`set_occupancy`](Self::set_occupancy) changes that.
    #[must_use]
    pub fn wake_at(&self) -> Option<Timestamp> {
        self.timeouts.first().map(|(deadline, _)| deadline)
    }

    /// Sets the policy for all turns from now on. O(n log n), some of it in the next call of
    /// `next`.
    pub fn set_policy(&mut self, policy: Policy) {
        self.policy = policy;
        for index in 0..self.entries.len() {
            if self.entries[index].is_present {
                self.set_threshold(Thread::from_index(index as u32));
            }
        }
    }

    /// Sets the estimated cost per packet of a thread. O(log n), in the next call of `next`.
    ///
    /// # Errors
    ///
    /// If the thread does not exist, or the cost is zero.
    ///
    /// # Example
    ///
    /// ```
    /// use core::time::Duration;
    /// use flowtable::papers::schedule::share::{Order, ProportionalShare};
    /// use flowtable::papers::schedule::*;
    ///
    /// let us = Duration::from_micros;
    /// let throttle = Throttle::new(us(3), Overhead::from_ppm(100_000).unwrap(), us(60))?;
    /// let shares = ProportionalShare::new(8, 100, Order::Wf2qPlus)?;
    /// let mut scheduler = Scheduler::new(shares, us(3), Policy::Budget(Budget::packets(16)))?;
    /// let thread = scheduler.add(ThreadConfig::new(50, us(1)))?;
    /// assert_eq!(scheduler.threshold(thread), Some(1)); // not throttled
    /// scheduler.set_policy(Policy::Throttle(throttle));
    /// assert_eq!(scheduler.threshold(thread), Some(30));
    /// scheduler.set_cost(thread, us(2))?; // measured
    /// assert_eq!(scheduler.threshold(thread), Some(15));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn set_cost(&mut self, thread: Thread, cost: Duration) -> Result<(), ScheduleError> {
        let entry = self.entry_mut(thread)?;
        if cost.is_zero() {
            return Err(ScheduleError::NoCost);
        }
        entry.config.cost = cost;
        self.set_threshold(thread);
        Ok(())
    }

    /// Sets the timeout of a thread, or removes it. If the thread waits, the timeout counts from
    /// the time when it became eligible. O(log n).
    ///
    /// For a [polled](ThreadConfig::is_polled) thread this is the time until its next poll.
    /// Without a timeout such a thread has no turns.
    ///
    /// # Errors
    ///
    /// If the thread does not exist.
    ///
    /// Paper: Qie et al., section 4.2: `D_i`.
    pub fn set_timeout(
        &mut self,
        thread: Thread,
        timeout: Option<Duration>,
    ) -> Result<(), ScheduleError> {
        let entry = self.entry_mut(thread)?;
        entry.config.timeout = timeout;
        if !entry.is_running {
            entry.is_overdue = false; // `next` decides by the new deadline
            self.update_timeout(thread);
            self.mark_changed(thread);
        }
        Ok(())
    }

    /// Returns the state of a thread. `None` if the thread does not exist.
    ///
    /// A thread becomes active in the next call of [`next`](Self::next).
    ///
    /// # Example
    ///
    /// ```
    /// use core::time::Duration;
    /// use flowtable::Timestamp;
    /// use flowtable::papers::schedule::share::{Order, ProportionalShare};
    /// use flowtable::papers::schedule::*;
    ///
    /// let (us, now) = (Duration::from_micros, Timestamp::ZERO);
    /// let shares = ProportionalShare::new(8, 100, Order::Wf2qPlus)?;
    /// let mut scheduler = Scheduler::new(shares, us(3), Policy::Budget(Budget::packets(16)))?;
    /// let allocated = scheduler.allocation_size();
    /// let thread = scheduler.add(ThreadConfig::new(50, us(10)))?;
    /// assert_eq!(scheduler.state(thread), Some(State::Idle));
    /// scheduler.set_occupancy(thread, Occupancy::queued(1), now)?;
    /// assert_eq!(scheduler.state(thread), Some(State::Eligible));
    /// let turn = scheduler.next(now).unwrap();
    /// assert_eq!(scheduler.state(thread), Some(State::Running));
    /// // The thread has failed: end its turn, and remove it.
    /// scheduler.finish(turn, us(0), Occupancy::queued(0), now)?;
    /// scheduler.remove(thread)?;
    /// assert_eq!(scheduler.state(thread), None);
    /// assert_eq!(scheduler.allocation_size(), allocated);
    /// # Ok::<(), flowtable::papers::schedule::ScheduleError>(())
    /// ```
    #[must_use]
    pub fn state(&self, thread: Thread) -> Option<State> {
        let entry = self.entries.get(thread.index()).filter(|entry| entry.is_present)?;
        Some(match entry {
            Entry { is_running: true, .. } => State::Running,
            entry if !entry.is_eligible() => State::Idle,
            Entry { is_active: true, .. } => State::Active,
            _ => State::Eligible,
        })
    }

    /// Returns the number of packets, and of free output slots, that a thread must wait for. `None`
    /// if the thread does not exist.
    #[must_use]
    pub fn threshold(&self, thread: Thread) -> Option<u32> {
        let entry = self.entries.get(thread.index()).filter(|entry| entry.is_present)?;
        Some(entry.threshold)
    }

    /// Returns the time spent on processing and on switching.
    #[must_use]
    pub const fn account(&self) -> Account {
        self.account
    }

    /// Returns the number of allocated bytes, which is constant.
    #[must_use]
    pub fn allocation_size(&self) -> usize {
        self.shares.allocation_size()
            + self.timeouts.allocation_size()
            + self.entries.capacity() * size_of::<Entry>()
            + self.changed.capacity() * size_of::<Thread>()
    }

    /// Checks the invariants of the scheduler, for tests. O(capacity).
    ///
    /// # Errors
    ///
    /// The first invariant that is broken: a bug in this crate.
    ///
    /// # Example
    ///
    /// ```
    /// use core::time::Duration;
    /// use flowtable::papers::schedule::share::{Order, ProportionalShare};
    /// use flowtable::papers::schedule::{Budget, Policy, Scheduler, ThreadConfig};
    ///
    /// let us = Duration::from_micros;
    /// let shares = ProportionalShare::new(8, 100, Order::Wf2qPlus)?;
    /// let mut scheduler = Scheduler::new(shares, us(3), Policy::Budget(Budget::packets(16)))?;
    /// scheduler.add(ThreadConfig::new(50, us(10)))?;
    /// assert_eq!(scheduler.validate(), Ok(()));
    /// # Ok::<(), flowtable::papers::schedule::ScheduleError>(())
    /// ```
    #[doc(hidden)]
    pub fn validate(&self) -> Result<(), InvariantError> {
        self.shares.validate()?;
        ensure(self.timeouts.is_valid(), || "the heap of timeouts is out of order")?;
        for (index, entry) in (0..).zip(&self.entries) {
            let thread = Thread::from_index(index);
            let has_deadline = entry.deadline() == self.timeouts.key(index);
            ensure(has_deadline, || format!("the timeout of thread {index} is wrong"))?;
            let is_active = entry.is_active && entry.is_present;
            ensure(is_active == self.shares.is_active(thread), || {
                format!("the scheduler and the shares disagree on thread {index}")
            })?;
            ensure(entry.is_changed == self.changed.contains(&thread), || {
                format!("the list of changed threads is wrong about thread {index}")
            })?;
        }
        Ok(())
    }

    fn entry_mut(&mut self, thread: Thread) -> Result<&mut Entry, ScheduleError> {
        let entry = self.entries.get_mut(thread.index()).filter(|entry| entry.is_present);
        entry.ok_or(ScheduleError::Share(ShareError::NoThread))
    }

    fn mark_eligible(&mut self, thread: Thread) {
        let entry = &mut self.entries[thread.index()];
        entry.is_overdue = entry.config.timeout == Some(Duration::ZERO);
        self.update_timeout(thread);
    }

    fn mark_idle(&mut self, thread: Thread) {
        self.entries[thread.index()].is_overdue = false;
        self.update_timeout(thread);
    }

    fn set_active(&mut self, thread: Thread, is_active: bool) {
        self.entries[thread.index()].is_active = is_active;
        self.update_timeout(thread);
    }

    fn update_timeout(&mut self, thread: Thread) {
        let index = thread.index() as u32;
        match self.entries[thread.index()].deadline() {
            Some(deadline) => self.timeouts.set(index, deadline),
            None => drop(self.timeouts.remove(index)),
        }
    }

    /// Caps the thresholds of a thread, in addition to its buffers. O(1).
    pub(super) fn cap_threshold(&mut self, thread: Thread, packets: u32) {
        let buffers = &mut self.entries[thread.index()].config.buffers;
        *buffers = packets.min(*buffers);
        self.set_threshold(thread);
    }

    fn set_threshold(&mut self, thread: Thread) {
        let entry = &mut self.entries[thread.index()];
        entry.threshold = self.policy.threshold(entry.config.cost, entry.config.buffers);
        self.mark_changed(thread);
    }

    /// Adds a thread to the list that `next` reevaluates.
    fn mark_changed(&mut self, thread: Thread) {
        let entry = &mut self.entries[thread.index()];
        if !entry.is_changed {
            entry.is_changed = true;
            self.changed.push(thread);
        }
    }

    /// Activates or deactivates a thread in the shares, by its present occupancy and threshold.
    fn reevaluate(&mut self, thread: Thread) {
        let entry = &self.entries[thread.index()];
        if !entry.is_present || entry.is_running || !(entry.is_active || entry.may_run()) {
            return;
        }
        let work = self.work(thread);
        let set = self.shares.set_work(thread, work);
        debug_assert!(set.is_ok(), "the states of entries and shares agree");
        self.set_active(thread, work.is_some());
    }

    /// Returns the expected run of a thread that may run.
    fn work(&self, thread: Thread) -> Option<u64> {
        let entry = &self.entries[thread.index()];
        let budget = self.policy.budget().limited_by(entry.config.budget);
        let run = || budget.expected_run(entry.occupancy.work(), nanos(entry.config.cost));
        entry.may_run().then(run)
    }
}
