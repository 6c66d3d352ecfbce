//! Passive garbage collection of the TRASH paper, spread over insertions.

use core::error::Error;
use core::fmt;

use super::{EntryStats, Eviction};
use crate::memory::{AllocError, Allocator, Global};
use crate::raw::intrusive_list::IntrusiveLists;

/// Parameters of the passive garbage collection: when it starts, and how many entries it evicts.
///
/// A [`Unicache`](crate::trie::unicache::Unicache) evicts them at once, [`Passive`] spreads the
/// evictions over insertions.
///
/// Paper: Olsson and Nilsson, *TRASH*, section 3.1 for the parameters, section 4.5 and appendix A
/// for the collection.
///
/// # Example
///
/// ```
/// use flowtable::eviction::PassiveGc;
///
/// let gc = PassiveGc::new(100_000, 100)?; // the parameters of the paper
/// assert_eq!(gc, PassiveGc::TRASH_2006);
/// assert_eq!((gc.threshold(), gc.goal()), (100_000, 100));
/// let error = PassiveGc::new(0, 100).unwrap_err();
/// assert_eq!(error.to_string(), "garbage collection threshold of 0 entries: must be at least 1");
/// # Ok::<(), flowtable::eviction::GcError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct PassiveGc {
    threshold: usize,
    goal: usize,
}

impl PassiveGc {
    /// The number of leaves examined for each eviction.
    pub const RING: usize = 4;

    /// The parameters of the paper's measurements.
    pub const TRASH_2006: Self = Self { threshold: 100_000, goal: 100 };

    /// Disables the collection.
    pub const NEVER: Self = Self { threshold: usize::MAX, goal: 1 };

    /// Starts a collection when an entry is inserted into a cache of `threshold` entries, which
    /// evicts up to `goal` entries, but at most a quarter of all, rounded up.
    ///
    /// # Errors
    ///
    /// If `threshold` or `goal` is 0.
    pub const fn new(threshold: usize, goal: usize) -> Result<Self, GcError> {
        match (threshold, goal) {
            (0, _) => Err(GcError::Threshold),
            (_, 0) => Err(GcError::Goal),
            _ => Ok(Self { threshold, goal }),
        }
    }

    /// Returns the number of entries from which on an insertion starts a collection.
    #[must_use]
    pub const fn threshold(self) -> usize {
        self.threshold
    }

    /// Returns the maximum number of evictions of one collection.
    #[must_use]
    pub const fn goal(self) -> usize {
        self.goal
    }
}

/// The error for invalid parameters of the garbage collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GcError {
    /// The threshold is 0, which leaves no capacity for entries.
    Threshold,
    /// The goal is 0, so a collection would evict nothing.
    Goal,
}

impl fmt::Display for GcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parameter = match self {
            Self::Threshold => "threshold",
            Self::Goal => "goal",
        };
        write!(f, "garbage collection {parameter} of 0 entries: must be at least 1")
    }
}

impl Error for GcError {}

