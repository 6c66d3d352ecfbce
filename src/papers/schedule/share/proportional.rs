//! Proportional shares: threads with virtual starts and finishes, in two heaps.

use alloc::format;
use alloc::vec::Vec;

use super::heap::IndexedHeap;
use super::{Order, ShareError, Thread};
use crate::invariant::{InvariantError, ensure};

/// Units of virtual time per unit of work: the least common multiple of 1 to 16.
const SCALE: u64 = 720_720;

/// A virtual time. Arithmetic saturates.
type Virtual = u128;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The index is unused.
    Free,
    Idle,
    /// In one of the heaps.
    Active,
    Running,
}

#[derive(Clone, Debug)]
struct Entry {
    state: State,
    share: u32,
    /// Units of virtual time per unit of the thread's work: `SCALE * whole / share`.
    factor: u64,
    expected: u64,
    /// The start of the waiting or present run.
    start: Virtual,
    /// The finish of the last run.
    finish: Virtual,
}

impl Entry {
    /// Returns the finish of a run of this length.
    #[inline]
    fn finish_after(&self, run: u64) -> Virtual {
        self.start.saturating_add(Virtual::from(run) * Virtual::from(self.factor))
    }
}

/// A proportional-share scheduler: WF²Q+ or start-time fair queueing, in integers.
///
/// See the [module](super) for the algorithm. A thread is idle, active (it has work and waits for
/// its turn) or running (it was [picked](Self::pick) and is not yet [charged](Self::charge)).
/// Several may run at once. Operations are O(1) unless stated otherwise.
///
/// Paper: Qie et al., section 3.1; the algorithms: Bennett and Zhang 1996, and
/// Goyal, Vin and Cheng 1996.
///
/// # A link
///
/// The queues of a link are threads as well: a run is a packet, and its length in bytes is known,
/// so the order is WF²Q+. The output thread picks a queue, sends its first packet, and charges the
/// bytes. If it took turns by packets instead, a path of long packets would get more of the link
/// than one of short ones. (Section 2.1: link scheduling is part of SELECT, and its algorithm is
/// left open.)
///
/// ```
/// use std::collections::VecDeque;
/// use flowtable::papers::schedule::share::{Order, ProportionalShare};
///
/// let mut link = ProportionalShare::new(2, 100, Order::Wf2qPlus)?;
/// // Short packets, and long ones, with equal shares.
/// let mut queues = [VecDeque::from([100; 64]), VecDeque::from([1500; 64])];
/// for queue in &queues {
///     let id = link.add(50)?;
///     link.set_work(id, Some(queue[0]))?;
/// }
/// let mut bytes = [0; 2];
/// for _ in 0..64 {
///     let id = link.pick().unwrap();
///     let queue = &mut queues[id.index()];
///     let length = queue.pop_front().unwrap();
///     bytes[id.index()] += length;
///     link.charge(id, length, queue.front().copied())?;
/// }
/// assert_eq!(bytes, [6000, 6000]);
/// # Ok::<(), flowtable::papers::schedule::share::ShareError>(())
/// ```
///
/// # Example
///
/// ```
/// use flowtable::papers::schedule::share::{Order, ProportionalShare};
///
/// let mut shares = ProportionalShare::new(8, 100, Order::Wf2qPlus)?; // in percent
/// let (slow, fast) = (shares.add(25)?, shares.add(75)?);
/// for thread in [slow, fast] {
///     shares.set_work(thread, Some(10))?; // the expected run is 10
/// }
/// let mut work = [0; 2];
/// for _ in 0..40 {
///     let next = shares.pick().unwrap();
///     work[next.index()] += 10;
///     shares.charge(next, 10, Some(10))?; // it has more work
/// }
/// assert_eq!(work, [100, 300]);
/// # Ok::<(), flowtable::papers::schedule::share::ShareError>(())
/// ```
#[derive(Clone, Debug)]
pub struct ProportionalShare {
    order: Order,
    whole: u32,
    /// The sum of all shares, at most the whole.
    claimed: u32,
    virtual_time: Virtual,
    /// The latest finish of all runs: the virtual time after a busy period in the order of starts.
    latest_finish: Virtual,
    /// The number of running threads.
    running: usize,
    entries: Vec<Entry>,
    /// The unused indices below the length of `entries`.
    free: Vec<u32>,
    capacity: usize,
    /// Active threads whose start is reached, by expected finish. None in the order of starts.
    eligible: IndexedHeap<Virtual>,
    /// All other active threads, by start.
    waiting: IndexedHeap<Virtual>,
}

