//! Eviction policies: which entry a full cache evicts.
//!
//! ```text
//!              insert, touch, rerank, remove
//!     cache  ─────────────────────────────────▸  policy      stores slots and ranks only
//!            ───────────── victim ────────────▸
//!            ◂──────────── stats(slot) ────────              was it used? when was the last use?
//!            ◂──────────── slot ───────────────
//! ```
//!
//! A policy has no access to keys and values. The cache identifies its entries by small indices,
//! the slots, and reports insertions, uses and removals; the policy selects a
//! [`victim`](Eviction::victim). It reads the [statistics](EntryStats) of entries at that time
//! only: so a hit writes nothing for most policies, as the cache records the time of last use
//! anyway.
//!
//! | policy | evicts | cost of a hit | cost of a victim |
//! |---|---|---|---|
//! | [`ByClass`] | the lowest rank, by CLOCK within the rank | none | examines up to 16 entries |
//! | [`SecondChance`] | an entry not used recently, by CLOCK | none | examines up to 8 entries |
//! | [`Lru`] | the least recently used entry, exactly | writes 4 links | none |
//! | [`Random`] | a random entry | none | a random number |
//! | [`Passive`] | the least recently used of the next four entries | none | examines 4 entries |
//!
//! Guarantees of each policy: all operations are O(1), amortised over dense slots. Memory is 8
//! bytes for each slot up to the greatest one (half a byte for [`ByClass`], a bit for
//! [`SecondChance`]), allocated for 1024 or 8192 slots at a time and freed with the policy; growth
//! moves nothing. Operations on slots that are not in the policy do nothing.
//!
//! Papers: Olsson and Nilsson, *TRASH* (2006), section 4, for [`Passive`]; Corbató, *A paging
//! experiment with the Multics system* (1968), for [`SecondChance`].

use crate::memory::AllocError;
use crate::timestamp::Timestamp;

mod by_class;
mod clocks;
mod lru;
mod own;
mod passive;
mod random;
mod second_chance;

pub use by_class::ByClass;
pub(crate) use by_class::{has_few_newcomers, lowest_rank};
pub use lru::Lru;
pub(crate) use own::OwnPolicy;
pub use passive::{GcError, Passive, PassiveGc};
pub use random::Random;
pub use second_chance::SecondChance;

/// Bytes that a policy of this crate allocates for a slot, at most.
pub(crate) const BYTES_PER_SLOT: usize =
    max(max(Lru::BYTES_PER_SLOT, Random::BYTES_PER_SLOT), ByClass::BYTES_PER_SLOT);

const fn max(a: usize, b: usize) -> usize {
    if a > b { a } else { b }
}

/// Usage statistics of an entry, which a policy reads to select a victim.
///
/// # Example
///
/// ```
/// use flowtable::eviction::EntryStats;
/// use flowtable::Timestamp;
///
/// let idle = EntryStats { used: false, last_use: Timestamp::from_secs(3) };
/// assert!(idle.last_use < Timestamp::from_secs(4));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EntryStats {
    /// Whether the entry was used since it was examined last, or since its insertion. CLOCK's
    /// reference bit.
    pub used: bool,
    /// The time of the last use.
    pub last_use: Timestamp,
}

/// An eviction policy over slots: small indices by which a cache identifies its entries.
///
/// The cache reports insertions, uses and removals. It [removes](Self::remove) an entry that must
/// not be evicted from the policy, and inserts it again when it may be.
///
/// # Example
///
/// A custom policy: last in, first out.
///
/// ```
/// use flowtable::eviction::{EntryStats, Eviction};
///
/// #[derive(Default)]
/// struct NewestFirst(Vec<u32>);
///
/// impl Eviction for NewestFirst {
///     fn insert(&mut self, slot: u32, _rank: u8) {
///         self.0.push(slot);
///     }
///     fn remove(&mut self, slot: u32) {
///         self.0.retain(|&other| other != slot);
///     }
///     fn victim(&mut self, _stats: impl FnMut(u32) -> EntryStats) -> Option<u32> {
///         self.0.last().copied()
///     }
///     fn allocation_size(&self) -> usize {
///         self.0.capacity() * size_of::<u32>()
///     }
/// }
///
/// let mut policy = NewestFirst::default();
/// [7, 8].into_iter().for_each(|slot| policy.insert(slot, 0));
/// assert_eq!(policy.victim(|_| EntryStats::default()), Some(8));
/// policy.replace(8, 0);
/// policy.remove(8);
/// assert_eq!(policy.victim(|_| EntryStats::default()), Some(7));
/// ```
pub trait Eviction {
    /// Allocates memory for the entry at `slot`: then to [insert](Self::insert) it, and to change
    /// its rank, does not allocate. The cache calls it before it inserts an entry at a slot for the
    /// first time, and refuses the entry if there is no memory.
    ///
    /// # Errors
    ///
    /// If memory cannot be allocated. Some may be.
    #[inline]
    fn try_reserve(&mut self, slot: u32) -> Result<(), AllocError> {
        _ = slot;
        Ok(())
    }

