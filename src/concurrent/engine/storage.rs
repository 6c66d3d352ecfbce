//! Storages: a slot stores the words of an entry itself, or the id of an entry stored elsewhere.
#![allow(unsafe_code)]

use bytemuck::NoUninit;

use super::plan::Sizes;
use crate::concurrent::sync::{AtomicU32, AtomicU64, Ordering};
use crate::table::tags::Mask;

/// The storage of the slots of a table: as many atomics as key and value require.
pub(in crate::concurrent) trait Storage {
    /// The atomics of a slot.
    type Atom: Atom;
    /// The state of a shard that its lock protects.
    type State;

    /// Words of the header of a group: the tags of the slots, and in the last byte the overflow
    /// count.
    const HEADER: usize;
    /// Slots of a group.
    const SLOTS: usize;
    /// The sizes of segments.
    const SIZES: Sizes;
    /// Atomics of a key.
    const KEY: usize;
    /// Atomics of a value.
    const VALUE: usize;
    /// Whether the slot of a removed entry is reused while readers may have loaded its tag: if one
    /// atomic is all that they load after it, and it refers to a key that they compare. Such slots
    /// have [notes](super::segment::Slot::note).
    const REUSES: bool;

    /// Mixes a hash: see [`policy::mix`](crate::concurrent::policy::mix).
    fn mix(hash: u64) -> u64;

    /// Returns the code of a number of groups, of at most seven bits.
    fn code(groups: usize) -> usize;

    /// Returns the number of groups that has a code.
    fn groups(code: usize) -> usize;

    /// Returns the home of a mixed hash, given the code of the number of groups.
    fn home(mixed: u64, code: usize) -> usize;

    /// Returns the tag of a hash in a slot. It differs from zero, the tag of a free slot.
    fn tag(hash: u64, slot: usize) -> u8;

    /// Returns the slots that have the tag of a hash, and perhaps slots beyond the last slot of a
    /// group.
    fn matches(header: [u64; 2], hash: u64) -> Mask;
}

/// The bits of a hash that a copy of its entry requires.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::concurrent) enum Bits {
    /// But for those of the shard, which are known.
    Known,
    All,
}

/// A storage with values of a type.
pub(in crate::concurrent) trait Entries: Storage {
    type Value: NoUninit;

    /// Assembles a value from its atomics.
    ///
    /// # Safety
    ///
    /// `load` returns the words of one value that was stored.
    unsafe fn value(load: impl Fn(usize) -> u64) -> Self::Value;
}

/// An atomic of a slot, for a word that fits.
pub(in crate::concurrent) trait Atom {
    fn new() -> Self;
    fn load(&self, order: Ordering) -> u64;
    fn store(&self, word: u64, order: Ordering);
}

impl Atom for AtomicU64 {
    fn new() -> Self {
        Self::new(0)
    }

    #[inline]
    fn load(&self, order: Ordering) -> u64 {
        self.load(order)
    }

    fn store(&self, word: u64, order: Ordering) {
        self.store(word, order);
    }
}

impl Atom for AtomicU32 {
    fn new() -> Self {
        Self::new(0)
    }

    #[inline]
    fn load(&self, order: Ordering) -> u64 {
        self.load(order).into()
    }

    fn store(&self, word: u64, order: Ordering) {
        self.store(word as u32, order);
    }
}
