//! CLOCK eviction by rank.

use super::clocks::Clocks;
use super::{EntryStats, Eviction, OwnPolicy, own};
use crate::memory::{AllocError, Allocator, Global};

/// The number of distinct ranks.
const RANKS: usize = 4;

/// The highest rank, which is evicted last.
const TOP: usize = RANKS - 1;

/// The reciprocal of the protected share of newcomers. While the middle ranks have less than one
/// entry in 8, they are evicted after the highest rank, because they have had no time to rise.
const NEWCOMERS: usize = 8;

/// Evicts from the lowest rank that has entries, by CLOCK within the rank: see [`SecondChance`].
///
/// ```text
///     rank 0                            empty
///     rank 1   hand ▸ a*  b  c          b is evicted; a, which was used, loses its mark
///     rank 2   hand ▸ d
///     rank 3   hand ▸ e  f*  g          e is evicted instead if a to d are less than 1/8 of all
/// ```
///
/// In a flow cache, ranks are the [`Class`](crate::flow_cache::Class)es of flows: a flood of
/// half-open connections evicts its own flows and not the established ones, in whatever order they
/// were inserted or used.
///
/// There is one exception, or a cache full of established flows would be closed to all others: each
/// new flow would be evicted for the next one before it could rise. So while less than an eighth of
/// all entries are of ranks 1 and 2, and none is of rank 0, the victim is an entry of rank 3 that
/// was not used since it was examined last; if there is none among eight, one of the newcomers. A
/// flood evicts no established flows while they are less than seven eighths of all. (There is no
/// such exception between ranks 1 and 2: a full cache under a flood of datagrams evicts half-open
/// connections first.) Entries that are not in the policy, such as pinned flows, do not count.
///
/// Ranks above 3 count as 3.
///
/// The hand of a rank moves over the slots in their order.
///
/// Cost: a hit costs nothing; a victim examines at most 16 entries, and all operations are O(1).
/// Half a byte for each slot.
///
/// Paper: Corbató 1968 for the second chance, see [`SecondChance`]. The order by state follows
/// Linux, whose connection tracking drops connections that are not assured early.
///
/// [`SecondChance`]: super::SecondChance
///
/// # Example
///
/// ```
/// use flowtable::eviction::{ByClass, EntryStats, Eviction};
///
/// let mut policy = ByClass::new();
/// policy.insert(0, 3);
/// policy.insert(1, 1);
/// policy.insert(2, 1);
/// policy.rerank(1, 2);
/// assert_eq!(policy.victim(|_| EntryStats::default()), Some(2));
/// ```
#[doc(alias("syn flood"))]
#[derive(Clone, Debug)]
pub struct ByClass<A: Allocator + Clone = Global> {
    /// By rank.
    clocks: Clocks<RANKS, A>,
}

impl ByClass {
    /// Bytes allocated for a slot, at most. [`SecondChance`](super::SecondChance) has fewer.
    pub(super) const BYTES_PER_SLOT: usize = Clocks::<RANKS>::BYTES_PER_SLOT;

    /// Creates a policy without entries.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::eviction::{ByClass, EntryStats, Eviction};
    ///
    /// assert_eq!(ByClass::new().victim(|_| EntryStats::default()), None);
    /// ```
    #[must_use]
    pub const fn new() -> Self {
        Self { clocks: Clocks::new() }
    }
}

impl<A: Allocator + Clone> ByClass<A> {
    /// Creates a policy without entries, whose memory will be from `memory`.
    ///
    /// # Example
    ///
    /// ```
    /// use bumpalo::Bump;
    /// use flowtable::eviction::{ByClass, EntryStats, Eviction};
    ///
    /// let arena = Bump::new();
    /// arena.set_allocation_limit(Some(0));
    /// assert!(ByClass::new_in(&arena).try_reserve(0).is_err());
    /// ```
    #[must_use]
    pub fn new_in(memory: A) -> Self {
        Self { clocks: Clocks::new_in(memory) }
    }

    /// Returns the rank whose entries are examined first.
    #[inline]
    fn first_rank(&self) -> Option<usize> {
        let counts = self.clocks.counts;
        if has_few_newcomers(counts) { Some(TOP) } else { lowest_rank(counts) }
    }
}

/// The number of entries of each rank.
pub(crate) type Counts = [usize; RANKS];

/// Returns the lowest rank that has entries.
pub(crate) fn lowest_rank(counts: Counts) -> Option<usize> {
    counts.iter().position(|count| *count > 0)
}

/// Whether there are so few newcomers that an unused entry of the highest rank is evicted first.
pub(crate) fn has_few_newcomers(counts: Counts) -> bool {
    let [lowest, first, second, top] = counts;
    let newcomers = first + second;
    lowest == 0 && newcomers * NEWCOMERS < newcomers + top
}

