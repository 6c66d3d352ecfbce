//! Heads of hash chains, with a filter for absent tags.
//!
//! ```text
//!     head │ filter: 32 bits, one set per tag of the chain │ low half of newest sequence number │
//! ```
//!
//! If the bit of a tag is clear, the tag is not in the chain. So the creation of a new tag mostly
//! reads no entry: with two heads per entry in a full store, 49 times of 50. Its only cache miss is
//! the head, and the branch is well predicted.
//!
//! Bits of expired tags remain set while any binding of the chain is live; the first insertion into
//! a chain without live bindings clears them.

/// The number of heads of chains per entry. More heads make shorter chains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Heads {
    /// One head for two entries. A lookup in a full store examines two entries.
    Half,
    /// One head per entry: a lookup examines one and a half entries.
    Equal,
    /// Two heads per entry: a lookup examines one and a quarter entries.
    #[default]
    Double,
}

impl Heads {
    /// Returns the number of heads for a power of two of entries, at least one. `None` if it
    /// overflows.
    pub(super) fn count(self, capacity: usize) -> Option<usize> {
        match self {
            Self::Half => Some(capacity.div_ceil(2)),
            Self::Equal => Some(capacity),
            Self::Double => capacity.checked_mul(2),
        }
    }
}

/// The filter bit of a tag.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bit(u64);

impl Bit {
    /// Returns the bit that all bits of the hash select, also if the hash has 32 bits only.
    #[inline]
    pub(super) const fn of(hash: u64) -> Self {
        Self(1 << 32 << (hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 59))
    }
}

/// The newest entry of a chain, and the filter of its tags.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head(u64);

impl Head {
    pub(super) const EMPTY: Self = Self(0);

    /// Returns whether a tag with this bit may be in the chain.
    #[inline]
    pub(super) const fn may_contain(self, bit: Bit) -> bool {
        self.0 & bit.0 != 0
    }

    /// Returns the low half of the sequence number of the newest entry.
    #[inline]
    pub(super) const fn newest(self) -> u32 {
        self.0 as u32
    }

    /// Returns the head after the insertion of an entry with this sequence number and bit. Clears
    /// the other bits if no entry of the chain is live.
    #[inline]
    pub(super) const fn with(self, sequence: u32, bit: Bit, has_live: bool) -> Self {
        // Branch-free: both outcomes are equally frequent.
        let others = self.0 & ((has_live as u64).wrapping_neg() << 32);
        Self(others | bit.0 | sequence as u64)
    }

    /// Returns the head after the removal of the newest entry, given that of the next older one.
    pub(super) const fn with_newest(self, sequence: u32) -> Self {
        Self(self.0 >> 32 << 32 | sequence as u64)
    }
}
