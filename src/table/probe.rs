//! Searching the groups of a segment: single lookups, bursts of lookups, and slots by number.
//!
//! The stages of a burst: the cache misses of its lookups overlap.
//!
//! ```text
//! hash 0    prefetch tags             match, prefetch entry           visit
//! hash 1      prefetch tags             match, prefetch entry           visit
//! …             …                         …                               …
//! hash 31         prefetch tags             match, prefetch entry           visit
//! ```
//!
//! A CPU fetches ten cache lines or more at a time; a lookup by itself waits for one after the
//! other. 32 go through the stages at a time, which keeps the CPU busy and their state in the L1
//! cache.
//!
//! The slots of each index of the directory are numbered, and then the places of the stash.

use super::Table;
use super::iter_hash::SlotsOfHash;
use super::segment::Segment;
use super::tags::GROUP;
use crate::memory::Allocator;
use crate::probes::Observer;
use crate::raw::prefetch::BURST;

/// Where an entry is, and its hash. Any change of the table makes it void.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Position {
    /// The index in the directory; [`Position::STASH`] if the slot is in the stash.
    pub(super) index: usize,
    pub(super) slot: usize,
    hash: u64,
}

impl Position {
    pub(super) const STASH: usize = usize::MAX;

    pub(super) fn new(index: usize, slot: usize, hash: u64) -> Self {
        Self { index, slot, hash }
    }

    pub(super) fn in_stash(slot: usize, hash: u64) -> Self {
        Self { index: Self::STASH, slot, hash }
    }

    pub(crate) fn hash(self) -> u64 {
        self.hash
    }
}

/// Moves the branch that calls it out of the way of the others.
#[cold]
#[inline(always)]
fn unlikely() {}

impl<T, A: Allocator + Clone> Table<T, A> {
    /// The entry of this hash for which `eq` returns true.
    #[inline(always)]
    pub(crate) fn find(&self, hash: u64, mut eq: impl FnMut(&T) -> bool) -> Option<&T> {
        let hit = |segment: Segment<T>, slot| Some(segment.get(slot));
        let found = self.search(hash, &mut eq, hit, |_, _| None);
        if found.is_some() || !self.has_extras() {
            return found;
        }
        self.search_stash(hash, eq).map(|at| &*self.stash[at].1)
    }

    /// A mutable reference to the entry of this hash for which `eq` returns true.
    #[inline(always)]
    pub(crate) fn find_mut(&mut self, hash: u64, mut eq: impl FnMut(&T) -> bool) -> Option<&mut T> {
        let hit = |segment: Segment<T>, slot| Some(segment.get_mut(slot));
        if let Some(found) = self.search(hash, &mut eq, hit, |_, _| None) {
            return Some(found);
        }
        self.stashed(hash, eq).map(|at| &mut *self.stash[at].1)
    }

    /// A mutable reference to the entry of this hash for which `eq` returns true, if it is in the
    /// segments: see [`Self::has_extras`].
    #[inline(always)]
    pub(crate) fn find_mut_in_segments(
        &mut self,
        hash: u64,
        mut eq: impl FnMut(&T) -> bool,
    ) -> Option<&mut T> {
        let hit = |segment: Segment<T>, slot| Some(segment.get_mut(slot));
        self.search(hash, &mut eq, hit, |_, _| None)
    }

    /// Calls `hit` with the entry of this hash for which `eq` returns true, or `miss` if there is
    /// none in the segments: see [`Self::has_extras`].
    #[inline(always)]
    pub(crate) fn find_or<'t, R>(
        &'t self,
        hash: u64,
        mut eq: impl FnMut(&T) -> bool,
        hit: impl FnOnce(&'t T) -> R,
        miss: impl FnOnce() -> R,
    ) -> R {
        self.search(hash, &mut eq, |segment, slot| hit(segment.get(slot)), |_, _| miss())
    }

    /// Calls `hit` with the slot of the entry of this hash for which `eq` returns true, or `miss`
    /// with the first free slot if there is none in the segments. With two continuations each
    /// outcome has a path of its own.
    #[inline(always)]
    pub(super) fn search<R>(
        &self,
        hash: u64,
        eq: &mut impl FnMut(&T) -> bool,
        hit: impl FnOnce(Segment<T>, usize) -> R,
        miss: impl FnOnce(Segment<T>, usize) -> R,
    ) -> R {
        self.search_observed(hash, eq, hit, miss, &mut ())
    }