impl Default for ByClass {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns the set of the entries with this rank.
const fn set_of(rank: u8) -> usize {
    let rank = rank as usize;
    if rank < RANKS { rank } else { TOP }
}

impl<A: Allocator + Clone> Eviction for ByClass<A> {
    fn try_reserve(&mut self, slot: u32) -> Result<(), AllocError> {
        self.clocks.try_reserve(slot)
    }

    fn insert(&mut self, slot: u32, rank: u8) {
        self.clocks.insert(slot, set_of(rank));
    }

    #[inline]
    fn rerank(&mut self, slot: u32, rank: u8) {
        self.clocks.change(slot, set_of(rank));
    }

    fn remove(&mut self, slot: u32) {
        self.clocks.remove(slot);
    }

    #[inline]
    fn replace(&mut self, slot: u32, rank: u8) {
        // Most entries replace one of their rank.
        self.insert(slot, rank);
    }

    #[inline]
    fn victim(&mut self, stats: impl FnMut(u32) -> EntryStats) -> Option<u32> {
        own::victim(self, stats)
    }

    #[inline]
    fn upcoming(&self, most: usize, each: impl FnMut(usize, u32)) {
        if let Some(rank) = self.first_rank() {
            self.clocks.upcoming(rank, most, each);
        }
    }

    fn allocation_size(&self) -> usize {
        self.clocks.allocation_size()
    }

    #[inline]
    fn own(&mut self) -> Option<&mut impl OwnPolicy> {
        Some(self)
    }
}

impl<A: Allocator + Clone> OwnPolicy for ByClass<A> {
    const READS_STATS: bool = true;

    #[inline]
    fn rerank_from(&mut self, slot: u32, before: u8, rank: u8) {
        self.clocks.change_from(slot, set_of(before), set_of(rank));
    }

    #[inline]
    fn replace_from(&mut self, slot: u32, before: u8, rank: u8) {
        // In a flood, most entries replace one of their rank.
        if before != rank {
            self.clocks.change_from(slot, set_of(before), set_of(rank));
        }
    }

    #[inline]
    fn candidate(&mut self) -> Option<u32> {
        let rank = self.first_rank()?;
        self.clocks.advance(rank)
    }

    #[inline(never)]
    fn victim_after(
        &mut self,
        first: (u32, EntryStats),
        mut stats: impl FnMut(u32) -> EntryStats,
    ) -> Option<u32> {
        let counts = self.clocks.counts;
        let lowest = lowest_rank(counts)?;
        if !has_few_newcomers(counts) {
            return Some(self.clocks.second_chance(first, lowest, stats));
        }
        // The first candidate was of the highest rank; without an unused one there, the victim is a
        // newcomer.
        let unused = self.clocks.first_unused(TOP, &mut stats);
        if unused.is_some() {
            return unused;
        }
        let slot = self.clocks.advance(lowest)?;
        match stats(slot) {
            entry if entry.used => Some(self.clocks.second_chance((slot, entry), lowest, stats)),
            _ => Some(slot),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(policy: &mut ByClass) -> Option<u32> {
        let victim = policy.victim(|slot| EntryStats { used: slot == 9, ..EntryStats::default() });
        victim.inspect(|&slot| policy.remove(slot))
    }

    #[test]
    fn the_lowest_rank_is_evicted_first_even_if_all_of_it_was_used() {
        let mut policy = ByClass::new();
        for (slot, rank) in [(0, 3), (1, 2), (9, 0), (3, 1), (4, 200)] {
            policy.insert(slot, rank);
        }
        assert_eq!(
            [(); 6].map(|()| next(&mut policy)),
            [9, 3, 1, 0, 4, 99].map(|slot| (slot < 99).then_some(slot))
        );
    }

    #[test]
    fn a_reranked_entry_is_evicted_by_its_new_rank() {
        let mut policy = ByClass::new();
        (0..3).for_each(|slot| policy.insert(slot, 1));
        policy.rerank(2, 0);
        policy.rerank(0, 2);
        policy.rerank(7, 0);
        assert_eq!([(); 4].map(|()| next(&mut policy)), [Some(2), Some(1), Some(0), None]);
    }

    #[test]
    fn newcomers_are_protected_up_to_an_eighth() {
        let mut policy = ByClass::new();
        (0..70).for_each(|slot| policy.insert(slot, 3));
        (70..80).for_each(|slot| policy.insert(slot, 1));
        assert_eq!(next(&mut policy), Some(70), "10 of 80 are an eighth");
        assert_eq!(next(&mut policy), Some(0), "9 of 79 are less");
        let victim = policy.victim(|_| EntryStats { used: true, ..EntryStats::default() });
        assert_eq!(victim, Some(71), "all entries of the highest rank were used");
    }
}
