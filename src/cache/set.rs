//! A set of ways: the entries of one cache slot, in one cache line if they fit.
//!
//! ```text
//!     │ tag 0 … tag W-1 │ key 0 … key W-1 │ value 0 … value W-1 │
//!       4 bytes each
//! ```
//!
//! Usually a single way has the index of a lookup, so the first key that is compared is the right
//! one, and no branch depends on which way it is in.
//!
//! # Invariants
//!
//! 1. A way whose tag is occupied has an initialized key and value.
//! 2. The ranks of the ways are the numbers below `WAYS`, each once.
//! 3. Vacant ways have the last ranks. So an insertion always takes the way of the last rank, and
//!    evicts its entry if there is one.
//! 4. All entries have one generation: an insertion drops the entries of an older generation.
#![allow(unsafe_code)]

use alloc::format;
use core::iter::{FilterMap, Zip};
use core::mem::{MaybeUninit, needs_drop};
use core::slice;

use super::tag::{AtomicTag, Generation, Rank, Tag};
use crate::invariant::{InvariantError, ensure};

/// Up to 8 entries. `repr(C)` keeps the fields in the order of the picture: the tags, which a
/// lookup reads first, are in the first cache line.
#[repr(C)]
pub(super) struct Set<K, V, const WAYS: usize> {
    /// Batch lookups share the set while they mark entries as referenced; hence atomic. Ranks are
    /// only changed through exclusive references.
    tags: [AtomicTag; WAYS],
    keys: [MaybeUninit<K>; WAYS],
    values: [MaybeUninit<V>; WAYS],
}

/// A way that is occupied: its entry has not been removed since that was found.
#[derive(Clone, Copy)]
struct Occupied(usize);

/// The tag, key and value of a way, of which the latter two are initialized if it is occupied.
type WayMut<'a, K, V> = ((&'a AtomicTag, &'a MaybeUninit<K>), &'a mut MaybeUninit<V>);

