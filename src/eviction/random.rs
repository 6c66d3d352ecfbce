//! Random eviction.

use super::{EntryStats, Eviction, OwnPolicy};
use crate::memory::{AllocError, Allocator, Global};
use crate::raw::chunked_vec::{ChunkedVec, DEFAULT_BITS};
use crate::raw::slab::OptIndex;
use crate::raw::splitmix::{GOLDEN_GAMMA, mix};

/// Evicts a random entry, each with equal probability. Use and ranks are ignored.
///
/// ```text
///     position               0   1   2   3
///     slot                   4   0   5   2          a position is drawn: 1
///     after the eviction     4   2   5              the last slot fills the position
/// ```
///
/// It is the baseline for the other policies. Without the seed an attacker cannot force the
/// eviction of a given entry. A hit costs nothing, a victim one random number and no statistics;
/// insertion and removal are O(1).
///
/// The generator is SplitMix64: Steele, Lea and Flood, *Fast Splittable Pseudorandom Number
/// Generators*, 2014. It is not cryptographic: enough victims reveal its seed.
///
/// # Example
///
/// ```
/// use flowtable::eviction::{EntryStats, Eviction, Random};
///
/// let mut policy = Random::with_seed(1);
/// (0..100).for_each(|slot| policy.insert(slot, 0));
/// let victim = policy.victim(|_| EntryStats::default()).unwrap();
/// policy.remove(victim);
/// assert!((0..1000).all(|_| policy.victim(|_| EntryStats::default()) != Some(victim)));
/// ```
#[derive(Clone, Debug)]
pub struct Random<A: Allocator + Clone = Global> {
    /// Indexed by position and by slot. Covers the greatest slot, so it has a position for each.
    cells: ChunkedVec<Cell, DEFAULT_BITS, A>,
    /// The number of slots, which are at the positions `0..len`.
    len: u32,
    state: u64,
}

/// Elements of two arrays with equal index: one by position, one by slot.
#[derive(Clone, Copy, Debug)]
struct Cell {
    /// The slot at this position. Meaningless from `len` on.
    slot: u32,
    /// The position of this slot.
    position: OptIndex,
}

impl Cell {
    const EMPTY: Self = Self { slot: 0, position: OptIndex::NONE };
}

impl Random {
    /// Bytes allocated for a slot, at most.
    pub(super) const BYTES_PER_SLOT: usize = <ChunkedVec<Cell>>::BYTES_PER_ELEMENT;

    /// Creates a policy without entries. Its victims are determined by the seed.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::eviction::{EntryStats, Eviction, Random};
    ///
    /// assert_eq!(Random::with_seed(1).victim(|_| EntryStats::default()), None);
    /// ```
    #[must_use]
    pub const fn with_seed(seed: u64) -> Self {
        Self { cells: ChunkedVec::new(), len: 0, state: seed }
    }
}

impl<A: Allocator + Clone> Random<A> {
    /// Creates a policy without entries, whose memory will be from `memory`. Its victims are
    /// determined by the seed.
    ///
    /// # Example
    ///
    /// ```
    /// use bumpalo::Bump;
    /// use flowtable::eviction::{Eviction, Random};
    ///
    /// let arena = Bump::new();
    /// arena.set_allocation_limit(Some(0));
    /// assert!(Random::with_seed_in(1, &arena).try_reserve(0).is_err());
    /// ```
    #[must_use]
    pub fn with_seed_in(seed: u64, memory: A) -> Self {
        Self { cells: ChunkedVec::new_in(usize::MAX, memory), len: 0, state: seed }
    }

    /// Draws the next number of SplitMix64.
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN_GAMMA);
        mix(self.state)
    }

    fn position(&self, slot: u32) -> Option<u32> {
        self.cells.get(slot)?.position.get()
    }
}

impl<A: Allocator + Clone> Eviction for Random<A> {
    fn try_reserve(&mut self, slot: u32) -> Result<(), AllocError> {
        self.cells.try_reserve(slot)
    }

    fn insert(&mut self, slot: u32, _rank: u8) {
        assert!(slot < 1 << 31, "slot {slot}: must be less than 2^31");
        self.cells.cover(slot, Cell::EMPTY);
        if self.position(slot).is_none() {
            self.cells[self.len].slot = slot;
            self.cells[slot].position = OptIndex::some(self.len);
            self.len += 1;
        }
    }

    fn remove(&mut self, slot: u32) {
        let Some(position) = self.position(slot) else { return };
        self.len -= 1;
        let last = self.cells[self.len].slot;
        self.cells[position].slot = last;
        self.cells[last].position = OptIndex::some(position);
        // Must follow the statement above, as `slot` may be the last one itself.
        self.cells[slot].position = OptIndex::NONE;
    }

    fn victim(&mut self, _stats: impl FnMut(u32) -> EntryStats) -> Option<u32> {
        self.candidate()
    }

    fn allocation_size(&self) -> usize {
        self.cells.allocation_size()
    }

    #[inline]
    fn own(&mut self) -> Option<&mut impl OwnPolicy> {
        Some(self)
    }
}

impl<A: Allocator + Clone> OwnPolicy for Random<A> {
    #[inline]
    fn candidate(&mut self) -> Option<u32> {
        if self.len == 0 {
            return None;
        }
        // The upper half of the product is below `len`. Its bias is at most 2^-32.
        let position = (u128::from(self.next()) * u128::from(self.len)) >> 64;
        Some(self.cells[position as u32].slot)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn the_generator_is_splitmix64() {
        let mut random = Random::with_seed(1_234_567);
        let numbers = [(); 3].map(|()| random.next());
        let published =
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!(numbers, published);
    }

    #[test]
    #[cfg_attr(miri, ignore = "slow, and without unsafe code")]
    fn all_entries_are_equally_likely() {
        let mut random = Random::with_seed(1);
        (0..1500).filter(|slot| slot % 3 > 0).for_each(|slot| random.insert(slot, 0));
        (500..1500).for_each(|slot| random.remove(slot));
        let mut drawn = vec![0; 500];
        for _ in 0..333 * 1000 {
            let victim = random.victim(|_| unreachable!("it reads no statistics"));
            drawn[victim.unwrap() as usize] += 1;
        }
        for (slot, drawn) in drawn.into_iter().enumerate() {
            // A thousand, plus or minus seven standard deviations.
            let expected = if slot % 3 > 0 { 780..1220 } else { 0..1 };
            assert!(expected.contains(&drawn), "{slot} was drawn {drawn} times");
        }
    }

    #[test]
    fn a_slot_is_inserted_once() {
        let mut random = Random::with_seed(2);
        [3, 3].into_iter().for_each(|slot| random.insert(slot, 0));
        [7, 3, 3].into_iter().for_each(|slot| random.remove(slot));
        assert_eq!(random.victim(|_| EntryStats::default()), None);
    }
}
