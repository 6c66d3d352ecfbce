//! CLOCK (second-chance) eviction.

use super::clocks::Clocks;
use super::{EntryStats, Eviction, OwnPolicy, own};
use crate::memory::{AllocError, Allocator, Global};

/// Evicts the next entry under the clock hand that was not used since the hand passed it last: the
/// CLOCK algorithm of page replacement, also called second chance. Ranks are ignored.
///
/// ```text
///     hand ▸ a*  b  c*  d*          * used
///            │   └ is evicted
///            └ loses its mark
/// ```
///
/// It is nearly as good as [`Lru`](super::Lru), and a hit costs nothing: the cache stores the mark.
/// If 8 entries in a row were used, the least recently used of them is evicted, so a victim is
/// found in O(1) even if all entries were used. Insertion and removal are O(1). The hand moves over
/// the slots in their order.
///
/// Paper: Corbató, *A Paging Experiment with the Multics System*, 1968. Difference: the bound of 8.
///
/// # Example
///
/// ```
/// use flowtable::eviction::{EntryStats, Eviction, SecondChance};
///
/// let mut clock = SecondChance::new();
/// [0, 1, 2].into_iter().for_each(|slot| clock.insert(slot, 0));
/// let stats = |slot| EntryStats { used: slot == 0, ..EntryStats::default() };
/// assert_eq!(clock.victim(stats), Some(1));
/// ```
#[doc(alias = "CLOCK")]
#[derive(Clone, Debug)]
pub struct SecondChance<A: Allocator + Clone = Global> {
    clock: Clocks<1, A>,
}

impl SecondChance {
    /// Creates a policy without entries.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::eviction::{EntryStats, Eviction, SecondChance};
    ///
    /// assert_eq!(SecondChance::new().victim(|_| EntryStats::default()), None);
    /// ```
    #[must_use]
    pub const fn new() -> Self {
        Self { clock: Clocks::new() }
    }
}

impl<A: Allocator + Clone> SecondChance<A> {
    /// Creates a policy without entries, whose memory will be from `memory`.
    ///
    /// # Example
    ///
    /// ```
    /// use bumpalo::Bump;
    /// use flowtable::eviction::{Eviction, SecondChance};
    ///
    /// let arena = Bump::new();
    /// arena.set_allocation_limit(Some(0));
    /// assert!(SecondChance::new_in(&arena).try_reserve(0).is_err());
    /// ```
    #[must_use]
    pub fn new_in(memory: A) -> Self {
        Self { clock: Clocks::new_in(memory) }
    }
}

impl Default for SecondChance {
    fn default() -> Self {
        Self::new()
    }
}

impl<A: Allocator + Clone> Eviction for SecondChance<A> {
    fn try_reserve(&mut self, slot: u32) -> Result<(), AllocError> {
        self.clock.try_reserve(slot)
    }

    #[inline]
    fn insert(&mut self, slot: u32, _rank: u8) {
        self.clock.insert(slot, 0);
    }

    #[inline]
    fn remove(&mut self, slot: u32) {
        self.clock.remove(slot);
    }

    #[inline]
    fn replace(&mut self, slot: u32, rank: u8) {
        // Usually the entry that is replaced is still here.
        self.insert(slot, rank);
    }

    fn victim(&mut self, stats: impl FnMut(u32) -> EntryStats) -> Option<u32> {
        own::victim(self, stats)
    }

    #[inline]
    fn upcoming(&self, most: usize, each: impl FnMut(usize, u32)) {
        self.clock.upcoming(0, most, each);
    }

    fn allocation_size(&self) -> usize {
        self.clock.allocation_size()
    }

    #[inline]
    fn own(&mut self) -> Option<&mut impl OwnPolicy> {
        Some(self)
    }
}

impl<A: Allocator + Clone> OwnPolicy for SecondChance<A> {
    const READS_STATS: bool = true;

    #[inline]
    fn candidate(&mut self) -> Option<u32> {
        self.clock.advance(0)
    }

    #[inline]
    fn victim_after(
        &mut self,
        first: (u32, EntryStats),
        stats: impl FnMut(u32) -> EntryStats,
    ) -> Option<u32> {
        Some(self.clock.second_chance(first, 0, stats))
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::timestamp::Timestamp;

    fn clock(len: u32) -> SecondChance {
        let mut clock = SecondChance::new();
        (0..len).for_each(|slot| clock.insert(slot, slot as u8));
        clock
    }

    /// Returns the victim if the slots in `used` were used, and the slots examined for it.
    fn victim(clock: &mut SecondChance, used: &[u32]) -> (Option<u32>, Vec<u32>) {
        let (mut used, mut examined) = (used.to_vec(), Vec::new());
        let victim = clock.victim(|slot| {
            examined.push(slot);
            let mark = used.iter().position(|&other| other == slot);
            let last_use = Timestamp::from_secs(u64::from(slot % 5 + 1));
            EntryStats { used: mark.map(|mark| used.swap_remove(mark)).is_some(), last_use }
        });
        (victim, examined)
    }

    #[test]
    fn used_entries_get_a_second_chance() {
        let mut clock = clock(4);
        assert_eq!(victim(&mut clock, &[0, 2]), (Some(1), [0, 1].into()));
        clock.remove(1);
        assert_eq!(victim(&mut clock, &[2]), (Some(3), [2, 3].into()));
        clock.remove(3);
        assert_eq!(victim(&mut clock, &[]), (Some(0), [0].into()));
    }

    #[test]
    fn of_eight_used_entries_the_least_recently_used_is_evicted() {
        let (victim, examined) = victim(&mut clock(20), &(0..20).collect::<Vec<u32>>());
        assert_eq!((victim, examined.len()), (Some(0), 8), "0 and 5 were used at the same time");
    }

    #[test]
    fn in_a_short_ring_marks_are_cleared_by_the_second_pass() {
        assert_eq!(victim(&mut clock(3), &[0, 1, 2]), (Some(0), [0, 1, 2, 0].into()));
        assert_eq!(victim(&mut clock(1), &[0]), (Some(0), [0, 0].into()));
        assert_eq!(victim(&mut clock(0), &[]), (None, [].into()));
    }
}
