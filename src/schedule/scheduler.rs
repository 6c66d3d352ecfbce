//! Who is next, and why.

use alloc::vec::Vec;
use core::error::Error;
use core::fmt;
use core::time::Duration;

use super::ScheduleError;
use super::budget::{Policy, Turn};
use super::thread::{Entry, Occupancy, State, ThreadConfig};
use crate::schedule::share::{IndexedHeap, ProportionalShare, ShareError, Thread};
use crate::timestamp::{Timestamp, nanos};

/// Time that was spent, since the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Account {
    /// By threads, for their packets.
    pub processing: Duration,
    /// For switches, one for each turn.
    pub switching: Duration,
    /// Turns that were finished.
    pub turns: u64,
}

impl Account {
    /// The efficiency index: the part of the busy time that went to processing. `None` before the first turn.
    ///
    /// # Example
    ///
    /// ```
    /// use core::time::Duration;
    /// use flowtable::Timestamp;
    /// use flowtable::schedule::{Budget, Occupancy, Policy, Scheduler, ThreadConfig};
    ///
    /// let (us, now) = (Duration::from_micros, Timestamp::ZERO);
    /// let mut scheduler = Scheduler::new(1, 100, us(3), Policy::Budget(Budget::packets(16)))?;
    /// let thread = scheduler.add(ThreadConfig::new(50, us(9)))?;
    /// assert_eq!(scheduler.account().efficiency(), None);
    /// scheduler.tell(thread, Occupancy::queued(1), now)?;
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

/// A turn of a thread that does not run here, given back: it is another scheduler's.
///
/// # Example
///
/// ```
/// use core::time::Duration;
/// use flowtable::Timestamp;
/// use flowtable::schedule::{Budget, ForeignTurn, Occupancy, Policy, Scheduler, ThreadConfig};
///
/// let (us, now) = (Duration::from_micros, Timestamp::ZERO);
/// let scheduler = || Scheduler::new(1, 100, us(3), Policy::Budget(Budget::packets(1)));
/// let (mut here, mut there) = (scheduler()?, scheduler()?);
/// let thread = here.add(ThreadConfig::new(50, us(1)))?;
/// here.tell(thread, Occupancy::queued(1), now)?;
/// let turn = here.next(now).unwrap();
/// let ForeignTurn(turn) = there.finish(turn, us(1), Occupancy::queued(0), now).unwrap_err();
/// here.finish(turn, us(1), Occupancy::queued(0), now)?;
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Debug, PartialEq, Eq)]
pub struct ForeignTurn(pub Turn);

impl fmt::Display for ForeignTurn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the thread of this turn does not run here")
    }
}

impl Error for ForeignTurn {}

impl From<ForeignTurn> for ScheduleError {
    fn from(_: ForeignTurn) -> Self {
        Self::Share(ShareError::NotRunning)
    }
}

/// Gives threads their turns: by shares, thresholds and timeouts.
///
/// See the [module](crate::schedule) for the states of a thread. The caller has the queues and the clock: he
/// [tells](Self::tell) how full queues are when packets come or go, asks for the [next](Self::next) turn, runs it, and
/// [finishes](Self::finish) it with the time that it took. The switch before a turn is charged to nobody. What does not
/// say otherwise is O(1).
///
/// # Example
///
/// ```
/// use core::time::Duration;
/// use flowtable::Timestamp;
/// use flowtable::schedule::{Occupancy, Overhead, Policy, Scheduler, ThreadConfig, Throttle};
///
/// let us = Duration::from_micros;
/// let ten = Overhead::from_percent(10).unwrap();
/// let policy = Policy::Throttle(Throttle::new(us(3), ten, us(30))?);
/// let mut scheduler = Scheduler::new(8, 100, us(3), policy)?;
/// let thread = scheduler.add(ThreadConfig::new(50, us(10)).with_timeout(us(500)))?;
///
/// // Two packets wait. Three would be worth a switch.
/// let start = Timestamp::ZERO;
/// scheduler.tell(thread, Occupancy::queued(2), start)?;
/// assert_eq!(scheduler.next(start), None);
/// assert_eq!(scheduler.wake_at(), Some(start + us(500)));
/// // After half a millisecond two are enough.
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
    /// By the number of the thread.
    entries: Vec<Entry>,
    /// Threads of which something has changed since `next` looked at them.
    touched: Vec<Thread>,
    /// Deadlines of threads that are eligible, have a timeout, and are not active.
    timeouts: IndexedHeap<Timestamp>,
    account: Account,
}

