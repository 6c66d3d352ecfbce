//! Proportional-share scheduling: turns of a CPU in proportion to shares.
//!
//! Each thread has a share of the whole. A virtual time V advances with the work that is done; a
//! thread that has worked for `w` must wait until V has advanced by `w / share`. So its turns are
//! spread as if it had a slower CPU of its own.
//!
//! ```text
//!     virtual time   0        100       200       300       400     shares: a 50 %, b 25 %, c 25 %
//!                    │         │         │         │         │      all runs take 50
//!     a (50 %)       ├─────────┼─────────┼─────────┼─────────┤      start S,
//!     b (25 %)       ├───────────────────┼───────────────────┤      finish F = S + 50 / share
//!     c (25 %)       ├───────────────────┼───────────────────┤
//!                              ▲ V = 100
//!     eligible: S <= V         waiting: S > V          next: the eligible thread with the least F
//!     heap by finish           heap by start
//! ```
//!
//! That is WF²Q+. The other [order](Order) is start-time fair queueing: the thread with the least
//! start, whether it is reached or not, and V is the start of the thread that runs. It needs no
//! estimate of runs, and one heap.
//!
//! Guarantees:
//!
//! 1. The virtual time never decreases, and a thread is eligible once its start is reached.
//! 2. By WF²Q+, a thread that always has work gets its share of the total work, less one run of its
//!    own and one of another thread, if runs are as long as expected. While all threads have work
//!    and shares add up to the whole, it gets at most its share and one run of its own.
//! 3. Shares do not accumulate. A thread that was idle starts at the current virtual time: unused
//!    share is lost.
//! 4. Unclaimed share is divided among the threads that have work, by their shares.
//! 5. Shares add up to at most the whole; more is an error.
//! 6. Ties of finishes are broken by the higher index. So the order is deterministic.
//!
//! By start-time fair queueing, instead of 2 (Goyal, Vin and Cheng, theorems 1 and 2):
//!
//! 7. While two threads have work, their quotients of work and share differ by
//!    at most a longest run of each, by its share.
//! 8. A thread that always has work gets its share of the total work, less a longest run of its
//!    own, and less its share of one longest run of each thread. With many threads that is more
//!    than by WF²Q+: all others may run before it.
//!
//! The length of the next run is the caller's estimate, the *expected run*; it only affects the
//! order. A thread is charged for its actual run. A thread with a far too large estimate lets all
//! others go first, each with one run; so it may fall behind by one run of each, and no more: that
//! does not accumulate.
//!
//! # Integers
//!
//! The virtual time counts in units of 1 / 720720 of the caller's: work `w` advances it by
//! `720720 w`, and a start by `w` times a factor, `720720 whole / share`. The factor is rounded to
//! the nearest integer once, when the thread is added; there is no other rounding. 720720 is the
//! least common multiple of 1 to 16, so common shares (all divisors of `720720 whole`) have exact
//! factors; any other share has an error of less than one part in a million, constant over all
//! runs.
//!
//! The virtual time has 128 bits. With a whole of 2³² it saturates after 2⁷⁶ units of work, two
//! million years of nanoseconds. It does not panic.
//!
//! # Cost
//!
//! 140 bytes per thread, allocated by the constructor. Each operation is O(log n): a thread moves
//! from the waiting heap to the eligible one at most once per run, so `pick` is O(log n) amortised
//! over the runs.
//!
//! Papers: Qie, Bavier, Peterson and Karlin, *Scheduling computations on a software-based router*
//! (2001), section 3.1, for the shares of threads; Bennett and Zhang, *Hierarchical packet fair
//! queueing algorithms* (1996), for WF²Q+. They schedule packets, whose length is known; the length
//! of runs is estimated. Goyal, Vin and Cheng, *Start-time fair queueing* (1996), for the other
//! order.

use core::error::Error;
use core::fmt;

mod heap;
mod proportional;

pub(crate) use heap::IndexedHeap;
pub use proportional::ProportionalShare;

/// The order of turns.
///
/// | | picks | needs the length of runs | a thread waits for |
/// |---|---|---|---|
/// | WF²Q+ | of the threads that are due, the earliest finish | before they begin | its share, and one run |
/// | start-time | the earliest start | when they end | up to one run of each other thread |
///
/// Paper: Qie et al., section 3.1, name proportional share such as weighted fair queueing; section
/// 5 names WF²Q+, and cites start-time fair queueing among the work on packet scheduling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Order {
    /// WF²Q+, of Bennett and Zhang.
    #[default]
    Wf2qPlus,
    /// Start-time fair queueing, of Goyal, Vin and Cheng.
    StartTime,
}

/// The handle of a thread.
///
/// Its index counts from 0. The index of a removed thread is reused, the last one first.
///
/// Paper: Qie et al., section 3.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Thread(u32);

impl Thread {
    /// Returns the index of the thread, below the capacity: for an array parallel to the threads.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::papers::schedule::share::{Order, ProportionalShare};
    ///
    /// let mut shares = ProportionalShare::new(8, 100, Order::Wf2qPlus)?;
    /// assert_eq!([shares.add(10)?.index(), shares.add(10)?.index()], [0, 1]);
    /// # Ok::<(), flowtable::papers::schedule::share::ShareError>(())
    /// ```
    #[inline]
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    pub(crate) const fn from_index(index: u32) -> Self {
        Self(index)
    }
}

/// The error of [`ProportionalShare`]. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ShareError {
    /// The capacity or the whole is zero.
    Empty,
    /// The capacity is 2³² - 1 threads or more.
    TooManyThreads,
    /// The allocation failed.
    NoMemory,
    /// The share is zero: the thread would never have a turn.
    NoShare,
    /// The sum of the shares would exceed the whole.
    Oversubscribed {
        /// The unclaimed part of the whole.
        left: u32,
    },
    /// The number of threads is at its maximum.
    Full,
    /// The thread does not exist.
    NoThread,
    /// The thread is not running.
    NotRunning,
    /// The thread is running: it was picked, and not yet charged.
    Running,
}

impl fmt::Display for ShareError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("the capacity and the whole must be greater than zero"),
            Self::TooManyThreads => f.write_str("the capacity exceeds the maximum of 2^32 - 2"),
            Self::NoMemory => f.write_str("the memory allocation failed"),
            Self::NoShare => f.write_str("the share of a thread must be greater than zero"),
            Self::Oversubscribed { left } => {
                write!(f, "the sum of the shares would exceed the whole, of which {left} is left")
            }
            Self::Full => f.write_str("the number of threads is at its maximum"),
            Self::NoThread => f.write_str("the thread does not exist"),
            Self::NotRunning => f.write_str("the thread does not run"),
            Self::Running => f.write_str("the thread runs and has not been charged"),
        }
    }
}

impl Error for ShareError {}
