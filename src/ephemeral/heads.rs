//! Heads of chains, which know by a bit what is surely not in them.
//!
//! ```text
//!     head    │ 32 bits: one of them for each tag of the chain │ the low half of the number of the newest │
//! ```
//!
//! A tag whose bit is not there is not in the chain. So whoever brings a new tag mostly looks at no entry: with two heads for
//! an entry in a store that is full, 49 times of 50. He waits for no memory but that of the head, and the processor need not
//! guess.
//!
//! Bits of the expired stay as long as somebody lives in the chain; they are gone with the first one who comes when
//! nobody does.

/// How many heads of chains there are for each entry. The more, the shorter the chains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Heads {
    /// One for two entries. A full store examines two entries to find one.
    Half,
    /// One for each: one and a half.
    Equal,
    /// Two for each: one and a quarter.
    #[default]
    Double,
}

impl Heads {
    /// As many as that for a power of two of entries: one at least. Nothing if there is no such number.
    pub(super) fn count(self, capacity: usize) -> Option<usize> {
        match self {
            Self::Half => Some(capacity.div_ceil(2)),
            Self::Equal => Some(capacity),
            Self::Double => capacity.checked_mul(2),
        }
    }
}

/// The bit of a tag.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bit(u64);

impl Bit {
    /// The upper five bits of the hash say which one it is.
    #[inline]
    pub(super) const fn of(hash: u64) -> Self {
        Self(1 << 32 << (hash >> 59))
    }
}

/// Where a chain begins, and what may be in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head(u64);

impl Head {
    pub(super) const EMPTY: Self = Self(0);

    /// Whether a tag with this bit may be in the chain.
    #[inline]
    pub(super) const fn may_have(self, bit: Bit) -> bool {
        self.0 & bit.0 != 0
    }

    /// The low half of the number of the newest one.
    #[inline]
    pub(super) const fn newest(self) -> u32 {
        self.0 as u32
    }

    /// The head with a further one in front, of this number and bit. What is known of the others is forgotten if none of
    /// them lives.
    #[inline]
    pub(super) const fn with(self, number: u32, bit: Bit, has_living: bool) -> Self {
        // Without a branch: it goes one way as often as the other.
        let others = self.0 & ((has_living as u64).wrapping_neg() << 32);
        Self(others | bit.0 | number as u64)
    }
}