impl Scheduler {
    /// No threads yet, and room for so many; shares that are parts of so much; what a switch costs; who may run when.
    ///
    /// The cost of a switch is for the [account](Self::account); thresholds come from that of the throttle, which should be
    /// the same.
    ///
    /// # Errors
    ///
    /// If there would be no threads or nothing to share, too many threads, or there is no memory for them.
    pub fn new(
        threads: usize,
        whole: u32,
        switch: Duration,
        policy: Policy,
    ) -> Result<Self, ScheduleError> {
        let shares = ProportionalShare::new(threads, whole)?;
        let (mut entries, mut touched) = (Vec::new(), Vec::new());
        entries.try_reserve_exact(threads).map_err(|_| ScheduleError::NoMemory)?;
        touched.try_reserve_exact(threads).map_err(|_| ScheduleError::NoMemory)?;
        let timeouts = IndexedHeap::new(threads).ok_or(ScheduleError::NoMemory)?;
        let account = Account::default();
        Ok(Self { policy, switch, shares, entries, touched, timeouts, account })
    }

    /// Adds a thread, which is idle. O(1).
    ///
    /// # Errors
    ///
    /// If its share is zero or more than is left, its packets cost nothing, its queues have no places, or there are as
    /// many threads as there may be.
    pub fn add(&mut self, config: ThreadConfig) -> Result<Thread, ScheduleError> {
        if config.cost == 0 {
            return Err(ScheduleError::NoCost);
        }
        if config.buffers == 0 {
            return Err(ScheduleError::Buffers);
        }
        let thread = self.shares.add(config.share)?;
        let old = self.entries.get(thread.index());
        let entry = Entry {
            is_present: true,
            // That of the same number which was removed may still be in the list.
            is_touched: old.is_some_and(|old| old.is_touched),
            is_running: false,
            is_active: false,
            is_late: false,
            since: None,
            occupancy: Occupancy::default(),
            threshold: self.policy.threshold(Duration::from_nanos(config.cost), config.buffers),
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
    /// If there is no such thread, or it has its turn.
    pub fn remove(&mut self, thread: Thread) -> Result<(), ScheduleError> {
        self.shares.remove(thread)?;
        self.timeouts.remove(thread.index() as u32);
        self.entries[thread.index()].is_present = false;
        Ok(())
    }

    /// How full the queues of a thread are now. O(log n).
    ///
    /// To be called when a packet has come into its input queue, or has left its output queue. A timeout counts from
    /// the first such call with which there is something to do; the times of calls need not be in order. A thread that
    /// polls a card is told of the packets there, or of one if they are not known, when its sleep is over.
    ///
    /// # Errors
    ///
    /// If there is no such thread.
    pub fn tell(
        &mut self,
        thread: Thread,
        occupancy: Occupancy,
        now: Timestamp,
    ) -> Result<(), ScheduleError> {
        let entry = self.entry_mut(thread)?;
        entry.occupancy = occupancy;
        if entry.is_running {
            return Ok(()); // `finish` will look at it
        }
        match (occupancy.work() > 0, entry.since) {
            (true, None) => self.becomes_eligible(thread, now),
            (false, Some(_)) => self.becomes_idle(thread),
            _ => {}
        }
        self.touch(thread);
        Ok(())
    }

    /// The next turn, if any thread may run. O(log n) on average.
    pub fn next(&mut self, now: Timestamp) -> Option<Turn> {
        while let Some(thread) = self.touched.pop() {
            self.entries[thread.index()].is_touched = false;
            self.look_at(thread);
        }
        // After that: a thread that waits again since its threshold has grown may have waited for long enough.
        while let Some((deadline, number)) = self.timeouts.first() {
            if deadline > now {
                break;
            }
            self.timeouts.pop();
            self.entries[number as usize].is_late = true;
            self.look_at(Thread::from_number(number));
        }
        let thread = self.shares.pick()?;
        let entry = &mut self.entries[thread.index()];
        (entry.is_running, entry.is_active, entry.since) = (true, false, None);
        Some(Turn { thread, budget: self.policy.budget() })
    }

    /// A turn is over: it took so long, without the switch, and left the queues so full. O(log n).
    ///
    /// If the caller's clock is so coarse that it took no time, its thread is charged for one packet.
    ///
    /// # Errors
    ///
    /// If no thread of that number runs here: the turn is another scheduler's. It is given back.
    pub fn finish(
        &mut self,
        turn: Turn,
        processing: Duration,
        occupancy: Occupancy,
        now: Timestamp,
    ) -> Result<(), ForeignTurn> {
        let ended = self.end(turn.thread, processing, Some(occupancy), now);
        ended.map_err(|_| ForeignTurn(turn))
    }

    /// The turn of this thread was lost, by a panic of who had it: it is over. The thread is charged for one packet,
    /// and its queues are taken to be as full as was told last. O(log n).
    ///
    /// # Errors
    ///
    /// If there is no such thread, or it does not have its turn.
    pub fn abandon(&mut self, thread: Thread, now: Timestamp) -> Result<(), ScheduleError> {
        self.end(thread, Duration::ZERO, None, now)
    }

    fn end(
        &mut self,
        thread: Thread,
        processing: Duration,
        occupancy: Option<Occupancy>,
        now: Timestamp,
    ) -> Result<(), ScheduleError> {
        let entry = self.entry_mut(thread)?;
        if !entry.is_running {
            return Err(ShareError::NotRunning.into());
        }
        entry.is_running = false;
        let occupancy = occupancy.unwrap_or(entry.occupancy);
        entry.occupancy = occupancy;
        let charged = if processing.is_zero() { entry.config.cost } else { nanos(processing) };
        if occupancy.work() > 0 {
            self.becomes_eligible(thread, now);
        } else {
            self.becomes_idle(thread);
        }
        let more = self.entries[thread.index()].may_run().then(|| self.expected_run(thread));
        self.shares.charge(thread, charged, more)?;
        self.set_active(thread, more.is_some());
        self.account.processing = self.account.processing.saturating_add(processing);
        self.account.switching = self.account.switching.saturating_add(self.switch);
        self.account.turns += 1;
        Ok(())
    }

    /// When the first timeout is over, of the threads that wait for one. `None` if none does.
    ///
    /// If [`next`](Self::next) has nobody, nothing can be done before that time but for what [`tell`](Self::tell) says.
    #[must_use]
    pub fn wake_at(&self) -> Option<Timestamp> {
        self.timeouts.first().map(|(deadline, _)| deadline)
    }

    /// Another policy, for all turns from now on. O(n log n), some of it in the next call of `next`.
    pub fn set_policy(&mut self, policy: Policy) {
        self.policy = policy;
        for number in 0..self.entries.len() {
            if self.entries[number].is_present {
                self.set_threshold(Thread::from_number(number as u32));
            }
        }
    }

    /// The packets of a thread cost something else than was thought. O(log n), in the next call of `next`.
    ///
    /// # Errors
    ///
    /// If there is no such thread, or they would cost nothing.
    ///
    /// # Example
    ///
    /// ```
    /// use core::time::Duration;
    /// use flowtable::schedule::{Budget, Overhead, Policy, Scheduler, ThreadConfig, Throttle};
    ///
    /// let us = Duration::from_micros;
    /// let throttle = |percent| Throttle::new(us(3), Overhead::from_percent(percent).unwrap(), us(60)).unwrap();
    /// let mut scheduler = Scheduler::new(8, 100, us(3), Policy::Budget(Budget::packets(16)))?;
    /// let thread = scheduler.add(ThreadConfig::new(50, us(1)))?;
    /// assert_eq!(scheduler.threshold(thread), Some(1)); // nobody is throttled
    /// scheduler.set_policy(Policy::Throttle(throttle(10)));
    /// assert_eq!(scheduler.threshold(thread), Some(30));
    /// scheduler.set_cost(thread, us(2))?; // as it was measured
    /// assert_eq!(scheduler.threshold(thread), Some(15));
    /// assert_eq!(scheduler.policy(), &Policy::Throttle(throttle(10)));
    /// # Ok::<(), flowtable::schedule::ScheduleError>(())
    /// ```
    pub fn set_cost(&mut self, thread: Thread, cost: Duration) -> Result<(), ScheduleError> {
        let entry = self.entry_mut(thread)?;
        if cost.is_zero() {
            return Err(ScheduleError::NoCost);
        }
        entry.config.cost = nanos(cost);
        self.set_threshold(thread);
        Ok(())
    }

    /// What a thread is doing. `None` if there is no such thread.
    ///
    /// A thread becomes active when [`next`](Self::next) looks at it.
    ///
    /// # Example
    ///
    /// ```
    /// use core::time::Duration;
    /// use flowtable::Timestamp;
    /// use flowtable::schedule::{Budget, Occupancy, Policy, Scheduler, State, ThreadConfig};
    ///
    /// let (us, now) = (Duration::from_micros, Timestamp::ZERO);
    /// let mut scheduler = Scheduler::new(8, 100, us(3), Policy::Budget(Budget::packets(16)))?;
    /// let allocated = scheduler.allocation_size();
    /// let thread = scheduler.add(ThreadConfig::new(50, us(10)))?;
    /// assert_eq!(scheduler.state(thread), Some(State::Idle));
    /// scheduler.tell(thread, Occupancy::queued(1), now)?;
    /// assert_eq!(scheduler.state(thread), Some(State::Eligible));
    /// let turn = scheduler.next(now).unwrap();
    /// assert_eq!(scheduler.state(thread), Some(State::Running));
    /// // The program of the thread has failed: its turn ends, and it goes.
    /// drop(turn);
    /// scheduler.abandon(thread, now)?;
    /// scheduler.remove(thread)?;
    /// assert_eq!(scheduler.state(thread), None);
    /// assert_eq!(scheduler.allocation_size(), allocated);
    /// # Ok::<(), flowtable::schedule::ScheduleError>(())
    /// ```
    #[must_use]
    pub fn state(&self, thread: Thread) -> Option<State> {
        let entry = self.entries.get(thread.index()).filter(|entry| entry.is_present)?;
        Some(match entry {
            Entry { is_running: true, .. } => State::Running,
            Entry { since: None, .. } => State::Idle,
            Entry { is_active: true, .. } => State::Active,
            _ => State::Eligible,
        })
    }

    /// How many packets a thread has to wait for, and places for as many. `None` if there is no such thread.
    #[must_use]
    pub fn threshold(&self, thread: Thread) -> Option<u32> {
        let entry = self.entries.get(thread.index()).filter(|entry| entry.is_present)?;
        Some(entry.threshold)
    }

    /// The policy.
    #[must_use]
    pub const fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Time that was spent on processing and on switching.
    #[must_use]
    pub const fn account(&self) -> Account {
        self.account
    }

    /// Bytes allocated. They do not change.
    #[must_use]
    pub fn allocation_size(&self) -> usize {
        self.shares.allocation_size()
            + self.timeouts.allocation_size()
            + self.entries.capacity() * size_of::<Entry>()
            + self.touched.capacity() * size_of::<Thread>()
    }

    /// Checks the invariants. O(capacity).
    ///
    /// # Errors
    ///
    /// Which one does not hold.
    ///
    /// # Example
    ///
    /// ```
    /// use core::time::Duration;
    /// use flowtable::schedule::{Budget, Policy, Scheduler, ThreadConfig};
    ///
    /// let us = Duration::from_micros;
    /// let mut scheduler = Scheduler::new(8, 100, us(3), Policy::Budget(Budget::packets(16)))?;
    /// scheduler.add(ThreadConfig::new(50, us(10)))?;
    /// assert_eq!(scheduler.validate(), Ok(()));
    /// # Ok::<(), flowtable::schedule::ScheduleError>(())
    /// ```
    #[doc(hidden)]
    pub fn validate(&self) -> Result<(), crate::schedule::share::Broken> {
        use crate::schedule::share::Broken;
        self.shares.validate()?;
        if !self.timeouts.is_valid() {
            return Err(Broken::Heap);
        }
        for (number, entry) in (0..).zip(&self.entries) {
            let thread = Thread::from_number(number);
            let idles = entry.is_running || entry.occupancy.work() == 0;
            let is_right = entry.deadline() == self.timeouts.key(number)
                && (!entry.is_present || entry.since.is_none() == idles)
                && (entry.is_active && entry.is_present) == self.shares.is_active(thread)
                && entry.is_touched == self.touched.contains(&thread);
            if !is_right {
                return Err(Broken::Thread(thread));
            }
        }
        Ok(())
    }

    fn entry_mut(&mut self, thread: Thread) -> Result<&mut Entry, ScheduleError> {
        let entry = self.entries.get_mut(thread.index()).filter(|entry| entry.is_present);
        entry.ok_or(ScheduleError::Share(ShareError::NoThread))
    }

    fn becomes_eligible(&mut self, thread: Thread, now: Timestamp) {
        let entry = &mut self.entries[thread.index()];
        entry.since = Some(now);
        entry.is_late = entry.config.timeout == Some(0);
        self.note_deadline(thread);
    }

    fn becomes_idle(&mut self, thread: Thread) {
        let entry = &mut self.entries[thread.index()];
        (entry.since, entry.is_late) = (None, false);
        self.note_deadline(thread);
    }

    fn set_active(&mut self, thread: Thread, is_active: bool) {
        self.entries[thread.index()].is_active = is_active;
        self.note_deadline(thread);
    }

    fn note_deadline(&mut self, thread: Thread) {
        let number = thread.index() as u32;
        match self.entries[thread.index()].deadline() {
            Some(deadline) => self.timeouts.set(number, deadline),
            None => drop(self.timeouts.remove(number)),
        }
    }

    fn set_threshold(&mut self, thread: Thread) {
        let entry = &mut self.entries[thread.index()];
        let cost = Duration::from_nanos(entry.config.cost);
        entry.threshold = self.policy.threshold(cost, entry.config.buffers);
        self.touch(thread);
    }

    /// Has `next` look at a thread.
    fn touch(&mut self, thread: Thread) {
        let entry = &mut self.entries[thread.index()];
        if !entry.is_touched {
            entry.is_touched = true;
            self.touched.push(thread);
        }
    }

    /// Lets a thread take part or not, by what its queues are like now.
    fn look_at(&mut self, thread: Thread) {
        let entry = &self.entries[thread.index()];
        if !entry.is_present || entry.is_running {
            return;
        }
        let may_run = entry.may_run();
        let done = match (entry.is_active, may_run) {
            (false, true) => self.shares.activate(thread, self.expected_run(thread)),
            (true, true) => self.shares.expect(thread, self.expected_run(thread)),
            (true, false) => self.shares.deactivate(thread),
            (false, false) => return,
        };
        debug_assert!(done.is_ok(), "entries and shares know the same");
        self.set_active(thread, may_run);
    }

    fn expected_run(&self, thread: Thread) -> u64 {
        let entry = &self.entries[thread.index()];
        self.policy.budget().expected_run(entry.occupancy.work(), entry.config.cost)
    }
}
