//! Tags of the ways of a set: state, recency, index and generation of an entry in 32 bits.
//!
//! ```text
//!     │ occupied │ referenced │ rank   │ index     │ generation │   rank 0: the most recent way
//!       1 bit      1 bit        3 bits   27 - k bits  k bits       rank WAYS - 1: the next victim
//! ```
//!
//! In a cache of 2^k sets, the low k bits of an index are the number of the set. The generation
//! has their place, so that one comparison finds an entry that has the index and is not stale.

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::hash::source_index::SourceIndex;

/// The maximum number of ways of a set: a rank has three bits.
pub(super) const MAX_WAYS: usize = 8;

/// The position of a way in the replacement order of its set. 0 is the most recent way.
///
/// It is stored as in a [`Tag`], so comparisons need no shift.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank(u32);

impl Rank {
    pub(super) const MOST_RECENT: Self = Self::new(0);

    #[inline]
    pub(super) const fn new(rank: usize) -> Self {
        Self(rank as u32 * Tag::ONE_RANK)
    }
}

/// The tag of a way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tag(u32);

impl Tag {
    const OCCUPIED: u32 = 1 << 31;
    const REFERENCED: u32 = 1 << 30;
    const RANK: u32 = (MAX_WAYS as u32 - 1) * Self::ONE_RANK;
    const ONE_RANK: u32 = 1 << 27;
    const INDEX: u32 = Self::ONE_RANK - 1;

    /// A vacant way of this rank.
    pub(super) const fn vacant(rank: Rank) -> Self {
        Self(rank.0)
    }

    /// Whether the way has an entry.
    #[inline]
    pub(super) const fn is_occupied(self) -> bool {
        self.0 & Self::OCCUPIED != 0
    }

    /// Whether the entry was used since its insertion, or since it was given a second chance.
    #[inline]
    pub(super) const fn is_referenced(self) -> bool {
        self.0 & Self::REFERENCED != 0
    }

    #[inline]
    pub(super) const fn rank(self) -> Rank {
        Rank(self.0 & Self::RANK)
    }

    /// Whether the way has an entry with the index and generation of a tag from
    /// [`Generation::tag`].
    #[inline]
    pub(super) const fn matches(self, tag: Self) -> bool {
        self.0 & (Self::OCCUPIED | Self::INDEX) == tag.0
    }

    /// This vacant way with the entry of a tag from [`Generation::tag`].
    #[inline]
    pub(super) const fn occupied_by(self, tag: Self) -> Self {
        Self(self.0 | tag.0)
    }

    /// This way without its entry: only the rank remains.
    #[inline]
    pub(super) const fn vacated(self) -> Self {
        Self(self.0 & Self::RANK)
    }

    #[inline]
    pub(super) const fn with_reference(self) -> Self {
        Self(self.0 | Self::REFERENCED)
    }

    #[inline]
    pub(super) const fn without_reference(self) -> Self {
        Self(self.0 & !Self::REFERENCED)
    }

    #[inline]
    pub(super) const fn with_rank(self, rank: Rank) -> Self {
        Self(self.0 & !Self::RANK | rank.0)
    }

    /// This way, one rank further from the most recent one if `condition` holds. Branchless.
    #[inline]
    pub(super) const fn demoted_if(self, condition: bool) -> Self {
        Self(self.0 + if condition { Self::ONE_RANK } else { 0 })
    }

    /// This way, one rank closer to the most recent one if `condition` holds. Branchless.
    #[inline]
    pub(super) const fn promoted_if(self, condition: bool) -> Self {
        Self(self.0 - if condition { Self::ONE_RANK } else { 0 })
    }
}

/// The generation of a cache, which `clear` increments. Entries of a different generation are
/// stale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Generation {
    number: u32,
    /// The bits of tags that have the number of a generation.
    mask: u32,
}

impl Generation {
    /// The first generation of a cache with this number of sets, which is a power of two.
    pub(super) const fn first(sets: usize) -> Self {
        Self { number: 0, mask: (sets - 1) as u32 & Tag::INDEX }
    }

    /// The next generation, unless numbers wrap around.
    pub(super) fn next(self) -> Option<Self> {
        (self.number < self.mask).then_some(Self { number: self.number + 1, ..self })
    }

    /// The tag of an entry of this generation with an index, as the most recent way.
    #[inline]
    pub(super) const fn tag(self, index: SourceIndex) -> Tag {
        Tag(index.get() & (Tag::INDEX & !self.mask) | self.number | Tag::OCCUPIED)
    }

