//! Threads, their starts and finishes, and the two heaps.

use alloc::vec::Vec;

use super::heap::IndexedHeap;
use super::{Broken, ShareError, Thread};

/// Units of virtual time for a unit of work: the least common multiple of 1 to 16.
const SCALE: u64 = 720_720;

/// Virtual times. They saturate.
type Virtual = u128;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// No thread has this number.
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
    /// Units of virtual time for a unit of its work: `SCALE` times the whole, divided by the share.
    factor: u64,
    expected: u64,
    /// Of the run that waits or runs.
    start: Virtual,
    /// Of the last run.
    finish: Virtual,
}

impl Entry {
    /// When a run of so much would finish.
    #[inline]
    fn finish_after(&self, run: u64) -> Virtual {
        self.start.saturating_add(Virtual::from(run) * Virtual::from(self.factor))
    }
}

/// Threads that have their turns in proportion to their shares: WF²Q+ in integers.
///
/// See the [module](crate::schedule::share) for how it works. A thread is idle, active (it has work and waits for its turn) or
/// running (it was [picked](Self::pick) and is not yet [charged](Self::charge)). Several may run at once. What does not
/// say otherwise is O(1).
///
/// # Example
///
/// ```
/// use flowtable::schedule::share::ProportionalShare;
///
/// let mut shares = ProportionalShare::new(8, 100)?; // in percent
/// let (slow, fast) = (shares.add(25)?, shares.add(75)?);
/// for thread in [slow, fast] {
///     shares.activate(thread, 10)?; // it expects to run for 10
/// }
/// let mut work = [0; 2];
/// for _ in 0..40 {
///     let next = shares.pick().unwrap();
///     work[next.index()] += 10;
///     shares.charge(next, 10, Some(10))?; // it has more to do
/// }
/// assert_eq!(work, [100, 300]);
/// # Ok::<(), flowtable::schedule::share::ShareError>(())
/// ```
#[derive(Clone, Debug)]
pub struct ProportionalShare {
    whole: u32,
    /// The sum of all shares: the whole at most.
    claimed: u32,
    virtual_time: Virtual,
    entries: Vec<Entry>,
    /// Numbers below the length of `entries` that no thread has.
    free: Vec<u32>,
    capacity: usize,
    /// Active threads whose start is reached, by the finish that is expected.
    eligible: IndexedHeap<Virtual>,
    /// The other active threads, by start.
    waiting: IndexedHeap<Virtual>,
}

impl ProportionalShare {
    /// Nobody yet, room for so many threads, and shares that are parts of so much: of 100 if they are percents.
    /// O(capacity).
    ///
    /// # Errors
    ///
    /// If either is zero, there are 2^32 - 1 threads or more, or there is no memory for them.
    pub fn new(capacity: usize, whole: u32) -> Result<Self, ShareError> {
        if capacity == 0 || whole == 0 {
            return Err(ShareError::Nothing);
        }
        if capacity >= u32::MAX as usize {
            return Err(ShareError::TooManyThreads);
        }
        let (mut entries, mut free) = (Vec::new(), Vec::new());
        entries.try_reserve_exact(capacity).map_err(|_| ShareError::NoMemory)?;
        free.try_reserve_exact(capacity).map_err(|_| ShareError::NoMemory)?;
        let heap = || IndexedHeap::new(capacity).ok_or(ShareError::NoMemory);
        let (eligible, waiting) = (heap()?, heap()?);
        Ok(Self { whole, claimed: 0, virtual_time: 0, entries, free, capacity, eligible, waiting })
    }

