//! A set: the few entries that an index leads to, in one line if they fit.
//!
//! ```text
//!     │ generation │ tag 0 … tag W-1 │ key 0 … key W-1 │ value 0 … value W-1 │
//!       4 bytes      4 each
//!
//!     tag    │ taken │ used │ age │ index │        age 0: came, or was used, last; age W-1: leaves next
//!              1 bit   1      3     27 bits
//! ```
//!
//! Of the ways that have an entry mostly one has the index that is looked for, so the right key is the first one that
//! is compared, and no branch depends on which way it is in.
//!
//! What holds: a way whose tag says that it is taken has an initialized key and value; the ages are the numbers below
//! W, each once; ways that are not taken are the oldest ones. So who leaves next is always the oldest way, and
//! if that is free nobody leaves.
#![allow(unsafe_code)]

use core::mem::{MaybeUninit, needs_drop};
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::Replacement;
use crate::hash::source_index::SourceIndex;

/// Ways that there are ages for.
pub(super) const MAX_WAYS: usize = 8;

/// The bit of a tag that says that there is an entry.
const TAKEN: u32 = 1 << 31;
/// That it was used since it came, or was given a second chance.
const USED: u32 = 1 << 30;
/// The bits of its age.
const AGE: u32 = (MAX_WAYS as u32 - 1) * YEAR;
/// The lowest bit of its age.
const YEAR: u32 = 1 << 27;
/// What entries with one index have in common.
const NAME: u32 = TAKEN | (YEAR - 1);

/// Which entries are meant: those with this index that are not of the past.
#[derive(Clone, Copy)]
pub(super) struct At {
    /// What their tags have in common.
    tag: u32,
    generation: u32,
}

impl At {
    #[inline]
    pub(super) fn new(index: SourceIndex, generation: u32) -> Self {
        Self { tag: index.get() & NAME | TAKEN, generation }
    }
}

/// The generation of a set whose entries are of the past whatever the cache's is: that is never this one.
pub(super) const PAST: u32 = u32::MAX;

/// Up to 8 entries. The order of fields is that of the picture: what is looked at first is in the first line.
#[repr(C)]
pub(super) struct Set<K, V, const WAYS: usize> {
    /// The generation of the cache that the entries are of: those of a former one are no entries any more.
    pub(super) generation: u32,
    /// Those who look up a burst share the set, and note uses all the same; hence atomic. An order is made by
    /// who has the set for itself.
    tags: [AtomicU32; WAYS],
    keys: [MaybeUninit<K>; WAYS],
    values: [MaybeUninit<V>; WAYS],
}

impl<K, V, const WAYS: usize> Set<K, V, WAYS> {
    /// No entries.
    pub(super) fn new() -> Self {
        Self {
            generation: 0,
            tags: core::array::from_fn(|way| AtomicU32::new(way as u32 * YEAR)),
            keys: [const { MaybeUninit::uninit() }; WAYS],
            values: [const { MaybeUninit::uninit() }; WAYS],
        }
    }

    #[inline]
    fn tag(&self, way: usize) -> u32 {
        self.tags[way].load(Relaxed)
    }

    /// The tag of a way, to change.
    #[inline]
    fn tag_mut(&mut self, way: usize) -> &mut u32 {
        self.tags[way].get_mut()
    }

    #[inline]
    fn is_taken(&self, way: usize) -> bool {
        self.tag(way) & TAKEN != 0
    }

    /// The last way with an entry of this index.
    #[inline(always)]
    fn last_of(&self, at: At) -> Option<usize> {
        let fits = |way: usize| self.tag(way) & NAME == at.tag;
        // A choice and not a search, as nobody can foresee where it would end.
        let way = (1..WAYS).fold(0, |last, way| if fits(way) { way } else { last });
        (fits(way) && self.generation == at.generation).then_some(way)
    }

    /// The way of the entry whose key is the one that `is_it` knows.
    #[inline]
    pub(super) fn find(&self, at: At, is_it: impl Fn(&K) -> bool) -> Option<usize> {
        let last = self.last_of(at)?;
        // SAFETY: what has an index is taken.
        if is_it(unsafe { self.keys[last].assume_init_ref() }) {
            return Some(last);
        }
        self.find_before(last, at, is_it)
    }