    /// Whether a way has an entry of another generation.
    #[inline]
    pub(super) const fn is_stale(self, tag: Tag) -> bool {
        tag.is_occupied() && tag.0 & self.mask != self.number
    }

    /// Returns the index of an entry, up to bits that no tag has, from its tag and the number of
    /// its set.
    pub(super) const fn index(self, tag: Tag, set: usize) -> SourceIndex {
        SourceIndex::new(tag.0 & (Tag::INDEX & !self.mask) | set as u32)
    }
}

/// A tag that shared lookups can mark as referenced.
pub(super) struct AtomicTag(AtomicU32);

impl AtomicTag {
    pub(super) const fn new(tag: Tag) -> Self {
        Self(AtomicU32::new(tag.0))
    }

    // Relaxed: a tag that is modified through a shared reference publishes no other memory.
    #[inline]
    pub(super) fn load(&self) -> Tag {
        Tag(self.0.load(Relaxed))
    }

    // Relaxed: as `load`.
    #[inline]
    pub(super) fn store(&self, tag: Tag) {
        self.0.store(tag.0, Relaxed);
    }

    /// Replaces the tag by the result of `update`, without atomic operations.
    #[inline]
    pub(super) fn update(&mut self, update: impl FnOnce(Tag) -> Tag) {
        let tag = self.0.get_mut();
        *tag = update(Tag(*tag)).0;
    }
}

#[cfg(test)]
mod tests {
    use core::iter;

    use super::*;

    const FIRST: Generation = Generation::first(1 << 4);

    #[test]
    fn the_fields_of_a_tag_do_not_overlap() {
        let new = FIRST.tag(SourceIndex::new(u32::MAX));
        for rank in (0..MAX_WAYS).map(Rank::new) {
            let vacant = Tag::vacant(rank);
            assert!(!vacant.is_occupied() && !vacant.is_referenced());
            let tag = vacant.occupied_by(new);
            assert!(tag.is_occupied() && !tag.is_referenced() && tag.matches(new));
            let referenced = tag.with_reference();
            assert!(referenced.is_referenced() && referenced.matches(new));
            assert_eq!((referenced.rank(), referenced.without_reference()), (rank, tag));
            assert_eq!(referenced.vacated(), vacant);
        }
    }

    #[test]
    fn a_tag_matches_its_index_in_27_bits() {
        let tag = |index| FIRST.tag(SourceIndex::new(index));
        assert!(!Tag::vacant(Rank::MOST_RECENT).matches(tag(0)));
        assert!(tag(7).matches(tag(7 | 1 << 27)) && !tag(7).matches(tag(7 | 1 << 26)));
        assert!(!tag(7).matches(tag(7 | 1 << 4)));
        assert_eq!(FIRST.index(tag(u32::MAX), 7), SourceIndex::new(0x07ff_fff7));
    }

    #[test]
    fn there_is_a_generation_for_each_set() {
        for (sets, count) in [(1, 1), (2, 2), (16, 16), (1 << 10, 1 << 10)] {
            let generations = || iter::successors(Some(Generation::first(sets)), |now| now.next());
            assert_eq!(generations().count(), count);
            let index = SourceIndex::new(0x00ab_cde5);
            for (now, next) in generations().zip(generations().skip(1)).take(100) {
                assert!(!now.tag(index).matches(next.tag(index)));
                assert!(next.is_stale(now.tag(index)) && !next.is_stale(next.tag(index)));
                assert!(!next.is_stale(Tag::vacant(Rank::new(3))));
                let set = index.get() as usize % sets;
                assert_eq!(next.index(next.tag(index), set), index);
            }
        }
        assert_eq!(Generation::first(1 << 30).mask, Tag::INDEX);
    }

    #[test]
    fn ranks_are_changed_one_by_one() {
        let tag = FIRST.tag(SourceIndex::new(7)).with_rank(Rank::new(3));
        assert_eq!(tag.demoted_if(true).rank(), Rank::new(4));
        assert_eq!(tag.promoted_if(true).rank(), Rank::new(2));
        assert_eq!((tag.demoted_if(false), tag.promoted_if(false)), (tag, tag));
        assert!(Rank::MOST_RECENT < Rank::new(1) && Rank::new(6) < Rank::new(7));
    }
}