impl ProportionalShare {
    /// Creates a scheduler with the maximum number of threads, the `whole` that shares are parts
    /// of, for example 100 if they are percentages, and the order of turns. O(capacity).
    ///
    /// # Errors
    ///
    /// If the capacity or the whole is zero, the capacity is 2^32 - 1 or more, or the allocation
    /// fails.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::papers::schedule::share::{Order, ProportionalShare};
    ///
    /// let mut shares = ProportionalShare::new(2, 100, Order::StartTime)?;
    /// let (slow, fast) = (shares.add(25)?, shares.add(75)?);
    /// for thread in [slow, fast] {
    ///     shares.set_work(thread, Some(0))?; // no estimate of its run is needed
    /// }
    /// let mut work = [0; 2];
    /// for _ in 0..8 {
    ///     let next = shares.pick().unwrap();
    ///     work[next.index()] += 10;
    ///     shares.charge(next, 10, Some(0))?;
    /// }
    /// assert_eq!((work[slow.index()], work[fast.index()]), (20, 60));
    /// # Ok::<(), flowtable::papers::schedule::share::ShareError>(())
    /// ```
    pub fn new(capacity: usize, whole: u32, order: Order) -> Result<Self, ShareError> {
        if capacity == 0 || whole == 0 {
            return Err(ShareError::Empty);
        }
        if capacity >= u32::MAX as usize {
            return Err(ShareError::TooManyThreads);
        }
        let (mut entries, mut free) = (Vec::new(), Vec::new());
        entries.try_reserve_exact(capacity).map_err(|_| ShareError::NoMemory)?;
        free.try_reserve_exact(capacity).map_err(|_| ShareError::NoMemory)?;
        let heap = || IndexedHeap::new(capacity).ok_or(ShareError::NoMemory);
        let (eligible, waiting) = (heap()?, heap()?);
        let (claimed, running, virtual_time, latest_finish) = (0, 0, 0, 0);
        Ok(Self {
            order,
            whole,
            claimed,
            virtual_time,
            latest_finish,
            running,
            entries,
            free,
            capacity,
            eligible,
            waiting,
        })
    }

