//! Heads of hash chains, with a filter for absent tags.
//!
//! ```text
//!     head │ low half of newest sequence number │ filter: 32 bits, two clear for a tag of the chain │
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
pub(super) struct Bits(u32);

impl Bits {
    /// Returns the bits that all bits of the hash select, also if the hash has 32 bits only.
    #[inline(always)]
    pub(super) const fn of(hash: u64) -> Self {
        let mixed = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self(1 << (mixed >> 59) | 1 << (mixed >> 54 & 31))
    }
}

/// The newest entry of a chain, and the filter of its tags.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    /// The low half of the sequence number of the newest entry.
    newest: u32,
    /// The bits of the tags of the chain are clear.
    filter: u32,
}

impl Head {
    pub(super) const EMPTY: Self = Self { newest: 0, filter: u32::MAX };

    /// Returns whether a tag with these bits may be in the chain.
    #[inline(always)]
    const fn may_contain(self, bits: Bits) -> bool {
        self.filter & bits.0 == 0
    }

    /// Returns the low half of the sequence number of the newest entry.
    #[inline(always)]
    pub(super) const fn newest(self) -> u32 {
        self.newest
    }

    /// Returns the head after the insertion of an entry with this sequence number and bits. Sets
    /// the other bits if no entry of the chain is live.
    #[inline(always)]
    pub(super) const fn with(self, sequence: u32, bits: Bits, has_live: bool) -> Self {
        // Branch-free: both outcomes are equally frequent.
        let expired = (has_live as u32).wrapping_sub(1);
        Self { newest: sequence, filter: (self.filter | expired) & !bits.0 }
    }

    /// Returns the head after the removal of the newest entry, given that of the next older one.
    pub(super) const fn with_newest(self, sequence: u32) -> Self {
        Self { newest: sequence, filter: self.filter }
    }
}

/// The heads of all chains.
pub(super) struct Chains<A: Allocator> {
    heads: Array<Head, A>,
    /// The difference of the indices of the two chains of a tag: 0 if there is one.
    other: usize,
}

/// The newest entries of the chains that may have a tag.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidates {
    pub(super) first: u32,
    pub(super) second: Option<u32>,
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

    /// Returns whether the two chains of a tag differ.
    #[inline(always)]
    pub(super) const fn are_paired(&self) -> bool {
        self.other > 0
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

    /// Returns the newest entries of the chains that may have a tag with this hash, if there is
    /// one.
    #[inline(always)]
    pub(super) fn candidates(&self, hash: u64) -> Option<Candidates> {
        let (bits, [one, other]) = (Bits::of(hash), self.of(hash).map(|chain| self.head(chain)));
        let (in_one, in_other) = (one.may_contain(bits), other.may_contain(bits));
        if !(in_one | in_other) {
            return None;
        }
        // Either chain is equally likely.
        let first = select(in_one.into(), one.newest.into(), other.newest.into()) as u32;
        let in_both = in_one & in_other & self.are_paired();
        Some(Candidates { first, second: in_both.then_some(other.newest) })
    }

    /// Returns the chain of a new entry: of two, the one whose newest entry is older. `next` is the
    /// low half of the next sequence number.
    #[inline(always)]
    pub(super) fn choose(&self, hash: u64, next: u32) -> usize {
        let [one, other] = self.of(hash);
        let age = |chain| next.wrapping_sub(self.head(chain).newest);
        let is_older = age(other) > age(one);
        one ^ (self.other & usize::from(is_older).wrapping_neg())
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
