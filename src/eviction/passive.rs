//! The passive garbage collection of the TRASH paper, without its pause.

use core::error::Error;
use core::fmt;

use super::{Eviction, Standing, first_of};
use crate::raw::intrusive_list::IntrusiveLists;

/// When a cache collects garbage, and how much: a [`Unicache`](crate::trie::unicache::Unicache) at once, [`Passive`]
/// spread over insertions.
///
/// # Example
///
/// ```
/// use flowtable::eviction::PassiveGc;
///
/// let gc = PassiveGc::new(100_000, 100)?; // the paper's
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
    /// How many leaves are looked at for each one that leaves.
    pub const RING: usize = 4;

    /// What the paper measured with.
    pub const TRASH_2006: Self = Self { threshold: 100_000, goal: 100 };

    /// Never collects.
    pub const NEVER: Self = Self { threshold: usize::MAX, goal: 1 };

    /// Collects before a cache of `threshold` entries takes a new one: up to `goal` entries, and
    /// a quarter of them, rounded up, at most.
    ///
    /// # Errors
    ///
    /// If one of them is 0.
    pub const fn new(threshold: usize, goal: usize) -> Result<Self, GcError> {
        match (threshold, goal) {
            (0, _) => Err(GcError::Threshold),
            (_, 0) => Err(GcError::Goal),
            _ => Ok(Self { threshold, goal }),
        }
    }

    /// Entries from which on a new one starts a collection.
    #[must_use]
    pub const fn threshold(self) -> usize {
        self.threshold
    }

    /// Most entries that leave in one collection.
    #[must_use]
    pub const fn goal(self) -> usize {
        self.goal
    }
}

/// Why parameters of the garbage collection were refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GcError {
    /// A threshold of 0 entries leaves no room for any.
    Threshold,
    /// A goal of 0 entries collects nothing.
    Goal,
}

impl fmt::Display for GcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self {
            Self::Threshold => "threshold",
            Self::Goal => "goal",
        };
        write!(f, "garbage collection {what} of 0 entries: must be at least 1")
    }
}

impl Error for GcError {}

/// Gives up, of the next four entries of a ring, the one that was used longest ago: the passive garbage
/// collection of the TRASH paper. Ranks do not count.
///
/// ```text
///     ring, in order of arrival:   … m  n  o │ a  b  c  d │ e  f …
///                                      rover ┘ └─ four ─┘
///                     one of a b c d leaves, the others are passed over:
///                                  … m  n  o  a  c  d │ e  f …
/// ```
///
/// From [`threshold`](PassiveGc::threshold) entries on, [`goal`](PassiveGc::goal) of them are owed: as
/// many are to leave, though not more than a quarter of all, rounded up. While any are owed, one leaves
/// for [each that comes](Eviction::is_due), so the cache does not grow.
///
/// Each entry that leaves pays for one, whatever its reason: its end, its timeout, or that it was
/// evicted. It made room for another, and this is what the goal is for; so fewer are evicted where
/// many leave anyway. As long as one is owed there are more than `threshold - goal` entries: what was
/// owed in a crowd is no burden later. (Those that were taken out because they must not leave have
/// paid then, or nothing if none was owed, and pay nothing when they go.)
///
/// A hit costs nothing, a victim four looks; all is O(1).
///
/// Paper: Olsson and Nilsson, *TRASH*, section 4. What differs: the paper collects `goal` entries at
/// once, tens of microseconds for 100, as [`Unicache`](crate::trie::unicache::Unicache) does; its rings are leaves in
/// the order of the trie, random ones, and these have come one after the other; and new entries are
/// the last ones that the rover comes to.
///
/// # Example
///
/// ```
/// use flowtable::eviction::{Eviction, Passive, PassiveGc, Standing};
/// use flowtable::Timestamp;
///
/// let mut policy = Passive::new(PassiveGc::new(6, 2)?);
/// (0..6).for_each(|slot| policy.enter(slot, 0));
/// let uses = [30, 10, 20, 40, 0, 0];
/// let look = |slot: u32| Standing {
///     used: true,
///     last_use: Timestamp::from_secs(uses[slot as usize]),
/// };
/// assert!(!policy.is_due(5) && policy.is_due(6));
/// assert_eq!(policy.victim(look), Some(1));
/// policy.leave(1);
/// assert!(policy.is_due(5), "one more is owed");
/// # Ok::<(), flowtable::eviction::GcError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Passive {
    gc: PassiveGc,
    /// One list; the rover stands in front of its first slot.
    ring: IntrusiveLists,
    /// Entries that are to leave before the cache may grow again.
    owed: usize,
}