/// Evicts the least recently used of the next four entries of a ring: the passive garbage
/// collection of the TRASH paper. Ranks are ignored.
///
/// ```text
///     ring, in insertion order:    … m  n  o │ a  b  c  d │ e  f …
///                                      rover ┘ └─ four ─┘
///               b is evicted, and the rover passes the others:
///                                  … m  n  o  a  c  d │ e  f …
/// ```
///
/// An insertion into a cache of [`threshold`](PassiveGc::threshold) or more entries starts a
/// collection with a debt of [`goal`](PassiveGc::goal) evictions, but at most a quarter of all
/// entries, rounded up. While the debt is positive, each insertion [evicts one
/// entry](Eviction::is_due), so the cache does not grow.
///
/// Each removal reduces the debt by one, whatever its reason: the end of a flow, a timeout or an
/// eviction. All of them free capacity, which is the purpose of the goal; so fewer entries are
/// evicted if many are removed anyway. While the debt is positive there are more than
/// `threshold - goal` entries: a debt does not outlast the load that caused it. (An entry that is
/// removed from the policy because it must not be evicted reduces the debt then, and not again when
/// it is removed from the cache.)
///
/// Cost: a hit costs nothing, a victim examines four entries; all operations are O(1).
///
/// Paper: Olsson and Nilsson, *TRASH*, section 4. Differences: the paper evicts `goal` entries at
/// once, tens of microseconds for 100, as [`Unicache`](crate::trie::unicache::Unicache) does; its
/// rings are leaves in the order of the trie, which is random, and these are in insertion order;
/// and the rover reaches new entries last.
///
/// # Example
///
/// ```
/// use flowtable::eviction::{EntryStats, Eviction, Passive, PassiveGc};
/// use flowtable::Timestamp;
///
/// let mut policy = Passive::new(PassiveGc::new(6, 2)?);
/// (0..6).for_each(|slot| policy.insert(slot, 0));
/// let uses = [30, 10, 20, 40, 0, 0];
/// let stats = |slot: u32| EntryStats {
///     used: true,
///     last_use: Timestamp::from_secs(uses[slot as usize]),
/// };
/// assert!(!policy.is_due(5) && policy.is_due(6));
/// assert_eq!(policy.victim(stats), Some(1));
/// policy.remove(1);
/// assert!(policy.is_due(5), "the debt is one more eviction");
/// # Ok::<(), flowtable::eviction::GcError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Passive<A: Allocator + Clone = Global> {
    gc: PassiveGc,
    /// One list, which begins at the rover.
    ring: IntrusiveLists<A>,
    /// Removals required before the cache may grow again.
    debt: usize,
}

impl Passive {
    /// Creates a policy without entries.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::eviction::{EntryStats, Eviction, Passive, PassiveGc};
    ///
    /// let mut policy = Passive::new(PassiveGc::TRASH_2006);
    /// assert_eq!(policy.victim(|_| EntryStats::default()), None);
    /// ```
    #[must_use]
    pub fn new(gc: PassiveGc) -> Self {
        Self { gc, ring: IntrusiveLists::new(1), debt: 0 }
    }
}

impl<A: Allocator + Clone> Passive<A> {
    /// Creates a policy without entries, whose memory is from `memory`.
    ///
    /// # Errors
    ///
    /// If there is no memory for the head of a list: 8 bytes.
    ///
    /// # Example
    ///
    /// ```
    /// use bumpalo::Bump;
    /// use flowtable::eviction::{Passive, PassiveGc};
    ///
    /// let arena = Bump::new();
    /// arena.set_allocation_limit(Some(0));
    /// assert!(Passive::try_new_in(PassiveGc::TRASH_2006, &arena).is_err());
    /// ```
    pub fn try_new_in(gc: PassiveGc, memory: A) -> Result<Self, AllocError> {
        Ok(Self { gc, ring: IntrusiveLists::try_new_in(1, memory)?, debt: 0 })
    }
}

impl<A: Allocator + Clone> Eviction for Passive<A> {
    fn try_reserve(&mut self, slot: u32) -> Result<(), AllocError> {
        self.ring.try_reserve(0, slot.saturating_add(1))
    }

    #[inline]
    fn insert(&mut self, slot: u32, _rank: u8) {
        self.ring.push_back(0, slot);
    }

    #[inline]
    fn remove(&mut self, slot: u32) {
        if self.ring.contains(slot) {
            self.ring.remove(slot);
            self.debt = self.debt.saturating_sub(1);
        }
    }

    #[inline]
    fn is_due(&mut self, len: usize) -> bool {
        if self.debt == 0 && len >= self.gc.threshold {
            self.debt = self.gc.goal.min(len.div_ceil(PassiveGc::RING));
        }
        self.debt > 0
    }

