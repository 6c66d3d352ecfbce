//! LRU eviction.

use super::{EntryStats, Eviction, OwnPolicy};
use crate::memory::{AllocError, Allocator, Global};
use crate::raw::intrusive_list::IntrusiveLists;

/// Evicts the least recently used entry. Ranks are ignored.
///
/// ```text
///     front  a  b  c  d          a is evicted next
///     front  a  c  d  b          after a use of b
/// ```
///
/// It is exact and does not read statistics, but each hit writes: the links of the entry, of its
/// neighbours and of the head, up to three cache misses with many entries. [`SecondChance`] is
/// nearly as good without these writes. All operations are O(1).
///
/// [`SecondChance`]: super::SecondChance
///
/// # Example
///
/// ```
/// use flowtable::eviction::{EntryStats, Eviction, Lru};
///
/// let mut lru = Lru::new();
/// [0, 1].into_iter().for_each(|slot| lru.insert(slot, 0));
/// lru.touch(0);
/// assert_eq!(lru.victim(|_| EntryStats::default()), Some(1));
/// ```
#[derive(Clone, Debug)]
pub struct Lru<A: Allocator + Clone = Global> {
    /// One list, the least recently used slot first.
    order: IntrusiveLists<A>,
}

impl Lru {
    /// Bytes allocated for a slot, at most.
    pub(super) const BYTES_PER_SLOT: usize = IntrusiveLists::<Global>::BYTES_PER_SLOT;

    /// Creates a policy without entries.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::eviction::{EntryStats, Eviction, Lru};
    ///
    /// assert_eq!(Lru::new().victim(|_| EntryStats::default()), None);
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self { order: IntrusiveLists::new(1) }
    }
}

impl<A: Allocator + Clone> Lru<A> {
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
    /// use flowtable::eviction::Lru;
    ///
    /// let arena = Bump::new();
    /// arena.set_allocation_limit(Some(0));
    /// assert!(Lru::try_new_in(&arena).is_err());
    /// ```
    pub fn try_new_in(memory: A) -> Result<Self, AllocError> {
        Ok(Self { order: IntrusiveLists::try_new_in(1, memory)? })
    }
}

impl<A: Allocator + Clone> Lru<A> {
    /// Returns the least recently used slot.
    pub(crate) fn oldest(&self) -> Option<u32> {
        self.order.front(0)
    }

    /// Iterates over the slots, the most recently used one first.
    pub(crate) fn by_recency(&self) -> impl Iterator<Item = u32> {
        self.order.iter_back(0)
    }
}

impl Default for Lru {
    fn default() -> Self {
        Self::new()
    }
}

impl<A: Allocator + Clone> Eviction for Lru<A> {
    fn try_reserve(&mut self, slot: u32) -> Result<(), AllocError> {
        self.order.try_reserve(0, slot.saturating_add(1))
    }

    #[inline]
    fn insert(&mut self, slot: u32, _rank: u8) {
        self.order.push_back(0, slot);
    }

    #[inline]
    fn touch(&mut self, slot: u32) {
        self.order.move_to_back(0, slot);
    }

    #[inline]
    fn remove(&mut self, slot: u32) {
        self.order.remove(slot);
    }

    #[inline]
    fn victim(&mut self, _stats: impl FnMut(u32) -> EntryStats) -> Option<u32> {
        self.order.front(0)
    }

    #[inline]
    fn upcoming(&self, most: usize, mut each: impl FnMut(usize, u32)) {
        let next = self.order.iter(0).take(most.min(PREDICTED));
        next.enumerate().for_each(|(number, slot)| each(number, slot));
    }

    fn allocation_size(&self) -> usize {
        self.order.allocation_size()
    }

    #[inline]
    fn own(&mut self) -> Option<&mut impl OwnPolicy> {
        Some(self)
    }
}

impl<A: Allocator + Clone> OwnPolicy for Lru<A> {
    #[inline]
    fn replace_from(&mut self, slot: u32, _before: u8, _rank: u8) {
        self.order.move_to_back(0, slot);
    }

    #[inline]
    fn candidate(&mut self) -> Option<u32> {
        self.order.front(0)
    }
}

/// The most entries that are predicted. Each link of a list is a dependent load, so a long
/// prediction costs more than it gains.
const PREDICTED: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_entry_is_evicted() {
        let mut lru = Lru::new();
        (0..4).for_each(|slot| lru.insert(slot, 0));
        lru.remove(2);
        [0, 2, 5, 0].into_iter().for_each(|slot| lru.touch(slot));
        let order = [(); 4].map(|()| {
            let victim = lru.victim(|_| unreachable!("LRU reads no statistics"));
            victim.inspect(|&slot| lru.remove(slot))
        });
        assert_eq!(order, [Some(1), Some(3), Some(0), None]);
    }
}