/// The entries of a set, with mutable references to their values.
pub(super) type EntriesMut<'a, K, V> = FilterMap<
    Zip<
        Zip<slice::Iter<'a, AtomicTag>, slice::Iter<'a, MaybeUninit<K>>>,
        slice::IterMut<'a, MaybeUninit<V>>,
    >,
    fn(WayMut<'a, K, V>) -> Option<(&'a K, &'a mut V)>,
>;

impl<K, V, const WAYS: usize> Set<K, V, WAYS> {
    /// The rank of the next victim.
    const LAST_RANK: Rank = Rank::new(WAYS - 1);

    /// Creates a set without entries.
    pub(super) fn new() -> Self {
        Self {
            tags: core::array::from_fn(|way| AtomicTag::new(Tag::vacant(Rank::new(way)))),
            keys: [const { MaybeUninit::uninit() }; WAYS],
            values: [const { MaybeUninit::uninit() }; WAYS],
        }
    }

    #[inline]
    pub(super) fn tag(&self, way: usize) -> Tag {
        self.tags[way].load()
    }

    #[inline]
    fn is_occupied(&self, way: usize) -> bool {
        self.tag(way).is_occupied()
    }

    #[inline]
    fn key(&self, Occupied(way): Occupied) -> &K {
        // SAFETY: the way is occupied.
        unsafe { self.keys[way].assume_init_ref() }
    }

    #[inline]
    fn value(&self, Occupied(way): Occupied) -> &V {
        // SAFETY: the way is occupied.
        unsafe { self.values[way].assume_init_ref() }
    }

    #[inline]
    fn value_mut(&mut self, Occupied(way): Occupied) -> &mut V {
        // SAFETY: the way is occupied.
        unsafe { self.values[way].assume_init_mut() }
    }

    /// Whether a way has an entry with the index and generation of `tag`.
    #[inline]
    fn matches(&self, way: usize, tag: Tag) -> bool {
        match WAYS {
            // The only way is never marked, and its rank is 0.
            1 => self.tag(way) == tag,
            _ => self.tag(way).matches(tag),
        }
    }

    /// Returns the last way that matches `tag`.
    #[inline]
    fn last_match(&self, tag: Tag) -> Option<Occupied> {
        // Conditional moves instead of a loop with an exit, which would be mispredicted.
        let way = (1..WAYS).fold(0, |last, way| if self.matches(way, tag) { way } else { last });
        self.matches(way, tag).then_some(Occupied(way))
    }

    /// Returns the way of the entry for whose key `eq` returns true.
    #[inline]
    pub(super) fn find(&self, tag: Tag, eq: impl Fn(&K) -> bool) -> Option<usize> {
        self.find_way(tag, eq).map(|way| way.0)
    }

    #[inline]
    fn find_way(&self, tag: Tag, eq: impl Fn(&K) -> bool) -> Option<Occupied> {
        let last = self.last_match(tag)?;
        match eq(self.key(last)) {
            true => Some(last),
            false if WAYS > 1 => self.find_before(last, tag, eq),
            false => None,
        }
    }

    /// Continues [`find`](Self::find) in the ways before `last`, where several entries have one
    /// index.
    #[inline(never)]
    fn find_before(
        &self,
        Occupied(last): Occupied,
        tag: Tag,
        eq: impl Fn(&K) -> bool,
    ) -> Option<Occupied> {
        let mut matches = (0..last).rev().filter(|way| self.matches(*way, tag)).map(Occupied);
        matches.find(|way| eq(self.key(*way)))
    }

    /// Returns a mutable reference to the value of a key, and records the hit as the replacement
    /// requires.
    #[inline]
    pub(super) fn get_mut(
        &mut self,
        tag: Tag,
        replacement: Replacement,
        eq: impl Fn(&K) -> bool,
    ) -> Option<&mut V> {
        let way = self.last_match(tag)?;
        let orders_hits = WAYS > 1 && replacement == Replacement::LeastRecentlyUsed;
        if orders_hits || !eq(self.key(way)) {
            // Out of line, so that the rest is small enough to be inlined.
            return if WAYS > 1 { self.get_mut_slow(tag, replacement, eq) } else { None };
        }
        if WAYS > 1 && replacement == Replacement::SecondChance {
            self.mark(way.0);
        }
        Some(self.value_mut(way))
    }

    #[inline(never)]
    fn get_mut_slow(
        &mut self,
        tag: Tag,
        replacement: Replacement,
        eq: impl Fn(&K) -> bool,
    ) -> Option<&mut V> {
        let way = self.find(tag, eq)?;
        Some(self.record_hit(way, replacement))
    }

    /// Records a hit of an occupied way as the replacement requires, and returns a mutable
    /// reference to its value.
    pub(super) fn record_hit(&mut self, way: usize, replacement: Replacement) -> &mut V {
        assert!(self.is_occupied(way), "a hit of a vacant way");
        self.record(way, replacement);
        self.value_mut(Occupied(way))
    }

    /// Records a hit as the replacement requires.
    #[inline]
    fn record(&self, way: usize, replacement: Replacement) {
        match replacement {
            _ if WAYS == 1 => {}
            Replacement::SecondChance => self.mark(way),
            Replacement::LeastRecentlyUsed => self.make_most_recent(way),
            Replacement::Oldest => {}
        }
    }

    /// Returns the value of a key, and records the hit as the replacement requires.
    #[inline]
    pub(super) fn get(
        &self,
        tag: Tag,
        replacement: Replacement,
        eq: impl Fn(&K) -> bool,
    ) -> Option<&V> {
        let way = self.find_way(tag, eq)?;
        self.record(way.0, replacement);
        Some(self.value(way))
    }

    /// Returns the value of a key, and records no hit.
    #[inline]
    pub(super) fn peek(&self, tag: Tag, eq: impl Fn(&K) -> bool) -> Option<&V> {
        self.find_way(tag, eq).map(|way| self.value(way))
    }

    /// Marks the entry of a way as referenced.
    #[inline]
    fn mark(&self, way: usize) {
        let tag = self.tag(way);
        // Usually the entry is marked already, and the cache line stays clean.
        if !tag.is_referenced() {
            self.tags[way].store(tag.with_reference());
        }
    }

    /// Moves a way to the first rank. Ways that were before it move one rank back.
    fn make_most_recent(&self, way: usize) {
        let rank = self.tag(way).rank();
        for tag in &self.tags {
            let before = tag.load();
            tag.store(before.demoted_if(before.rank() < rank));
        }
        self.tags[way].store(self.tag(way).with_rank(Rank::MOST_RECENT));
    }

    /// Moves a way to the last rank. Ways that were after it move one rank forward.
    fn make_least_recent(&mut self, way: usize) {
        let rank = self.tag(way).rank();
        for tag in &mut self.tags {
            tag.update(|tag| tag.promoted_if(tag.rank() > rank));
        }
        self.tags[way].update(|tag| tag.with_rank(Self::LAST_RANK));
    }

    /// Inserts an entry, whose key must be absent, into the way of the last rank, and evicts the
    /// entry there, unless that has a second chance. Drops entries of older generations.
    #[inline]
    pub(super) fn insert(
        &mut self,
        (tag, generation): (Tag, Generation),
        replacement: Replacement,
        key: K,
        value: V,
    ) -> (&mut V, Option<(K, V)>) {
        if self.is_stale(generation) {
            self.clear();
        }
        let mut way = self.least_recent();
        while replacement == Replacement::SecondChance && self.tag(way).is_referenced() {
            self.tags[way].update(Tag::without_reference);
            self.make_most_recent(way);
            way = self.least_recent();
        }
        let evicted = self.remove(way);
        self.make_most_recent(way);
        self.keys[way].write(key);
        let value = self.values[way].write(value);
        self.tags[way].update(|way| way.occupied_by(tag));
        (value, evicted)
    }

    /// Returns the way of the last rank, which is vacant or the next victim.
    #[inline]
    fn least_recent(&self) -> usize {
        let is_last = |way: usize| self.tag(way).rank() == Self::LAST_RANK;
        (1..WAYS).fold(0, |way, other| if is_last(other) { other } else { way })
    }

    /// Removes the entry of a way, if there is one.
    #[inline]
    pub(super) fn remove(&mut self, way: usize) -> Option<(K, V)> {
        if !self.is_occupied(way) {
            return None;
        }
        self.tags[way].update(Tag::vacated);
        self.make_least_recent(way);
        // SAFETY: the way was occupied, and its key is not read again, as it is vacant now.
        let key = unsafe { self.keys[way].assume_init_read() };
        // SAFETY: as its key.
        Some((key, unsafe { self.values[way].assume_init_read() }))
    }

    /// Returns the entry of a way, if it has one of this generation.
    pub(super) fn entry(&self, way: usize, generation: Generation) -> Option<(&K, &V)> {
        if !self.is_occupied(way) || generation.is_stale(self.tag(way)) {
            return None;
        }
        let way = Occupied(way);
        Some((self.key(way), self.value(way)))
    }

    /// Returns the entry of a way, if it has one of this generation, with a mutable reference to
    /// its value.
    pub(super) fn entry_mut(&mut self, way: usize, generation: Generation) -> Option<(&K, &mut V)> {
        if !self.is_occupied(way) || generation.is_stale(self.tag(way)) {
            return None;
        }
        // SAFETY: the way is occupied.
        let key = unsafe { self.keys[way].assume_init_ref() };
        // SAFETY: as its key.
        Some((key, unsafe { self.values[way].assume_init_mut() }))
    }

    /// Iterates over the entries of this generation, with mutable references to their values.
    pub(super) fn entries_mut(&mut self, generation: Generation) -> EntriesMut<'_, K, V> {
        let ways = if self.is_stale(generation) { 0 } else { WAYS };
        self.tags[..ways].iter().zip(&self.keys).zip(&mut self.values).filter_map(
            |((tag, key), value)| {
                if !tag.load().is_occupied() {
                    return None;
                }
                // SAFETY: the way is occupied.
                let key = unsafe { key.assume_init_ref() };
                // SAFETY: as its key.
                Some((key, unsafe { value.assume_init_mut() }))
            },
        )
    }

    /// Whether there are entries of another generation, which all entries have then.
    #[inline]
    pub(super) fn is_stale(&self, generation: Generation) -> bool {
        (0..WAYS).fold(false, |stale, way| stale | generation.is_stale(self.tag(way)))
    }

    /// Drops all entries.
    #[inline]
    fn clear(&mut self) {
        if needs_drop::<(K, V)>() {
            (0..WAYS).for_each(|way| drop(self.remove(way)));
        }
        self.tags.iter_mut().for_each(|tag| tag.update(Tag::vacated));
    }

    /// Checks invariants 2 and 3, and that the tags of vacant ways have a rank only.
    pub(super) fn validate(&self) -> Result<(), InvariantError> {
        let occupied = (0..WAYS).filter(|&way| self.is_occupied(way)).count();
        for position in 0..WAYS {
            let rank = Rank::new(position);
            let mut of_rank = (0..WAYS).map(|way| self.tag(way)).filter(|tag| tag.rank() == rank);
            let (Some(tag), None) = (of_rank.next(), of_rank.next()) else {
                return Err(InvariantError::new(format!("rank {position} is not that of one way")));
            };
            let is_valid =
                if position < occupied { tag.is_occupied() } else { tag == Tag::vacant(rank) };
            ensure(is_valid, || {
                format!("the way of rank {position} does not fit {occupied} occupied ways")
            })?;
        }
        Ok(())
    }
}

impl<K: Clone, V: Clone, const WAYS: usize> Set<K, V, WAYS> {
    /// Clones the entries, if they are of this generation.
    pub(super) fn clone_of(&self, generation: Generation) -> Self {
        let mut clone = Self::new();
        if self.is_stale(generation) {
            return clone;
        }
        for way in 0..WAYS {
            if let Some((key, value)) = self.entry(way, generation) {
                let (key, value) = (key.clone(), value.clone());
                clone.keys[way].write(key);
                clone.values[way].write(value);
            }
            clone.tags[way].update(|_| self.tag(way));
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

/// The rule for the victim in a full set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Replacement {
    /// The oldest entry without a hit since its insertion or its last second chance. Only the first
    /// of these hits writes a mark, so most hits write nothing.
    #[default]
    SecondChance,
    /// The least recently used entry, exactly. Each hit writes the order of the set.
    LeastRecentlyUsed,
    /// The oldest entry (FIFO). Hits write nothing.
    Oldest,
}