    /// Threads that were added and not removed.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// Whether there are no threads.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The most threads that there may be.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.capacity
    }

    /// What shares are parts of.
    #[must_use]
    pub const fn whole(&self) -> u32 {
        self.whole
    }

    /// The part of the whole that no thread has.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::schedule::share::{ProportionalShare, ShareError};
    ///
    /// let mut shares = ProportionalShare::new(8, 100)?;
    /// let allocated = shares.allocation_size();
    /// let thread = shares.add(70)?;
    /// assert_eq!((shares.len(), shares.capacity()), (1, 8));
    /// assert_eq!((shares.whole(), shares.share(thread), shares.unclaimed()), (100, Some(70), 30));
    /// shares.remove(thread)?;
    /// assert_eq!((shares.unclaimed(), shares.share(thread)), (100, None));
    /// assert_eq!(shares.allocation_size(), allocated);
    /// # Ok::<(), ShareError>(())
    /// ```
    #[must_use]
    pub const fn unclaimed(&self) -> u32 {
        self.whole - self.claimed
    }

    /// The share of a thread.
    #[must_use]
    pub fn share(&self, thread: Thread) -> Option<u32> {
        self.entry(thread).ok().map(|entry| entry.share)
    }

    /// Whether a thread has work and waits for its turn.
    #[must_use]
    pub fn is_active(&self, thread: Thread) -> bool {
        self.entry(thread).is_ok_and(|entry| entry.state == State::Active)
    }

    /// Bytes allocated. They do not change.
    #[must_use]
    pub fn allocation_size(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>()
            + self.free.capacity() * size_of::<u32>()
            + self.eligible.allocation_size()
            + self.waiting.allocation_size()
    }

    /// Adds a thread with this share of the whole. It is idle. O(1).
    ///
    /// # Errors
    ///
    /// If the share is zero, more than is [unclaimed](Self::unclaimed), or there are as many threads as there may be.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::schedule::share::{ProportionalShare, ShareError};
    ///
    /// let mut shares = ProportionalShare::new(8, 100)?;
    /// shares.add(70)?;
    /// assert_eq!(shares.add(31), Err(ShareError::TooMuch { left: 30 }));
    /// # Ok::<(), ShareError>(())
    /// ```
    pub fn add(&mut self, share: u32) -> Result<Thread, ShareError> {
        if share == 0 {
            return Err(ShareError::NoShare);
        }
        if share > self.unclaimed() {
            return Err(ShareError::TooMuch { left: self.unclaimed() });
        }
        if self.len() == self.capacity {
            return Err(ShareError::Full);
        }
        let whole = SCALE * u64::from(self.whole);
        let factor = (whole + u64::from(share) / 2) / u64::from(share);
        let entry = Entry { state: State::Idle, share, factor, expected: 0, start: 0, finish: 0 };
        self.claimed += share;
        Ok(Thread(match self.free.pop() {
            Some(number) => {
                self.entries[number as usize] = entry;
                number
            }
            None => {
                self.entries.push(entry);
                self.entries.len() as u32 - 1
            }
        }))
    }

    /// Removes a thread, and its share is free for others. O(log n).
    ///
    /// # Errors
    ///
    /// If there is no such thread, or it runs.
    pub fn remove(&mut self, thread: Thread) -> Result<(), ShareError> {
        let entry = self.entry(thread)?;
        if entry.state == State::Running {
            return Err(ShareError::Running);
        }
        self.claimed -= entry.share;
        self.leave(thread);
        self.entries[thread.index()].state = State::Free;
        self.free.push(thread.0);
        Ok(())
    }

    /// An idle thread has work, and will run for so long, as far as the caller knows. O(log n).
    ///
    /// It starts now, or where its last run finishes if that is later: what it has used before it has to pay for.
    ///
    /// # Errors
    ///
    /// If there is no such thread, or it is not idle.
    pub fn activate(&mut self, thread: Thread, expected_run: u64) -> Result<(), ShareError> {
        let now = self.virtual_time;
        let entry = self.entry_mut(thread)?;
        if entry.state != State::Idle {
            return Err(ShareError::NotIdle);
        }
        entry.start = entry.finish.max(now);
        self.enter(thread, expected_run);
        Ok(())
    }

    /// An active thread will run for so long. O(log n).
    ///
    /// # Errors
    ///
    /// If there is no such thread, or it is not active.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::schedule::share::{ProportionalShare, ShareError};
    ///
    /// let mut shares = ProportionalShare::new(8, 100)?;
    /// let (a, b) = (shares.add(50)?, shares.add(50)?);
    /// shares.activate(a, 10)?;
    /// shares.activate(b, 20)?;
    /// // More packets have come for the first than for the second: its batch takes longer, and finishes later.
    /// shares.expect(a, 30)?;
    /// assert_eq!(shares.pick(), Some(b));
    /// // Those of the first have been dropped.
    /// shares.deactivate(a)?;
    /// assert!(!shares.is_active(a) && shares.pick().is_none());
    /// # Ok::<(), ShareError>(())
    /// ```
    pub fn expect(&mut self, thread: Thread, expected_run: u64) -> Result<(), ShareError> {
        let entry = self.entry_mut(thread)?;
        if entry.state != State::Active {
            return Err(ShareError::NotActive);
        }
        if entry.expected != expected_run {
            entry.expected = expected_run;
            let finish = entry.finish_after(expected_run);
            if self.eligible.key(thread.0).is_some() {
                self.eligible.set(thread.0, finish);
            }
        }
        Ok(())
    }

    /// An active thread has no work any more, or cannot do it. O(log n).
    ///
    /// # Errors
    ///
    /// If there is no such thread, or it is not active.
    pub fn deactivate(&mut self, thread: Thread) -> Result<(), ShareError> {
        if self.entry(thread)?.state != State::Active {
            return Err(ShareError::NotActive);
        }
        self.leave(thread);
        self.entries[thread.index()].state = State::Idle;
        Ok(())
    }

    /// Whose turn it is: of the eligible threads that with the earliest finish. It runs until it is
    /// [charged](Self::charge). `None` if no thread is active. O(log n) on average.
    pub fn pick(&mut self) -> Option<Thread> {
        if self.eligible.is_empty() {
            let (start, _) = self.waiting.first()?;
            self.virtual_time = self.virtual_time.max(start);
        }
        while let Some((start, number)) = self.waiting.first() {
            if start > self.virtual_time {
                break;
            }
            self.waiting.pop();
            let entry = &self.entries[number as usize];
            self.eligible.set(number, entry.finish_after(entry.expected));
        }
        let (_, number) = self.eligible.pop()?;
        self.entries[number as usize].state = State::Running;
        Some(Thread(number))
    }

    /// A running thread has run for so long, and for one at least: else it could have all turns there are. It stays
    /// active if it has more work, and is expected to run for `more` then. O(log n).
    ///
    /// # Errors
    ///
    /// If there is no such thread, or it does not run.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::schedule::share::{ProportionalShare, ShareError};
    ///
    /// let mut shares = ProportionalShare::new(8, 100)?;
    /// let thread = shares.add(50)?;
    /// shares.activate(thread, 10)?;
    /// assert_eq!(shares.pick(), Some(thread));
    /// assert_eq!(shares.pick(), None); // it runs
    /// shares.charge(thread, 12, None)?; // that was all
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
        let passed = Virtual::from(run) * Virtual::from(SCALE);
        self.virtual_time = self.virtual_time.saturating_add(passed);
        if let Some(expected_run) = more {
            self.enter(thread, expected_run);
        }
        Ok(())
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
    /// let mut shares = flowtable::schedule::share::ProportionalShare::new(8, 100)?;
    /// let thread = shares.add(50)?;
    /// shares.activate(thread, 10)?;
    /// assert_eq!(shares.validate(), Ok(()));
    /// # Ok::<(), flowtable::schedule::share::ShareError>(())
    /// ```
    #[doc(hidden)]
    pub fn validate(&self) -> Result<(), Broken> {
        if !self.eligible.is_valid() || !self.waiting.is_valid() {
            return Err(Broken::Heap);
        }
        let mut claimed = 0_u64;
        for (number, entry) in (0..).zip(&self.entries) {
            let (early, late) = (self.waiting.key(number), self.eligible.key(number));
            let is_right = match (entry.state, early, late) {
                (State::Active, Some(start), None) => start == entry.start,
                (State::Active, None, Some(finish)) => {
                    entry.start <= self.virtual_time && finish == entry.finish_after(entry.expected)
                }
                (state, None, None) => state != State::Active,
                _ => false,
            };
            if !is_right {
                return Err(Broken::Thread(Thread(number)));
            }
            claimed += if entry.state == State::Free { 0 } else { u64::from(entry.share) };
        }
        if claimed != u64::from(self.claimed) || self.claimed > self.whole {
            return Err(Broken::Shares);
        }
        let is_free = |entry: &&Entry| entry.state == State::Free;
        let is_right = self.free.len() == self.entries.iter().filter(is_free).count()
            && self.free.iter().all(|number| is_free(&&self.entries[*number as usize]));
        is_right.then_some(()).ok_or(Broken::Numbers)
    }

    fn entry(&self, thread: Thread) -> Result<&Entry, ShareError> {
        let entry = self.entries.get(thread.index());
        entry.filter(|entry| entry.state != State::Free).ok_or(ShareError::NoThread)
    }

    fn entry_mut(&mut self, thread: Thread) -> Result<&mut Entry, ShareError> {
        let entry = self.entries.get_mut(thread.index());
        entry.filter(|entry| entry.state != State::Free).ok_or(ShareError::NoThread)
    }

    /// Puts a thread that has its start into one of the heaps.
    fn enter(&mut self, thread: Thread, expected: u64) {
        let entry = &mut self.entries[thread.index()];
        entry.expected = expected;
        entry.state = State::Active;
        if entry.start <= self.virtual_time {
            self.eligible.set(thread.0, entry.finish_after(expected));
        } else {
            self.waiting.set(thread.0, entry.start);
        }
    }

    /// Takes a thread out of the heap in which it is, if it is in one.
    fn leave(&mut self, thread: Thread) {
        let _ = self.eligible.remove(thread.0) || self.waiting.remove(thread.0);
    }
}
