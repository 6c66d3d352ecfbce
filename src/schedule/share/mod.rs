//! Who is next: turns of a CPU in proportion to shares.
//!
//! Each thread has a share of the whole. A virtual time V runs with the work that is done; a thread that has worked for
//! `w` has to let V catch up by `w / share` before it may work again. So its turns are spread as if it had a slower
//! CPU to itself.
//!
//! ```text
//!     virtual time      0        100       200       300       400           shares: a 50 %, b 25 %, c 25 %
//!                       │         │         │         │         │            all runs take 50
//!     a (50 %)          ├─────────┼─────────┼─────────┼─────────┤            start S, finish F = S + 50 / share
//!     b (25 %)          ├───────────────────┼───────────────────┤
//!     c (25 %)          ├───────────────────┼───────────────────┤
//!                                 ▲ V = 100
//!     eligible: S <= V            waiting: S > V               next: of the eligible ones that with the least F
//!     heap by finish              heap by start
//! ```
//!
//! What holds:
//!
//! 1. The virtual time never falls, and a thread is eligible once its start is reached.
//! 2. A thread that always has work gets its share of what is done, less one run of its own and one of another thread, if
//!    runs are as long as was expected. While all have work and shares add up to the whole, it gets no more than its share
//!    and one run of its own.
//! 3. Nobody saves up. A thread that was idle starts at the virtual time of its return: what it did not use is lost.
//! 4. What nobody claims is divided among those that have work, by their shares.
//! 5. Shares add up to the whole at most; more is an error.
//! 6. Equal finishes: the thread with the higher number is first. So the same calls give the same order everywhere.
//!
//! How long a thread will run is an estimate of the caller's, the *expected run*; it only decides the order. What it
//! then is charged is what it ran. A thread that expects far too much lets all others go first, each with one run; so it may
//! be behind by one run of each, and no more: that does not add up.
//!
//! # Integers
//!
//! The virtual time counts in units of 1 / 720720 of the caller's: work `w` moves it by `720720 w`, and a start by
//! `w` times a factor, `720720 whole / share`, rounded to the nearest integer once, when the thread is added. There is
//! no other rounding. 720720 is the least common multiple of 1 to 16, so usual shares (all divisors of `720720 whole`)
//! have exact factors; any other share is off by less than one part in a million, and the same in each run.
//!
//! The virtual time has 128 bits. With a whole of 2³² it ends after 2⁷⁶ units of work, two million years of
//! nanoseconds. Then it stands still and nothing panics.
//!
//! # Price
//!
//! 140 bytes for a thread, allocated at the beginning. Each operation is O(log n): a thread goes from the waiting
//! heap to the eligible one once for each of its runs at most, so `pick` is so on average over the runs.
//!
//! Paper: Qie, Bavier, Peterson and Karlin, *Scheduling computations on a software-based router* (2001),
//! for the shares of threads; Bennett and Zhang, *Hierarchical packet fair queueing algorithms* (1996), for the
//! algorithm, WF²Q+. They schedule packets, whose length is known; runs are estimated.

use core::error::Error;
use core::fmt;

mod heap;
mod proportional;

pub(crate) use heap::IndexedHeap;
pub use proportional::ProportionalShare;

/// The number of a thread.
///
/// Numbers count from 0. That of a thread that was removed is given again, that of the last one first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Thread(u32);

impl Thread {
    /// The number, below the capacity of whoever gave it: good for an array beside.
    ///
    /// # Example
    ///
    /// ```
    /// let mut shares = flowtable::schedule::share::ProportionalShare::new(8, 100)?;
    /// assert_eq!([shares.add(10)?.index(), shares.add(10)?.index()], [0, 1]);
    /// # Ok::<(), flowtable::schedule::share::ShareError>(())
    /// ```
    #[inline]
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    pub(crate) const fn from_number(number: u32) -> Self {
        Self(number)
    }
}

/// Why something is not done. Nothing has changed then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ShareError {
    /// There would be no threads, or the whole would be nothing.
    Nothing,
    /// There would be 2³² - 1 threads or more.
    TooManyThreads,
    /// The memory cannot be had.
    NoMemory,
    /// A thread without a share would never have a turn.
    NoShare,
    /// The shares would be more than the whole, of which so much is left.
    TooMuch {
        /// What is left.
        left: u32,
    },
    /// There are as many threads as there may be.
    Full,
    /// There is no such thread.
    NoThread,
    /// The thread has work already, or is running.
    NotIdle,
    /// The thread has no work, or is running.
    NotActive,
    /// The thread was not picked.
    NotRunning,
    /// The thread was picked, and not yet charged.
    Running,
}

impl fmt::Display for ShareError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("there must be room for a thread, and something to share"),
            Self::TooManyThreads => f.write_str("so many threads have no numbers"),
            Self::NoMemory => f.write_str("the memory cannot be had"),
            Self::NoShare => f.write_str("a thread without a share would never have a turn"),
            Self::TooMuch { left } => {
                write!(f, "the shares would be more than the whole, of which {left} is left")
            }
            Self::Full => f.write_str("there are as many threads as there may be"),
            Self::NoThread => f.write_str("there is no such thread"),
            Self::NotIdle => f.write_str("the thread has work already"),
            Self::NotActive => f.write_str("the thread has no work that waits"),
            Self::NotRunning => f.write_str("the thread does not run"),
            Self::Running => f.write_str("the thread runs and has not been charged"),
        }
    }
}

impl Error for ShareError {}

/// An invariant that does not hold. It never happens; tests ask after each step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Broken {
    /// A heap is out of order, or does not know where an entry is.
    Heap,
    /// A thread is in a heap where it does not belong, in none, or with the wrong key.
    Thread(Thread),
    /// The shares that are counted are not those of the threads, or more than the whole.
    Shares,
    /// The numbers that are free are not those of no threads.
    Numbers,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Heap => f.write_str("a heap is out of order"),
            Self::Thread(Thread(number)) => write!(f, "thread {number} is in the wrong place"),
            Self::Shares => f.write_str("the sum of the shares is wrong"),
            Self::Numbers => f.write_str("the free numbers are wrong"),
        }
    }
}

impl Error for Broken {}