    /// [`Self::search`], observed: a group is a node.
    #[inline(always)]
    fn search_observed<R>(
        &self,
        hash: u64,
        eq: &mut impl FnMut(&T) -> bool,
        hit: impl FnOnce(Segment<T>, usize) -> R,
        miss: impl FnOnce(Segment<T>, usize) -> R,
        observer: &mut impl Observer,
    ) -> R {
        let segment = self.directory.segment(hash);
        let mut offset = self.home(hash);
        loop {
            let group = segment.group(offset);
            observer.node();
            let mut matches = group.matches_hash(hash);
            // Not as an iterator, which would clear the lowest bit before the next slot is needed.
            while !matches.is_empty() {
                let slot = offset + matches.lowest();
                observer.entry();
                if eq(segment.get(slot)) {
                    return hit(segment, slot);
                }
                unlikely();
                matches = matches.without_lowest();
            }
            // T1: there is one in the segment.
            let free = group.free();
            if !free.is_empty() {
                return miss(segment, offset + free.lowest());
            }
            unlikely();
            offset = self.next(offset);
        }
    }

    /// The index of an entry in the stash.
    #[inline(always)]
    pub(super) fn stashed(&self, hash: u64, eq: impl FnMut(&T) -> bool) -> Option<usize> {
        if self.has_extras() { self.search_stash(hash, eq) } else { None }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn search_stash(&self, hash: u64, mut eq: impl FnMut(&T) -> bool) -> Option<usize> {
        self.stash.iter().position(|(other, entry)| *other == hash && eq(entry))
    }

    /// [`Self::find`], observed: a group is a node.
    pub(crate) fn find_observed(
        &self,
        hash: u64,
        mut eq: impl FnMut(&T) -> bool,
        observer: &mut impl Observer,
    ) -> Option<&T> {
        let hit = |segment: Segment<T>, slot| Some(segment.get(slot));
        let found = self.search_observed(hash, &mut eq, hit, |_, _| None, observer);
        if found.is_some() {
            return found;
        }
        let found = self.stashed(hash, |entry| {
            observer.entry();
            eq(entry)
        });
        found.map(|at| &*self.stash[at].1)
    }

    /// The position of the entry of this hash for which `eq` returns true.
    #[inline(always)]
    pub(crate) fn locate(&self, hash: u64, mut eq: impl FnMut(&T) -> bool) -> Option<Position> {
        let hit = |_, slot| Some(Position { index: self.directory.index(hash), slot, hash });
        let found = self.search(hash, &mut eq, hit, |_, _| None);
        if found.is_some() || !self.has_extras() {
            return found;
        }
        Some(Position::in_stash(self.search_stash(hash, eq)?, hash))
    }

    /// The segment of a position in it, if there is an entry.
    #[inline]
    pub(super) fn occupied(&self, at: Position) -> Option<Segment<T>> {
        if at.index >= self.directory.len() {
            return None;
        }
        let segment = self.directory.segment(at.index as u64);
        segment.is_full(self.mask, at.slot).then_some(segment)
    }

    /// The entry at a position.
    #[inline]
    pub(crate) fn get(&self, at: Position) -> Option<&T> {
        if at.index == Position::STASH {
            return self.stash.get(at.slot).map(|(_, entry)| &**entry);
        }
        Some(self.occupied(at)?.get(at.slot))
    }

    /// A mutable reference to the entry at a position.
    #[inline]
    pub(crate) fn get_mut(&mut self, at: Position) -> Option<&mut T> {
        if at.index == Position::STASH {
            return self.stash.get_mut(at.slot).map(|(_, entry)| &mut **entry);
        }
        Some(self.occupied(at)?.get_mut(at.slot))
    }

    fn is_same_place(&self, a: Position, b: Position) -> bool {
        let is_stashed = |at: Position| at.index == Position::STASH;
        match (is_stashed(a), is_stashed(b)) {
            (true, true) => a.slot == b.slot,
            (false, false) => {
                let segment = |at: Position| self.directory.segment(at.index as u64);
                a.slot == b.slot && segment(a) == segment(b)
            }
            _ => false,
        }
    }

    /// Mutable references to entries at several positions.
    ///
    /// # Panics
    ///
    /// If two positions are the same.
    pub(crate) fn get_many_mut<const N: usize>(
        &mut self,
        at: [Option<Position>; N],
    ) -> [Option<&mut T>; N] {
        for (i, a) in at.iter().enumerate() {
            let is_same =
                |b: &Option<Position>| a.zip(*b).is_some_and(|(a, b)| self.is_same_place(a, b));
            assert!(!at[..i].iter().any(is_same), "two keys have the same entry");
        }
        let (directory, mask) = (&self.directory, self.mask);
        let mut found = at.map(|at| {
            let at = at.filter(|at| at.index != Position::STASH)?;
            let segment = directory.segment(at.index as u64);
            segment.is_full(mask, at.slot).then(|| segment.get_mut(at.slot))
        });
        for (slot, (_, entry)) in self.stash.iter_mut().enumerate() {
            let is_it = |at: Position| at.index == Position::STASH && at.slot == slot;
            if let Some(place) = at.iter().position(|at| at.is_some_and(is_it)) {
                found[place] = Some(&mut **entry);
            }
        }
        found
    }
}

/// Hashes, and the first entry in the home group of each that has its tag.
pub(crate) struct Burst<'t, T> {
    pub(crate) hashes: [u64; BURST],
    pub(crate) candidates: [Option<&'t T>; BURST],
}

impl<T> Burst<'_, T> {
    /// A burst without hashes. It serves for any number of them, one after the other.
    #[inline(always)]
    pub(crate) const fn new() -> Self {
        Self { hashes: [0; BURST], candidates: [None; BURST] }
    }
}

