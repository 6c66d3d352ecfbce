//! The least recently used one.

use super::{Eviction, Standing, first_of};
use crate::raw::intrusive_list::IntrusiveLists;

/// Gives up the entry that was used longest ago. Ranks do not count.
///
/// ```text
///     front  a  b  c  d          a leaves next
///     front  a  c  d  b          after a touch of b
/// ```
///
/// It is exact and needs no looks, but writes at each hit: the links of the entry, of its neighbours
/// and of the head, up to three cache misses where there are many entries. [`SecondChance`] is nearly as good
/// without. All is O(1).
///
/// [`SecondChance`]: super::SecondChance
///
/// # Example
///
/// ```
/// use flowtable::eviction::{Eviction, Lru, Standing};
///
/// let mut lru = Lru::new();
/// [0, 1].into_iter().for_each(|slot| lru.enter(slot, 0));
/// lru.touch(0);
/// assert_eq!(lru.victim(|_| Standing::default()), Some(1));
/// ```
#[derive(Clone, Debug)]
pub struct Lru {
    /// One list, in the order of last use.
    order: IntrusiveLists,
}

impl Lru {
    /// A policy without entries.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::eviction::{Eviction, Lru, Standing};
    ///
    /// assert_eq!(Lru::new().victim(|_| Standing::default()), None);
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self { order: IntrusiveLists::new(1) }
    }
}

impl Default for Lru {
    fn default() -> Self {
        Self::new()
    }
}

impl Eviction for Lru {
    #[inline]
    fn enter(&mut self, slot: u32, _rank: u8) {
        self.order.push_back(0, slot);
    }

    #[inline]
    fn touch(&mut self, slot: u32) {
        self.order.move_to_back(0, slot);
    }

    #[inline]
    fn leave(&mut self, slot: u32) {
        self.order.remove(slot);
    }

    #[inline]
    fn victim(&mut self, _look: impl FnMut(u32) -> Standing) -> Option<u32> {
        self.order.front(0)
    }

    fn upcoming(&self, slots: &mut [u32]) -> usize {
        // A list has to be followed, which costs more than it gains where few are needed.
        let few = slots.len().min(4);
        first_of(&self.order, 0, &mut slots[..few])
    }

    fn allocation_size(&self) -> usize {
        self.order.allocation_size()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_longest_ago_leaves() {
        let mut lru = Lru::new();
        (0..4).for_each(|slot| lru.enter(slot, 0));
        lru.leave(2);
        [0, 2, 5, 0].into_iter().for_each(|slot| lru.touch(slot));
        let order = [(); 4].map(|()| {
            let victim = lru.victim(|_| unreachable!("it needs no looks"));
            victim.inspect(|&slot| lru.leave(slot))
        });
        assert_eq!(order, [Some(1), Some(3), Some(0), None]);
    }
}