    /// Returns the number of threads.
    pub(crate) fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// Returns whether there has been no thread: the first one gets index 0, then the next ones.
    pub(crate) fn is_unused(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the maximum number of threads.
    pub(crate) const fn capacity(&self) -> usize {
        self.capacity
    }

    /// Returns the part of the whole that no thread has claimed.
    const fn unclaimed(&self) -> u32 {
        self.whole - self.claimed
    }

    /// Returns whether a thread has work and waits for its turn.
    pub(crate) fn is_active(&self, thread: Thread) -> bool {
        self.entry(thread).is_ok_and(|entry| entry.state == State::Active)
    }

    /// Returns the number of allocated bytes, which is constant.
    pub(crate) fn allocation_size(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>()
            + self.free.capacity() * size_of::<u32>()
            + self.eligible.allocation_size()
            + self.waiting.allocation_size()
    }

    /// Adds a thread with this share of the whole. It is idle. O(1).
    ///
    /// # Errors
    ///
    /// If the share is zero or exceeds the unclaimed part, or the number of
    /// threads is at its maximum.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::papers::schedule::share::{Order, ProportionalShare, ShareError};
    ///
    /// let mut shares = ProportionalShare::new(8, 100, Order::Wf2qPlus)?;
    /// shares.add(70)?;
    /// assert_eq!(shares.add(31), Err(ShareError::Oversubscribed { left: 30 }));
    /// # Ok::<(), ShareError>(())
    /// ```
    pub fn add(&mut self, share: u32) -> Result<Thread, ShareError> {
        if share == 0 {
            return Err(ShareError::NoShare);
        }
        if share > self.unclaimed() {
            return Err(ShareError::Oversubscribed { left: self.unclaimed() });
        }
        if self.len() == self.capacity {
            return Err(ShareError::Full);
        }
        let whole = SCALE * u64::from(self.whole);
        let factor = (whole + u64::from(share) / 2) / u64::from(share);
        let entry = Entry { state: State::Idle, share, factor, expected: 0, start: 0, finish: 0 };
        self.claimed += share;
        Ok(Thread(match self.free.pop() {
            Some(index) => {
                self.entries[index as usize] = entry;
                index
            }
            None => {
                self.entries.push(entry);
                self.entries.len() as u32 - 1
            }
        }))
    }

    /// Removes a thread, and releases its share. O(log n).
    ///
    /// # Errors
    ///
    /// If the thread does not exist, or is running.
    pub fn remove(&mut self, thread: Thread) -> Result<(), ShareError> {
        let entry = self.entry(thread)?;
        if entry.state == State::Running {
            return Err(ShareError::Running);
        }
        self.claimed -= entry.share;
        self.dequeue(thread);
        self.entries[thread.index()].state = State::Free;
        self.free.push(thread.0);
        Ok(())
    }

    /// Sets the estimate of the next run of a thread that has work, or `None` if the thread has no
    /// work any more, or is blocked. O(log n).
    ///
    /// The start of a thread that was idle is the current virtual time, or the finish of its last
    /// run if that is later: the thread must pay for that run first.
    ///
    /// # Errors
    ///
    /// If the thread does not exist, or is running.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::papers::schedule::share::{Order, ProportionalShare, ShareError};
    ///
    /// let mut shares = ProportionalShare::new(8, 100, Order::Wf2qPlus)?;
    /// let (a, b) = (shares.add(50)?, shares.add(50)?);
    /// shares.set_work(a, Some(10))?;
    /// shares.set_work(b, Some(20))?;
    /// // More packets have arrived for the first thread: its run takes longer, and finishes later.
    /// shares.set_work(a, Some(30))?;
    /// assert_eq!(shares.pick(), Some(b));
    /// // The packets of the first thread were dropped.
    /// shares.set_work(a, None)?;
    /// assert!(shares.pick().is_none());
    /// # Ok::<(), ShareError>(())
    /// ```
    pub fn set_work(
        &mut self,
        thread: Thread,
        expected_run: Option<u64>,
    ) -> Result<(), ShareError> {
        let now = self.virtual_time;
        let entry = self.entry_mut(thread)?;
        match (entry.state, expected_run) {
            (State::Free | State::Running, _) => return Err(ShareError::Running),
            (State::Idle, None) => {}
            (State::Idle, Some(run)) => {
                entry.start = entry.finish.max(now);
                self.enqueue(thread, run);
            }
            (State::Active, None) => {
                entry.state = State::Idle;
                self.dequeue(thread);
            }
            (State::Active, Some(run)) if run == entry.expected => {}
            (State::Active, Some(run)) => {
                entry.expected = run;
                let finish = entry.finish_after(run);
                if self.eligible.key(thread.0).is_some() {
                    self.eligible.set(thread.0, finish);
                }
            }
        }
        Ok(())
    }

    /// Picks the next thread by the [order](Order), which runs until it is
    /// [charged](Self::charge). `None` if no thread is active. O(log n) on average.
    pub fn pick(&mut self) -> Option<Thread> {
        let index = match self.order {
            Order::Wf2qPlus => self.pick_by_finish(),
            Order::StartTime => self.pick_by_start(),
        }?;
        self.entries[index as usize].state = State::Running;
        self.running += 1;
        Some(Thread(index))
    }

    /// Picks the thread with the earliest start. The virtual time is that start, or after a busy
    /// period the latest finish.
    fn pick_by_start(&mut self) -> Option<u32> {
        let Some((start, index)) = self.waiting.pop() else {
            if self.running == 0 {
                self.virtual_time = self.virtual_time.max(self.latest_finish);
            }
            return None;
        };
        self.virtual_time = self.virtual_time.max(start);
        Some(index)
    }

    /// Picks the eligible thread with the earliest finish.
    fn pick_by_finish(&mut self) -> Option<u32> {
        if self.eligible.is_empty() {
            let (start, _) = self.waiting.first()?;
            self.virtual_time = self.virtual_time.max(start);
        }
        while let Some((start, index)) = self.waiting.first() {
            if start > self.virtual_time {
                break;
            }
            self.waiting.pop();
            let entry = &self.entries[index as usize];
            self.eligible.set(index, entry.finish_after(entry.expected));
        }
        self.eligible.pop().map(|(_, index)| index)
    }

    /// Charges a running thread for its run, at least one unit: else it could have all turns. It
    /// becomes active again if it has more work, with the expected run `more`, or else idle.
    /// O(log n).
    ///
    /// # Errors
    ///
    /// If the thread does not exist, or is not running.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::papers::schedule::share::{Order, ProportionalShare, ShareError};
    ///
    /// let mut shares = ProportionalShare::new(8, 100, Order::Wf2qPlus)?;
    /// let thread = shares.add(50)?;
    /// shares.set_work(thread, Some(10))?;
    /// assert_eq!(shares.pick(), Some(thread));
    /// assert_eq!(shares.pick(), None); // it is running
    /// shares.charge(thread, 12, None)?; // no more work
    /// assert_eq!(shares.charge(thread, 12, None), Err(ShareError::NotRunning));
    /// # Ok::<(), ShareError>(())
    /// ```
    pub fn charge(
        &mut self,
        thread: Thread,
        run: u64,
        more: Option<u64>,
    ) -> Result<(), ShareError> {
        let run = run.max(1);
        let entry = self.entry_mut(thread)?;
        if entry.state != State::Running {
            return Err(ShareError::NotRunning);
        }
        entry.finish = entry.finish_after(run);
        entry.start = entry.finish;
        entry.state = State::Idle;
        let finish = entry.finish;
        self.running -= 1;
        match self.order {
            Order::Wf2qPlus => {
                let passed = Virtual::from(run) * Virtual::from(SCALE);
                self.virtual_time = self.virtual_time.saturating_add(passed);
            }
            Order::StartTime => self.latest_finish = self.latest_finish.max(finish),
        }
        if let Some(expected_run) = more {
            self.enqueue(thread, expected_run);
        }
        Ok(())
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
    /// use flowtable::papers::schedule::share::{Order, ProportionalShare};
    ///
    /// let mut shares = ProportionalShare::new(8, 100, Order::Wf2qPlus)?;
    /// let thread = shares.add(50)?;
    /// shares.set_work(thread, Some(10))?;
    /// assert_eq!(shares.validate(), Ok(()));
    /// # Ok::<(), flowtable::papers::schedule::share::ShareError>(())
    /// ```
    #[doc(hidden)]
    pub fn validate(&self) -> Result<(), InvariantError> {
        let in_order = self.eligible.is_valid() && self.waiting.is_valid();
        ensure(in_order, || "a heap of threads is out of order")?;
        let mut claimed = 0_u64;
        for (index, entry) in (0..).zip(&self.entries) {
            let (waiting, eligible) = (self.waiting.key(index), self.eligible.key(index));
            let is_valid = match (entry.state, waiting, eligible) {
                (State::Active, Some(start), None) => start == entry.start,
                (State::Active, None, Some(finish)) => {
                    self.order == Order::Wf2qPlus
                        && entry.start <= self.virtual_time
                        && finish == entry.finish_after(entry.expected)
                }
                (state, None, None) => state != State::Active,
                _ => false,
            };
            ensure(is_valid, || format!("thread {index} is in a wrong heap, or has a wrong key"))?;
            claimed += if entry.state == State::Free { 0 } else { u64::from(entry.share) };
        }
        ensure(claimed == u64::from(self.claimed), || "the sum of the shares is wrong")?;
        ensure(self.claimed <= self.whole, || "the sum of the shares exceeds the whole")?;
        let is_free = |entry: &&Entry| entry.state == State::Free;
        let running = self.entries.iter().filter(|entry| entry.state == State::Running).count();
        ensure(running == self.running, || "the number of running threads is wrong")?;
        let is_valid = self.free.len() == self.entries.iter().filter(is_free).count()
            && self.free.iter().all(|index| is_free(&&self.entries[*index as usize]));
        ensure(is_valid, || "the list of unused indices is wrong")
    }

    fn entry(&self, thread: Thread) -> Result<&Entry, ShareError> {
        let entry = self.entries.get(thread.index());
        entry.filter(|entry| entry.state != State::Free).ok_or(ShareError::NoThread)
    }

    fn entry_mut(&mut self, thread: Thread) -> Result<&mut Entry, ShareError> {
        let entry = self.entries.get_mut(thread.index());
        entry.filter(|entry| entry.state != State::Free).ok_or(ShareError::NoThread)
    }

    /// Inserts an active thread, whose start is set, into one of the heaps.
    fn enqueue(&mut self, thread: Thread, expected: u64) {
        let entry = &mut self.entries[thread.index()];
        entry.expected = expected;
        entry.state = State::Active;
        if self.order == Order::Wf2qPlus && entry.start <= self.virtual_time {
            self.eligible.set(thread.0, entry.finish_after(expected));
        } else {
            self.waiting.set(thread.0, entry.start);
        }
    }

    /// Removes a thread from its heap, if it is in one.
    fn dequeue(&mut self, thread: Thread) {
        let _ = self.eligible.remove(thread.0) || self.waiting.remove(thread.0);
    }
}

#[cfg(all(test, target_pointer_width = "64"))]
mod tests {
    use super::*;

    #[test]
    fn memory_is_as_documented() {
        let mut shares =
            ProportionalShare::new(100, 1000, Order::default()).expect("there is memory");
        let bytes = shares.allocation_size();
        assert_eq!(bytes, 140 * 100);
        let threads: Vec<Thread> = (0..100).map(|_| shares.add(1).expect("a share")).collect();
        threads.into_iter().for_each(|thread| shares.remove(thread).expect("it is there"));
        assert_eq!(shares.allocation_size(), bytes);
    }
}