    fn victim(&mut self, mut stats: impl FnMut(u32) -> EntryStats) -> Option<u32> {
        let first = self.ring.front(0)?;
        let mut oldest = (stats(first).last_use, first);
        self.ring.move_to_back(0, first);
        for _ in 1..PassiveGc::RING {
            // A ring of fewer than four is examined once.
            let slot = self.ring.front(0).filter(|&slot| slot != first);
            let Some(slot) = slot else { break };
            let last_use = stats(slot).last_use;
            if last_use <= oldest.0 {
                oldest = (last_use, slot);
            }
            self.ring.move_to_back(0, slot);
        }
        Some(oldest.1)
    }

    fn upcoming(&self, most: usize, mut each: impl FnMut(usize, u32)) {
        (0..most).zip(self.ring.iter(0)).for_each(|(number, slot)| each(number, slot));
    }

    fn allocation_size(&self) -> usize {
        self.ring.allocation_size()
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::timestamp::Timestamp;

    fn passive(threshold: usize, goal: usize, len: u32) -> Passive {
        let mut passive = Passive::new(PassiveGc::new(threshold, goal).unwrap());
        (0..len).for_each(|slot| passive.insert(slot, 0));
        passive
    }

    /// Returns the victim, given the last uses by slot, and the slots examined for it.
    fn victim(passive: &mut Passive, uses: &[u64]) -> (Option<u32>, Vec<u32>) {
        let mut examined = Vec::new();
        let victim = passive.victim(|slot| {
            examined.push(slot);
            let last_use = Timestamp::from_secs(uses[slot as usize]);
            EntryStats { used: false, last_use }
        });
        (victim, examined)
    }

    #[test]
    fn the_least_recently_used_of_four_is_evicted_and_the_last_of_equals() {
        let uses = [5, 2, 9, 2, 1, 7, 1, 3, 4];
        let mut passive = passive(9, 1, 9);
        assert_eq!(victim(&mut passive, &uses), (Some(3), [0, 1, 2, 3].into()));
        passive.remove(3);
        assert_eq!(victim(&mut passive, &uses), (Some(6), [4, 5, 6, 7].into()));
        passive.remove(6);
        assert_eq!(victim(&mut passive, &uses), (Some(1), [8, 0, 1, 2].into()));
    }

    #[test]
    fn the_rover_advances_even_if_the_victim_is_not_removed() {
        let mut passive = passive(9, 1, 5);
        assert_eq!(victim(&mut passive, &[1; 5]), (Some(3), [0, 1, 2, 3].into()));
        assert_eq!(victim(&mut passive, &[1; 5]), (Some(2), [4, 0, 1, 2].into()));
    }

    #[test]
    fn fewer_than_four_are_examined_once() {
        assert_eq!(victim(&mut passive(9, 1, 3), &[1; 3]), (Some(2), [0, 1, 2].into()));
        assert_eq!(victim(&mut passive(9, 1, 1), &[1]), (Some(0), [0].into()));
        assert_eq!(victim(&mut passive(9, 1, 0), &[]), (None, [].into()));
    }

    #[test]
    fn any_removal_reduces_the_debt() {
        let mut passive = passive(12, 3, 12);
        assert!(!passive.is_due(11) && passive.is_due(12) && passive.is_due(12));
        passive.remove(4);
        passive.remove(4);
        passive.remove(99);
        assert!(passive.is_due(11), "one of three evictions is done");
        passive.remove(5);
        passive.remove(6);
        assert!(!passive.is_due(9));
    }

    #[test]
    fn the_debt_is_at_most_a_quarter_of_all() {
        let mut passive = passive(5, usize::MAX, 5);
        assert!(passive.is_due(5));
        passive.remove(0);
        assert!(passive.is_due(4));
        passive.remove(1);
        assert!(!passive.is_due(3));
        assert!(!Passive::new(PassiveGc::NEVER).is_due(1 << 31));
    }
}