impl<T, A: Allocator + Clone> Table<T, A> {
    /// Takes the first hashes, up to [`BURST`], through the first two stages, and returns their
    /// number; the caller compares.
    #[inline]
    pub(crate) fn find_candidates<'t>(
        &'t self,
        hashes: impl Iterator<Item = u64>,
        burst: &mut Burst<'t, T>,
    ) -> usize {
        let mut count = 0;
        for (own, hash) in burst.hashes.iter_mut().zip(hashes) {
            *own = hash;
            self.directory.segment(hash).prefetch_group(self.home(hash));
            count += 1;
        }
        for (&hash, candidate) in burst.hashes[..count].iter().zip(&mut burst.candidates) {
            let (segment, home) = (self.directory.segment(hash), self.home(hash));
            let matches = segment.group(home).matches_hash(hash);
            *candidate = if matches.is_empty() {
                None
            } else {
                let slot = home + matches.lowest();
                segment.prefetch_slot(slot);
                // A box would be read here: only its pointer has been prefetched.
                Segment::<T>::IS_INLINE.then(|| segment.get(slot))
            };
        }
        count
    }
}

impl<T, A: Allocator + Clone> Table<T, A> {
    /// The numbers of the slots of a segment.
    fn width(&self) -> usize {
        self.mask + GROUP
    }

    /// The number of the first place of the stash.
    fn first_stashed(&self) -> usize {
        if self.directory.is_allocated() { self.directory.len() * self.width() } else { 0 }
    }

    /// All numbers are below this one.
    pub(crate) fn end_of_numbers(&self) -> usize {
        self.first_stashed() + self.stash.len()
    }

    /// The number of an occupied slot.
    pub(crate) fn number_of(&self, at: Position) -> usize {
        if at.index == Position::STASH {
            return self.first_stashed() + at.slot;
        }
        let depth = self.directory.segment(at.index as u64).header(self.mask).depth;
        (at.index & ((1 << depth) - 1)) * self.width() + at.slot
    }

    /// The occupied slot with a number. Its hash is known in the bits that choose the segment.
    pub(crate) fn at_number(&self, number: usize) -> Option<Position> {
        if let Some(slot) = number.checked_sub(self.first_stashed()) {
            let &(hash, _) = self.stash.get(slot)?;
            return Some(Position::in_stash(slot, hash));
        }
        let index = number / self.width();
        let at = Position::new(index, number % self.width(), index as u64);
        let segment = self.occupied(at)?;
        // An index above the segment's own one has its slots, too, by other numbers.
        (index >> segment.header(self.mask).depth == 0).then_some(at)
    }

    /// The numbers of all occupied slots.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = usize> {
        let (mask, width) = (self.mask, self.width());
        let in_segments = self.directory.numbers(mask).flat_map(move |(number, segment)| {
            segment.slots(mask).map(move |(_, slot)| number * width + slot)
        });
        in_segments.chain(self.first_stashed()..self.end_of_numbers())
    }

    /// The numbers of the entries that may have a hash.
    pub(crate) fn numbers_of_hash(&self, hash: u64) -> impl Iterator<Item = usize> {
        let index = self.directory.index(hash);
        let slots =
            SlotsOfHash::new(self, hash).map(move |(_, slot)| Position::new(index, slot, hash));
        let is_it = move |&slot: &usize| self.stash[slot].0 == hash;
        let stashed = (0..self.stash.len()).filter(is_it);
        slots
            .chain(stashed.map(move |slot| Position::in_stash(slot, hash)))
            .map(|at| self.number_of(at))
    }
}
