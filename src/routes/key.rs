//! A prefix as an update uses it.

use super::levels::{FIRST, LAST, LevelKey, level_of};
use super::stride::{PrefixIndex, STRIDE, first_slot, node_pos};
use crate::key::bits::Address;
use crate::key::prefix::Prefix;

/// A prefix: its length, and the bits of its address, of which the first 128 are read once.
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
    len: u32,
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

    /// Returns the length of the prefix.
    #[inline]
    pub(super) const fn len(&self) -> u32 {
        self.len
    }

    /// Returns the index of the prefix in its node.
    #[inline]
    pub(super) fn index(&self) -> PrefixIndex {
        let pos = node_pos(self.len);
        PrefixIndex::covering(self.slot(pos), self.len - pos)
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
        Self { head: u128::from(word) << 64 | u128::from(second), level, address, len }
    }
}
