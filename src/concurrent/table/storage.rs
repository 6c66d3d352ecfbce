//! The storage of a table: key and value themselves.
#![allow(unsafe_code)]

use core::marker::PhantomData;

use bytemuck::NoUninit;

use crate::concurrent::engine::storage::{Entries, Storage, assemble, word, words};
use crate::concurrent::engine::{Group, Sizes, Slot};
use crate::concurrent::policy;
use crate::concurrent::sync::AtomicU64;
use crate::table::tags::{Group as Tags, Mask};

/// The bit that is set in the tag of each occupied slot, beside seven bits of hash.
const HIGHEST: u64 = 0x8080_8080_8080_8080;

/// Keys and values in the slots.
pub(in crate::concurrent) struct Inline<K, V>(PhantomData<(K, V)>);

impl<K, V> Inline<K, V> {
    /// Words of an entry.
    const ENTRY: usize = words::<K>() + words::<V>();

    /// Words of a group: a cache line for entries of a word; else two, or as many pairs of lines as
    /// three entries need.
    const GROUP: usize = match Self::ENTRY {
        0 | 1 => 8,
        entry => (1 + 3 * entry).next_multiple_of(16),
    };
}

impl<K, V> Storage for Inline<K, V> {
    type Atom = AtomicU64;
    type State = ();

    const HEADER: usize = 1;
    // Seven at most, as a word has that number of tags beside the overflow count.
    const SLOTS: usize = match Self::ENTRY {
        0 => 7,
        entry if (Self::GROUP - 1) / entry < 7 => (Self::GROUP - 1) / entry,
        _ => 7,
    };
    const SIZES: Sizes = Sizes::ByThirds;
    const KEY: usize = words::<K>();
    const VALUE: usize = words::<V>();
    const REUSES: bool = false;

    #[inline]
    fn mix(hash: u64) -> u64 {
        policy::mix(hash)
    }

    fn code(groups: usize) -> usize {
        groups
    }

    #[inline]
    fn groups(code: usize) -> usize {
        code
    }

    #[inline]
    fn home(mixed: u64, groups: usize) -> usize {
        policy::home(mixed, groups)
    }

    fn tag(hash: u64, slot: usize) -> u8 {
        ((hash | HIGHEST) >> (8 * slot)) as u8
    }

    // A byte of the hash for each slot: the tag is not broadcast.
    #[inline]
    fn matches(header: [u64; 2], hash: u64) -> Mask {
        Tags::of_words(header).equal(Tags::of_words([hash | HIGHEST, 0]))
    }
}

impl<K, V: NoUninit> Entries for Inline<K, V> {
    type Value = V;

    #[inline]
    unsafe fn value(load: impl Fn(usize) -> u64) -> V {
        // SAFETY: by the contract.
        unsafe { assemble(load) }
    }
}

impl<K: NoUninit, V> Group<'_, Inline<K, V>> {
    /// Returns whether the entry in a slot whose tag was loaded has this key.
    #[inline]
    pub(super) fn has_key(self, slot: usize, key: &K) -> bool {
        (0..words::<K>()).all(|index| self.key_word(slot, index) == word(key, index))
    }
}

impl<K: NoUninit, V> Slot<'_, Inline<K, V>> {
    /// Returns the key in a slot whose tag was loaded.
    pub(super) fn key(self) -> K {
        let (group, slot) = self.place();
        // SAFETY: the words of a key are stored once, before the tag.
        unsafe { assemble(|index| group.key_word(slot, index)) }
    }
}

/// Returns a word of an entry.
pub(super) fn entry_word<K: NoUninit, V: NoUninit>(key: &K, value: &V, index: usize) -> u64 {
    match index.checked_sub(words::<K>()) {
        None => word(key, index),
        Some(index) => word(value, index),
    }
}