impl Passive {
    /// A policy without entries.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::eviction::{Eviction, Passive, PassiveGc, Standing};
    ///
    /// let mut policy = Passive::new(PassiveGc::TRASH_2006);
    /// assert_eq!(policy.victim(|_| Standing::default()), None);
    /// ```
    #[must_use]
    pub fn new(gc: PassiveGc) -> Self {
        Self { gc, ring: IntrusiveLists::new(1), owed: 0 }
    }

    /// When it collects garbage, and how much.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::eviction::{Passive, PassiveGc};
    ///
    /// assert_eq!(Passive::new(PassiveGc::TRASH_2006).gc().goal(), 100);
    /// ```
    #[must_use]
    pub const fn gc(&self) -> PassiveGc {
        self.gc
    }

    /// Moves the rover over this slot.
    fn pass_over(&mut self, slot: u32) {
        self.ring.move_to_back(0, slot);
    }
}

impl Eviction for Passive {
    #[inline]
    fn enter(&mut self, slot: u32, _rank: u8) {
        self.ring.push_back(0, slot);
    }

    #[inline]
    fn leave(&mut self, slot: u32) {
        if self.ring.contains(slot) {
            self.ring.remove(slot);
            self.owed = self.owed.saturating_sub(1);
        }
    }

    #[inline]
    fn is_due(&mut self, len: usize) -> bool {
        if self.owed == 0 && len >= self.gc.threshold {
            self.owed = self.gc.goal.min(len.div_ceil(PassiveGc::RING));
        }
        self.owed > 0
    }

    fn victim(&mut self, mut look: impl FnMut(u32) -> Standing) -> Option<u32> {
        let first = self.ring.front(0)?;
        let mut lowest = (look(first).last_use, first);
        self.pass_over(first);
        for _ in 1..PassiveGc::RING {
            // Fewer than four go once around.
            let slot = self.ring.front(0).filter(|&slot| slot != first);
            let Some(slot) = slot else { break };
            let last_use = look(slot).last_use;
            if last_use <= lowest.0 {
                lowest = (last_use, slot);
            }
            self.pass_over(slot);
        }
        Some(lowest.1)
    }

    fn upcoming(&self, slots: &mut [u32]) -> usize {
        first_of(&self.ring, 0, slots)
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
        (0..len).for_each(|slot| passive.enter(slot, 0));
        passive
    }

    /// The victim, with last uses by slot, and which slots were looked at for it.
    fn victim(passive: &mut Passive, uses: &[u64]) -> (Option<u32>, Vec<u32>) {
        let mut looked = Vec::new();
        let victim = passive.victim(|slot| {
            looked.push(slot);
            let last_use = Timestamp::from_secs(uses[slot as usize]);
            Standing { used: false, last_use }
        });
        (victim, looked)
    }

    #[test]
    fn the_lowest_of_four_leaves_the_later_one_of_equals() {
        let uses = [5, 2, 9, 2, 1, 7, 1, 3, 4];
        let mut passive = passive(9, 1, 9);
        assert_eq!(victim(&mut passive, &uses), (Some(3), [0, 1, 2, 3].into()));
        passive.leave(3);
        assert_eq!(victim(&mut passive, &uses), (Some(6), [4, 5, 6, 7].into()));
        passive.leave(6);
        assert_eq!(victim(&mut passive, &uses), (Some(1), [8, 0, 1, 2].into()));
    }

    #[test]
    fn the_rover_goes_on_also_when_the_victim_stays() {
        let mut passive = passive(9, 1, 5);
        assert_eq!(victim(&mut passive, &[1; 5]), (Some(3), [0, 1, 2, 3].into()));
        assert_eq!(victim(&mut passive, &[1; 5]), (Some(2), [4, 0, 1, 2].into()));
    }

    #[test]
    fn fewer_than_four_are_looked_at_once() {
        assert_eq!(victim(&mut passive(9, 1, 3), &[1; 3]), (Some(2), [0, 1, 2].into()));
        assert_eq!(victim(&mut passive(9, 1, 1), &[1]), (Some(0), [0].into()));
        assert_eq!(victim(&mut passive(9, 1, 0), &[]), (None, [].into()));
    }

    #[test]
    fn whatever_leaves_pays() {
        let mut passive = passive(12, 3, 12);
        assert!(!passive.is_due(11) && passive.is_due(12) && passive.is_due(12));
        passive.leave(4);
        passive.leave(4);
        passive.leave(99);
        assert!(passive.is_due(11), "one of three is paid");
        passive.leave(5);
        passive.leave(6);
        assert!(!passive.is_due(9));
    }

    #[test]
    fn a_quarter_of_all_is_owed_at_most() {
        let mut passive = passive(5, usize::MAX, 5);
        assert!(passive.is_due(5));
        passive.leave(0);
        assert!(passive.is_due(4));
        passive.leave(1);
        assert!(!passive.is_due(3));
        assert!(!Passive::new(PassiveGc::NEVER).is_due(1 << 31));
    }
}
