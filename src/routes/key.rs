//! The bits of a prefix or address, as an update or a lookup uses them.

use super::levels::{FIRST, LAST, LevelKey, level_of};
use super::stride::{PrefixIndex, STRIDE, first_slot};
use crate::key::bits::Address;
use crate::key::prefix::Prefix;

/// The bits of an address, of which the first 128 are read once.
///
/// An update finds nodes by these bits, and the slots of direct tables and the entries of levels
/// that are computed from the nodes. If an inconsistent address type returned other bits the second
/// time, these would become stale; so they are not read again.
#[derive(Clone, Copy)]
pub(super) struct Key<A> {
    head: u128,
    /// The key in the level that has the prefix, if one has.
    level: LevelKey,
    address: A,
}

impl<A: Address> Key<A> {
    /// Returns the key of the entry for the routes of this prefix, which has more than [`FIRST`]
    /// bits, as an address of a table with levels.
    #[inline]
    pub(super) const fn level(&self) -> LevelKey {
        self.level
    }

    /// Returns the first 64 bits.
    #[inline]
    pub(super) const fn word(&self) -> u64 {
        (self.head >> 64) as u64
    }

    /// Returns 64 bits from bit `pos` on, which is less than the bits of the address.
    #[inline]
    pub(super) fn window(&self, pos: u32) -> u64 {
        if pos <= 64 || A::BITS <= 128 {
            (self.head << pos >> 64) as u64
        } else {
            self.address.window(pos)
        }
    }

    /// Returns the slot in a node at `pos`.
    #[inline]
    pub(super) fn slot(&self, pos: u32) -> u32 {
        if pos <= 64 - STRIDE {
            first_slot(self.word() << pos)
        } else {
            first_slot(self.window(pos))
        }
    }

    /// Returns the index of the prefix of `len` bits in its node, which is at `pos`.
    #[inline]
    pub(super) fn index(&self, pos: u32, len: u32) -> PrefixIndex {
        PrefixIndex::covering(self.slot(pos), len - pos)
    }
}

impl<A: Address> From<&Prefix<A>> for Key<A> {
    #[inline]
    fn from(prefix: &Prefix<A>) -> Self {
        let (address, len) = (prefix.address(), prefix.len());
        let word = address.window(0);
        let second = if A::BITS > 64 { address.window(64) } else { 0 };
        let level = match len > FIRST && A::BITS > LAST {
            true => LevelKey::new(word, level_of(len)),
            false => LevelKey::NONE,
        };
        Self { head: u128::from(word) << 64 | u128::from(second), level, address }
    }
}