    /// Inserts the entry at `slot`, which is not in the policy. Rank 0 is evicted first.
    ///
    /// # Panics
    ///
    /// The policies of this crate panic if the slot is 2^30 - 1 or more.
    fn insert(&mut self, slot: u32, rank: u8);

    /// Records a use of the entry at `slot`.
    #[inline]
    fn touch(&mut self, slot: u32) {
        _ = slot;
    }

    /// Changes the rank of the entry at `slot`.
    #[inline]
    fn rerank(&mut self, slot: u32, rank: u8) {
        _ = (slot, rank);
    }

    /// Removes the entry at `slot`, for any reason, including its eviction.
    fn remove(&mut self, slot: u32);

    /// Removes the entry at `slot`, which is evicted, and inserts a new entry there.
    ///
    /// # Panics
    ///
    /// As [`insert`](Self::insert).
    #[inline]
    fn replace(&mut self, slot: u32, rank: u8) {
        self.remove(slot);
        self.insert(slot, rank);
    }

    /// Whether the next insertion should evict an entry although the cache is not full.
    ///
    /// The cache calls it once before each insertion, with its number of entries. If it returns
    /// true, the cache evicts a victim; without a victim, it inserts nevertheless.
    #[inline]
    fn is_due(&mut self, len: usize) -> bool {
        _ = len;
        false
    }

    /// Selects the entry to evict next, or `None` if the policy has no entries.
    ///
    /// The entry stays in the policy until it is [removed](Self::remove): until then the next
    /// victim may be the same one.
    ///
    /// Calls `stats` for a bounded number of slots, all of them in the policy. `stats` clears the
    /// mark of use that it returns: the next call for a slot reports whether it was used since.
    fn victim(&mut self, stats: impl FnMut(u32) -> EntryStats) -> Option<u32>;

    /// Calls `each` with the numbers from 0 on, below `most`, of the slots that the next calls of
    /// [`victim`](Self::victim) will examine, and with these slots.
    ///
    /// The cache prefetches the entries of these slots. The prediction may be incomplete.
    #[inline]
    fn upcoming(&self, most: usize, each: impl FnMut(usize, u32)) {
        _ = (most, each);
    }

    /// Returns the bytes allocated. O(1).
    fn allocation_size(&self) -> usize;

    /// Returns the policy if it is one of this crate, whose victims need no checks.
    #[doc(hidden)]
    #[inline]
    fn own(&mut self) -> Option<&mut impl own::OwnPolicy> {
        None::<&mut own::Foreign>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_allocate_no_more_than_their_bytes_for_each_slot() {
        fn check(mut policy: impl Eviction, bytes: usize) {
            for slots in [1024, 2048, 5 * 1024, 65 * 1024] {
                (0..slots).for_each(|slot| policy.insert(slot, (slot % 5) as u8));
                let allocated = policy.allocation_size();
                assert!(allocated > 0 && allocated <= bytes * slots as usize, "{slots} slots");
                (0..slots).for_each(|slot| policy.remove(slot));
            }
        }
        check(Lru::new(), Lru::BYTES_PER_SLOT);
        check(Random::with_seed(1), Random::BYTES_PER_SLOT);
        check(ByClass::new(), ByClass::BYTES_PER_SLOT);
        check(SecondChance::new(), ByClass::BYTES_PER_SLOT);
        assert_eq!(BYTES_PER_SLOT, Lru::BYTES_PER_SLOT.max(Random::BYTES_PER_SLOT));
    }
}