    /// The same among the ways before this one: where several entries have one index.
    #[inline(never)]
    fn find_before(&self, last: usize, at: At, is_it: impl Fn(&K) -> bool) -> Option<usize> {
        (0..last).rev().find(|&way| {
            // SAFETY: what has an index is taken.
            self.tag(way) & NAME == at.tag && is_it(unsafe { self.keys[way].assume_init_ref() })
        })
    }

    /// The value of a key, to change. Notes the use as far as who leaves depends on it.
    #[inline(always)]
    pub(super) fn get_mut(
        &mut self,
        at: At,
        replacement: Replacement,
        is_it: impl Fn(&K) -> bool,
    ) -> Option<&mut V> {
        let way = self.last_of(at)?;
        let has_order = WAYS > 1 && replacement == Replacement::LeastRecentlyUsed;
        // SAFETY: what has an index is taken.
        if has_order || !is_it(unsafe { self.keys[way].assume_init_ref() }) {
            // Elsewhere, so that what is here is small enough to be part of the caller.
            return self.get_mut_at_length(at, replacement, is_it);
        }
        let tag = self.tag(way);
        // Mostly it is noted already, and the line stays as it is.
        if WAYS > 1 && replacement == Replacement::SecondChance && tag & USED == 0 {
            *self.tag_mut(way) = tag | USED;
        }
        // SAFETY: as its key.
        Some(unsafe { self.values[way].assume_init_mut() })
    }

    #[inline(never)]
    fn get_mut_at_length(
        &mut self,
        at: At,
        replacement: Replacement,
        is_it: impl Fn(&K) -> bool,
    ) -> Option<&mut V> {
        let way = self.find(at, is_it)?;
        Some(self.value_mut(way, replacement))
    }

    /// The value of a way that was found, to change. Notes the use as far as who leaves depends on it.
    pub(super) fn value_mut(&mut self, way: usize, replacement: Replacement) -> &mut V {
        assert!(self.is_taken(way), "it was found");
        match replacement {
            _ if WAYS == 1 => {}
            Replacement::SecondChance => *self.tag_mut(way) |= USED,
            Replacement::LeastRecentlyUsed => self.make_youngest(way),
            Replacement::Oldest => {}
        }
        // SAFETY: it is taken.
        unsafe { self.values[way].assume_init_mut() }
    }

    /// The value of a key. Where `is_use`, notes for [`Replacement::SecondChance`] that it was used.
    #[inline(always)]
    pub(super) fn get(&self, at: At, is_use: bool, is_it: impl Fn(&K) -> bool) -> Option<&V> {
        let mut way = self.last_of(at)?;
        // SAFETY: what has an index is taken.
        if !is_it(unsafe { self.keys[way].assume_init_ref() }) {
            way = self.find_before(way, at, is_it)?;
        }
        let tag = self.tag(way);
        if WAYS > 1 && is_use && tag & USED == 0 {
            self.tags[way].store(tag | USED, Relaxed);
        }
        // SAFETY: it was found, so it is taken.
        Some(unsafe { self.values[way].assume_init_ref() })
    }

    /// The ways that were younger become one year older.
    fn make_youngest(&mut self, way: usize) {
        let age = self.tag(way) & AGE;
        for tag in self.tags.iter_mut().map(AtomicU32::get_mut) {
            *tag += if *tag & AGE < age { YEAR } else { 0 };
        }
        *self.tag_mut(way) &= !AGE;
    }

    /// The ways that were older become one year younger.
    fn make_oldest(&mut self, way: usize) {
        let age = self.tag(way) & AGE;
        for tag in self.tags.iter_mut().map(AtomicU32::get_mut) {
            *tag -= if *tag & AGE > age { YEAR } else { 0 };
        }
        let tag = self.tag_mut(way);
        *tag = *tag & !AGE | Self::OLDEST;
    }

    /// Puts in an entry, whose key must not be there, into the oldest way; what is there leaves, unless it has a
    /// second chance. Entries of another generation are dropped.
    #[inline]
    pub(super) fn put(
        &mut self,
        at: At,
        replacement: Replacement,
        key: K,
        value: V,
    ) -> (&mut V, Option<(K, V)>) {
        self.renew(at.generation);
        let mut way = self.oldest();
        while replacement == Replacement::SecondChance && self.tag(way) & USED != 0 {
            *self.tag_mut(way) &= !USED;
            self.make_youngest(way);
            way = self.oldest();
        }
        let evicted = self.take(way);
        self.keys[way].write(key);
        self.values[way].write(value);
        *self.tag_mut(way) |= at.tag;
        self.make_youngest(way);
        // SAFETY: it has been written.
        (unsafe { self.values[way].assume_init_mut() }, evicted)
    }

