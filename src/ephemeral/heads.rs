//! Heads of hash chains, with a filter for absent tags.
//!
//! ```text
//!     head │ low half of newest sequence number │ filter: 32 bits, two clear for each tag │
//!
//!     Heads::Paired   a binding joins the chain of the pair whose newest binding is older
//!                     │ 44 │ 17, expired │      ◂── here
//! ```
//!
//! If a bit of a tag is set, the tag is not in the chain. So the creation of a new tag mostly reads
//! no entry. Its only cache miss is the head, and the branch is well predicted.
//!
//! Bits of expired tags remain clear while any binding of the chain is live; the first insertion
//! into a chain without live bindings sets them.

use super::StoreError;
use crate::memory::{Allocator, Array};
use crate::raw::bit_ops::select;
use crate::raw::prefetch::prefetch;

/// The number of heads of chains per entry. More heads make shorter chains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Heads {
    /// One head for two entries. A lookup in a full store examines two entries.
    Half,
    /// One head per entry: a lookup examines one and a half entries.
    Equal,
    /// Two heads per entry: a lookup examines one and a quarter entries.
    Double,
    /// Two heads per entry, and each tag has the choice of two in one cache line: a lookup examines
    /// 1.12 entries.
    #[default]
    Paired,
}

impl Heads {
    /// Returns the number of heads for a power of two of entries, at least one. `None` if it
    /// overflows.
    fn count(self, capacity: usize) -> Option<usize> {
        match self {
            Self::Half => Some(capacity.div_ceil(2)),
            Self::Equal => Some(capacity),
            Self::Double | Self::Paired => capacity.checked_mul(2),
        }
    }
}

/// The filter bits of a tag.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bits(u64);

impl Bits {
    /// Returns the bits that all bits of the hash select, also if the hash has 32 bits only.
    #[inline(always)]
    pub(super) const fn of(hash: u64) -> Self {
        let mixed = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let bits: u32 = 1 << (mixed >> 59) | 1 << (mixed >> 54 & 31);
        Self((bits as u64) << 32)
    }
}

/// The newest entry of a chain, and the filter of its tags: their bits are clear in the upper half.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head(u64);

impl Head {
    pub(super) const EMPTY: Self = Self(u64::MAX << 32);

    /// Returns whether a tag with these bits may be in the chain.
    #[inline(always)]
    const fn may_contain(self, bits: Bits) -> bool {
        self.0 & bits.0 == 0
    }

    /// Returns the low half of the sequence number of the newest entry.
    #[inline(always)]
    pub(super) const fn newest(self) -> u32 {
        self.0 as u32
    }

    /// Returns the head after the insertion of an entry with this sequence number and bits. Sets
    /// the other bits if no entry of the chain is live.
    #[inline(always)]
    pub(super) const fn with(self, sequence: u32, bits: Bits, has_live: bool) -> Self {
        // Branch-free: both outcomes are equally frequent.
        let expired = (has_live as u64).wrapping_sub(1);
        Self((self.0 | expired) >> 32 << 32 & !bits.0 | sequence as u64)
    }

    /// Returns the head after the removal of the newest entry, given that of the next older one.
    pub(super) const fn with_newest(self, sequence: u32) -> Self {
        Self(self.0 >> 32 << 32 | sequence as u64)
    }
}

/// The heads of all chains.
pub(super) struct Chains<A: Allocator> {
    heads: Array<Head, A>,
    /// The difference of the indices of the two chains of a tag: 0 if there is one.
    other: usize,
}

impl<A: Allocator> Chains<A> {
    /// Allocates the heads for a power of two of entries.
    pub(super) fn new_in(heads: Heads, capacity: usize, memory: A) -> Result<Self, StoreError> {
        let count = heads.count(capacity).ok_or(StoreError::TooLarge)?;
        let other = usize::from(heads == Heads::Paired);
        Ok(Self { heads: Array::new_in(count, memory, |_| Head::EMPTY)?, other })
    }

    pub(super) const fn allocator(&self) -> &A {
        self.heads.allocator()
    }

    pub(super) const fn allocation_size(&self) -> usize {
        self.heads.allocation_size()
    }

    /// Returns the indices of the chains of a hash, which are equal if there is one.
    #[inline(always)]
    pub(super) const fn of(&self, hash: u64) -> [usize; 2] {
        [hash as usize, hash as usize ^ self.other]
    }

    #[inline(always)]
    pub(super) fn head(&self, chain: usize) -> Head {
        *self.heads.get(chain)
    }

    #[inline(always)]
    pub(super) fn head_mut(&mut self, chain: usize) -> &mut Head {
        self.heads.get_mut(chain)
    }

    /// Prefetches the heads of the chains of a hash, which are in one cache line.
    #[inline(always)]
    pub(super) fn prefetch(&self, hash: u64) {
        prefetch(self.heads.pointer(hash as usize).as_ptr());
    }

    /// Returns the low half of the sequence number of the newest entry of the chain that may have a
    /// tag with this hash and these bits; of the first one if both may.
    #[inline(always)]
    pub(super) fn newest(&self, hash: u64, bits: Bits) -> Option<u32> {
        let [one, other] = self.of(hash).map(|chain| self.head(chain));
        // Either chain is equally likely.
        let head = Head(select(one.0 & bits.0, other.0, one.0));
        head.may_contain(bits).then_some(head.newest())
    }

    /// Returns the newest sequence number of the second chain, if both chains may have the tag.
    pub(super) fn newest_of_second(&self, hash: u64) -> Option<u32> {
        let (bits, heads) = (Bits::of(hash), self.of(hash).map(|chain| self.head(chain)));
        let in_both = self.other > 0 && heads.iter().all(|head| head.may_contain(bits));
        in_both.then_some(heads[1].newest())
    }

    /// Returns the head of the chain for a new entry: of two, the one whose newest entry is older;
    /// and the number of entries since that one. `next` is the low half of the next sequence
    /// number.
    #[inline(always)]
    pub(super) fn choose(&mut self, hash: u64, next: u32) -> (&mut Head, u32) {
        let [one, other] = self.of(hash);
        let age = |chain| next.wrapping_sub(self.head(chain).newest());
        let (age, age_of_other) = (age(one), age(other));
        let chosen = if age_of_other > age { other } else { one };
        (self.head_mut(chosen), age.max(age_of_other))
    }

    /// Replaces all heads.
    #[cfg(test)]
    pub(super) fn fill(&mut self, head: Head) {
        (0..self.heads.len()).for_each(|chain| *self.head_mut(chain) = head);
    }
}

impl<A: Allocator + Clone> Clone for Chains<A> {
    fn clone(&self) -> Self {
        Self { heads: self.heads.clone_with(|head| *head), other: self.other }
    }
}