    /// The age of the oldest way.
    const OLDEST: u32 = (WAYS as u32 - 1) * YEAR;

    /// The way that leaves next, or is free.
    #[inline]
    fn oldest(&self) -> usize {
        let is_oldest = |way: usize| self.tag(way) & AGE == Self::OLDEST;
        (1..WAYS).fold(0, |way, other| if is_oldest(other) { other } else { way })
    }

    /// Takes out the entry of a way, if there is one.
    #[inline]
    pub(super) fn take(&mut self, way: usize) -> Option<(K, V)> {
        if !self.is_taken(way) {
            return None;
        }
        // The age is all that is left of it.
        *self.tag_mut(way) &= AGE;
        self.make_oldest(way);
        // SAFETY: it was taken, and its key is not read again, as it is free now.
        let key = unsafe { self.keys[way].assume_init_read() };
        // SAFETY: as its key.
        Some((key, unsafe { self.values[way].assume_init_read() }))
    }

    /// Drops the entries for which `keep` does not say that they stay. Calls `left` for each before it is dropped.
    pub(super) fn retain(
        &mut self,
        mut keep: impl FnMut(&K, &mut V) -> bool,
        mut left: impl FnMut(),
    ) {
        for way in 0..WAYS {
            if !self.is_taken(way) {
                continue;
            }
            // SAFETY: it is taken.
            let key = unsafe { self.keys[way].assume_init_ref() };
            // SAFETY: as its key.
            if !keep(key, unsafe { self.values[way].assume_init_mut() }) {
                let entry = self.take(way);
                left();
                drop(entry);
            }
        }
    }

    /// Drops the entries if they are of another generation than this one, of which the set is from now on.
    #[inline]
    pub(super) fn renew(&mut self, generation: u32) {
        if self.generation != generation {
            self.clear();
            self.generation = generation;
        }
    }

    /// Drops all entries.
    #[inline]
    fn clear(&mut self) {
        if needs_drop::<(K, V)>() {
            (0..WAYS).for_each(|way| drop(self.take(way)));
        }
        self.tags.iter_mut().for_each(|tag| *tag.get_mut() &= AGE);
    }

    /// The entries, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        (0..WAYS).filter(|&way| self.is_taken(way)).map(|way| {
            // SAFETY: it is taken.
            let key = unsafe { self.keys[way].assume_init_ref() };
            // SAFETY: as its key.
            (key, unsafe { self.values[way].assume_init_ref() })
        })
    }

    /// Whether each age comes once, the ways that are free are the oldest, and nothing is left of what was there.
    pub(super) fn is_sound(&self) -> bool {
        let taken = (0..WAYS).filter(|&way| self.is_taken(way)).count();
        (0..WAYS).all(|age| {
            let aged = |way: &usize| self.tag(*way) & AGE == age as u32 * YEAR;
            let mut aged = (0..WAYS).filter(aged).map(|way| self.tag(way));
            let is_right = |tag: u32| if age < taken { tag & TAKEN != 0 } else { tag & !AGE == 0 };
            aged.next().is_some_and(is_right) && aged.next().is_none()
        })
    }
}

impl<K: Clone, V: Clone, const WAYS: usize> Clone for Set<K, V, WAYS> {
    fn clone(&self) -> Self {
        let mut clone = Self::new();
        clone.generation = self.generation;
        for way in 0..WAYS {
            if self.is_taken(way) {
                // SAFETY: it is taken.
                let key = unsafe { self.keys[way].assume_init_ref() }.clone();
                // SAFETY: it is taken.
                let value = unsafe { self.values[way].assume_init_ref() }.clone();
                clone.keys[way].write(key);
                clone.values[way].write(value);
            }
            *clone.tag_mut(way) = self.tag(way);
        }
        clone
    }
}

impl<K, V, const WAYS: usize> Drop for Set<K, V, WAYS> {
    #[inline]
    fn drop(&mut self) {
        if needs_drop::<(K, V)>() {
            self.clear();
        }
    }
}
