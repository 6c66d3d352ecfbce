//! Levels: the nodes at bits 24, 30, 36 and 42 of wide addresses, found by hashes.
//!
//! The hash of a node is one of the bits before it.
//!
//! ```text
//!     address    0                 18    24    30    36    42    48
//!                │   direct table  │ slot│     │     │  ↑  │
//!                └────────────── key of level 36 ───────┘
//!     hash       │ directory │ … │ bucket │     slot      │
//!     segment    ▕ pilots ▏ 128 entries: key │ inner │ outer │ values ▏
//! ```
//!
//! The routes of IPv6 have 25 to 48 bits, almost all of them, and a descent to them reads five
//! dependent nodes. Instead, an entry is a copy of the routes of a node, and a lookup reads the
//! entries of the three longest levels at once: they do not depend on each other. The longest level
//! that covers the address has the route. As in a direct table, the nodes remain, and entries are
//! computed from them.
//!
//! *Perfect hashing by pilots*: an entry is in one slot only, so that a lookup compares one key.
//! The slot of a key is determined by its hash and by the pilot of its bucket, a byte. If the slot
//! of a new entry is occupied, another pilot is chosen for its bucket, and the few entries of the
//! bucket move. If no pilot fits, the segment splits by the next bit of the hash (extendible
//! hashing).
//!
//! An entry at bit 42 with the flag [`DEEPER`] has routes of more than 48 bits below it, which are
//! found in the trie.
//!
//! This is not a [`table`](crate::table): its lines and groups are for any number of candidates of
//! a hash, so a lookup searches tags and branches on the result. Here the slot is exact, and the
//! three levels are searched without a branch: the entries of three keys are read in any case, and
//! one of them is selected.
//!
//! Hashes have no seed. If too many keys have equal hashes, which splits do not separate, or if
//! there is no memory, all levels are released, and lookups descend the trie, until they are made
//! again: by `shrink_to_fit`, or when there have been few such routes.
//!
//! Paper: Waldvogel and others, *Scalable high speed IP routing lookups* (1997), for the levels by
//! hash; Fox, Chen and Heath, *A faster algorithm for constructing minimal perfect hash functions*
//! (1992), for the pilots.
#![allow(unsafe_code)]

use core::alloc::Layout;
use core::ptr::NonNull;

use super::pool::Exhausted;
use super::search::{NodeRoutes, RouteMatch};
use super::segment::{DEEPER, ENTRIES, LevelEntry, Segment, hash};
use super::stride::{STRIDE, first_slot};
use crate::key::bits::Address;
use crate::memory::{Allocator, Vec};
use crate::raw::bit_ops::{BitOps, select, select_ref};
use crate::raw::prefetch::BURST;

/// The first level.
pub(super) const FIRST: u32 = 24;

/// The last level.
pub(super) const LAST: u32 = 42;

/// Whether there are levels for this type of addresses: a descent to the last bits of shorter ones
/// is short, too.
#[inline(always)]
pub(super) const fn has_levels<A: Address>() -> bool {
    A::BITS > LAST
}

/// Two segments are merged if they have fewer entries than this: then one is less than half full.
const MERGE_BELOW: usize = ENTRIES * 3 / 8;

/// Entries of a segment that is about to split.
const FULL: usize = ENTRIES * 3 / 4;

/// Limit of the bits of the directory: the bits of a hash above the bits of the bucket.
const MAX_DEPTH: u32 = 26;

/// Segments may be emptier than usual by this factor, as a power of two, before levels are given
/// up: the directory has no more than 2^6 times as many places as there are full segments.
const MAX_SPARSENESS: u32 = 6;

/// Returns the key of a node at `pos`: a one, and the first `pos` bits.
#[inline(always)]
pub(super) const fn key_of(word: u64, pos: u32) -> u64 {
    (word >> 1 | 1 << 63) >> (63 - pos)
}

/// Returns the position of the level that has the routes of `len` bits: more than [`FIRST`].
pub(super) const fn level_of(len: u32) -> u32 {
    let pos = (len - 1) / STRIDE * STRIDE;
    if pos < LAST { pos } else { LAST }
}

/// The key of a node, and its hash, which an update computes once.
#[derive(Clone, Copy)]
pub(super) struct LevelKey {
    key: u64,
    hash: u64,
}

impl LevelKey {
    /// The key of no node.
    pub(super) const NONE: Self = Self { key: 0, hash: 0 };

    #[inline]
    pub(super) const fn new(word: u64, pos: u32) -> Self {
        let key = key_of(word, pos);
        Self { key, hash: hash(key) }
    }
}

/// The entries of all levels.
pub(super) struct Levels<M: Allocator + Clone> {
    /// Segments by the first `depth` bits of a hash: consecutive places share one of less depth.
    directory: Vec<NonNull<Segment>, M>,
    /// 64 less the bits of an index of the directory. At most 63: the directory has two places.
    shift: u32,
    segments: usize,
    len: usize,
}

// SAFETY: a segment belongs to its `Levels` alone, and has plain data.
unsafe impl<M: Allocator + Clone + Send> Send for Levels<M> {}

// SAFETY: as above; shared references only read.
unsafe impl<M: Allocator + Clone + Sync> Sync for Levels<M> {}

impl<M: Allocator + Clone> Levels<M> {
    /// Creates levels without entries, in which that number of entries splits each segment once or
    /// not at all, as a rule.
    pub(super) fn with_capacity_in(entries: usize, memory: M) -> Result<Self, Exhausted> {
        let depth = (entries / FULL).max(1).ilog2();
        let mut directory = Vec::new_in(memory);
        directory.try_reserve_exact(2 << depth).map_err(|_| Exhausted)?;
        let mut levels = Self { directory, shift: 63 - depth, segments: 0, len: 0 };
        for _ in 0..1 << depth {
            let segment = new_segment(depth, levels.directory.allocator())?;
            // Two places, since the directory has at least two.
            levels.directory.extend([segment; 2]);
            levels.segments += 1;
        }
        Ok(levels)
    }

    /// Returns the number of entries.
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    #[inline(always)]
    fn segment(&self, hash: u64) -> &Segment {
        let place = (hash >> self.shift) as usize;
        debug_assert!(place < self.directory.len());
        // SAFETY: the directory has a place for each value of the first bits.
        let segment = unsafe { self.directory.get_unchecked(place) };
        // SAFETY: segments in the directory are allocated, and `self` is borrowed.
        unsafe { segment.as_ref() }
    }

    fn segment_mut(&mut self, hash: u64) -> &mut Segment {
        let mut segment = self.directory[(hash >> self.shift) as usize];
        // SAFETY: segments in the directory are allocated, and `self` is borrowed mutably.
        unsafe { segment.as_mut() }
    }

    /// Returns the entry that may have this key.
    #[inline(always)]
    pub(super) fn candidate(&self, key: u64) -> &LevelEntry {
        let hash = hash(key);
        self.segment(hash).candidate(hash)
    }

    /// Returns the entry of a key.
    #[inline]
    pub(super) fn get(&self, LevelKey { key, hash }: LevelKey) -> Option<&LevelEntry> {
        Some(self.segment(hash).candidate(hash)).filter(|entry| entry.key == key)
    }

    /// Inserts, replaces or removes the entry of a key. Fails if there is no memory, or if too many
    /// hashes are equal.
    pub(super) fn set(&mut self, entry: LevelEntry) -> Result<(), Exhausted> {
        let hash = hash(entry.key);
        if !entry.is_needed() {
            self.remove(hash, entry.key);
            return Ok(());
        }
        if self.segment_mut(hash).replace(hash, entry) {
            return Ok(());
        }
        self.insert(hash, entry)
    }

    /// Inserts entries of different keys, at most a burst, which are new. Prefetches their pilots
    /// and slots.
    pub(super) fn insert_batch(&mut self, entries: &[LevelEntry]) -> Result<(), Exhausted> {
        debug_assert!(entries.len() <= BURST);
        let mut hashes = [0; BURST];
        for (entry, own) in entries.iter().zip(&mut hashes) {
            *own = hash(entry.key);
            self.segment(*own).prefetch_pilot(*own);
        }
        let hashes = &hashes[..entries.len()];
        hashes.iter().for_each(|&hash| self.segment(hash).prefetch_slot(hash));
        hashes.iter().zip(entries).try_for_each(|(&hash, entry)| self.insert(hash, *entry))
    }

    /// Inserts the entry of a new key.
    fn insert(&mut self, hash: u64, entry: LevelEntry) -> Result<(), Exhausted> {
        while !self.segment_mut(hash).insert(hash, entry) {
            self.split(hash)?;
        }
        self.len += 1;
        Ok(())
    }

    /// Sets the node and its routes in the entry of a key, which exists. Removes it if it is not
    /// needed any more.
    #[inline]
    pub(super) fn set_routes(&mut self, at: LevelKey, node: NodeRoutes) {
        let LevelKey { key, hash } = at;
        if !self.segment_mut(hash).set_routes(hash, key, node) {
            self.remove(hash, key);
        }
    }

    fn remove(&mut self, hash: u64, key: u64) {
        if self.segment_mut(hash).remove(hash, key) {
            self.len -= 1;
            self.merge(hash);
        }
    }

    /// Splits the segment of a hash by the next bit.
    fn split(&mut self, hash: u64) -> Result<(), Exhausted> {
        let depth = self.segment(hash).depth + 1;
        if depth > 64 - self.shift {
            self.double_directory()?;
        }
        let mut high = new_segment(depth, self.directory.allocator())?;
        let low = self.directory[(hash >> self.shift) as usize];
        // SAFETY: just allocated; there is no other reference.
        self.segment_mut(hash).split_to(unsafe { high.as_mut() }, depth);
        self.assign(hash, depth - 1, [low, high]);
        self.segments += 1;
        Ok(())
    }

    /// Sets the places of a segment of this depth to two others, for either value of the next bit.
    fn assign(&mut self, hash: u64, depth: u32, halves: [NonNull<Segment>; 2]) {
        let places = 1 << (64 - self.shift - depth);
        let first = (hash >> self.shift) as usize & !(places - 1);
        self.directory[first..first + places / 2].fill(halves[0]);
        self.directory[first + places / 2..first + places].fill(halves[1]);
    }

    fn double_directory(&mut self) -> Result<(), Exhausted> {
        let depth = 64 - self.shift + 1;
        let usual = (self.segments + 1).ilog2();
        if depth > MAX_DEPTH.min(usual + MAX_SPARSENESS) {
            return Err(Exhausted);
        }
        let mut directory = Vec::new_in(self.directory.allocator().clone());
        directory.try_reserve_exact(2 * self.directory.len()).map_err(|_| Exhausted)?;
        directory.extend(self.directory.iter().flat_map(|&segment| [segment; 2]));
        self.directory = directory;
        self.shift -= 1;
        Ok(())
    }

    /// Merges the segment of a hash with the one that differs in the last bit, if both have few
    /// entries.
    fn merge(&mut self, hash: u64) {
        let depth = self.segment(hash).depth;
        if depth == 0 {
            return;
        }
        let buddy = hash ^ 1 << (64 - depth);
        let one = self.segment(hash);
        if one.len as usize >= MERGE_BELOW {
            // Most often: the other segment is not read.
            return;
        }
        let other = self.segment(buddy);
        if other.depth != depth || (one.len + other.len) as usize >= MERGE_BELOW {
            return;
        }
        let merged = new_segment(depth - 1, self.directory.allocator());
        let Ok(mut merged) = merged else { return };
        // SAFETY: just allocated; there is no other reference.
        let segment = unsafe { merged.as_mut() };
        for entry in one.entries().chain(other.entries()) {
            if !segment.insert(self::hash(entry.key), entry) {
                return self.free_segment(merged);
            }
        }
        let old = [hash, buddy].map(|hash| self.directory[(hash >> self.shift) as usize]);
        self.assign(hash, depth - 1, [merged; 2]);
        self.segments -= 1;
        old.into_iter().for_each(|segment| self.free_segment(segment));
    }

    /// Returns the allocated bytes.
    pub(super) fn allocation_size(&self) -> usize {
        self.segments * size_of::<Segment>()
            + self.directory.capacity() * size_of::<NonNull<Segment>>()
    }

    /// Returns all entries, in any order.
    pub(super) fn entries(&self) -> impl Iterator<Item = LevelEntry> {
        self.segments().flat_map(|segment| {
            // SAFETY: segments in the directory are allocated, and `self` is borrowed.
            unsafe { segment.as_ref() }.entries()
        })
    }

    /// Frees a segment that is no longer in the directory.
    fn free_segment(&self, segment: NonNull<Segment>) {
        // SAFETY: allocated by `new_segment` from the same allocator, with this layout; segments
        // have plain data.
        unsafe { self.directory.allocator().deallocate(segment.cast(), Layout::new::<Segment>()) };
    }

    /// Returns each segment once.
    fn segments(&self) -> impl Iterator<Item = NonNull<Segment>> {
        let mut next = 0;
        core::iter::from_fn(move || {
            let segment = *self.directory.get(next)?;
            // SAFETY: segments in the directory are allocated, and `self` is borrowed.
            let depth = unsafe { segment.as_ref() }.depth;
            next += 1 << (64 - self.shift - depth);
            Some(segment)
        })
    }
}

impl<M: Allocator + Clone> Drop for Levels<M> {
    fn drop(&mut self) {
        // The iterator has read a segment before it returns it.
        self.segments().for_each(|segment| self.free_segment(segment));
    }
}

/// Allocates an empty segment.
fn new_segment(depth: u32, memory: &impl Allocator) -> Result<NonNull<Segment>, Exhausted> {
    let segment = memory.allocate_zeroed(Layout::new::<Segment>());
    let mut segment = segment.map_err(|_| Exhausted)?.cast::<Segment>();
    // SAFETY: zeros are a valid segment, to which there is no other reference.
    unsafe { segment.as_mut() }.depth = depth;
    Ok(segment)
}

/// The entries of the three longest levels that an address may have.
#[derive(Clone, Copy)]
pub(super) struct Candidates<'l>([&'l LevelEntry; 3]);

/// The result of a search in all levels.
pub(super) enum Found {
    Route(RouteMatch),
    /// There is none: the longest route has at most [`FIRST`] bits.
    None,
    /// Routes of more than 48 bits may match.
    Deeper,
}

const LEVELS: [u32; 3] = [LAST, LAST - STRIDE, LAST - 2 * STRIDE];

impl<M: Allocator + Clone> Levels<M> {
    /// Returns the entries to be searched.
    #[inline(always)]
    pub(super) fn candidates(&self, word: u64) -> Candidates<'_> {
        Candidates(LEVELS.map(|pos| self.candidate(key_of(word, pos))))
    }

    /// Returns the longest route that is in an entry, its length only if `LEN`. Branch-free for the
    /// three longest levels, since the level is unpredictable.
    #[inline(always)]
    pub(super) fn longest<const FAST: bool, const LEN: bool>(
        &self,
        ops: BitOps<FAST>,
        word: u64,
        Candidates([a, b, c]): Candidates<'_>,
    ) -> Found {
        let matches = |entry: &LevelEntry, pos: u32, flags: u64| {
            entry.matches(key_of(word, pos), first_slot(word << pos), flags)
        };
        let at_a = matches(a, LEVELS[0], DEEPER);
        let at_b = matches(b, LEVELS[1], 0);
        let at_c = matches(c, LEVELS[2], 0);
        let (mut entry, mut pos) = (select_ref(at_b, b, c), select(at_b, 36, 30));
        (entry, pos) = (select_ref(at_a, a, entry), select(at_a, 42, pos));
        let mut pos = pos as u32;
        if at_a | at_b | at_c == 0 {
            (entry, pos) = (self.candidate(key_of(word, FIRST)), FIRST);
            if matches(entry, FIRST, 0) == 0 {
                return Found::None;
            }
        }
        if entry.inner & DEEPER != 0 {
            return Found::Deeper;
        }
        Found::Route(entry.longest::<FAST, LEN>(ops, first_slot(word << pos), pos))
    }
}

impl<'l> Candidates<'l> {
    pub(super) const NONE: Self = Self([&LevelEntry::VACANT; 3]);

    #[inline(always)]
    pub(super) fn each(self) -> [&'l LevelEntry; 3] {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Global;
    use crate::routes::search::RouteBits;

    fn entry(number: u64) -> LevelEntry {
        LevelEntry::new(
            1 << 42 | number,
            7,
            RouteBits { inner: 4, outer: number, values: number as u32 },
            false,
        )
    }

    fn entries(levels: &Levels<Global>) -> Vec<u64> {
        let mut numbers: Vec<u64> = levels.entries().map(|entry| entry.outer).collect();
        numbers.sort_unstable();
        numbers
    }

    #[test]
    fn entries_are_found_while_segments_split_and_merge() {
        let count = if cfg!(miri) { 60 } else { 20_000 };
        let numbers = |step: u64| (0..count).map(move |number| number * step);
        for step in [1, 64, 1 << 20] {
            let mut levels = Levels::with_capacity_in(0, Global).ok().unwrap();
            for number in numbers(step) {
                assert!(levels.set(entry(number)).is_ok());
                assert_eq!(levels.candidate(entry(number).key), &entry(number));
            }
            assert!(entries(&levels).into_iter().eq(numbers(step)));
            for number in numbers(step) {
                assert_eq!(levels.candidate(entry(number).key), &entry(number));
                let gone = LevelEntry { inner: 0, outer: 0, ..entry(number) };
                assert!(levels.set(gone).is_ok());
                assert_ne!(levels.candidate(entry(number).key).key, entry(number).key);
            }
            assert_eq!((levels.len(), levels.segments), (0, 1), "step {step}");
        }
    }

    #[test]
    fn keys_of_levels_differ() {
        let keys = [FIRST, 30, 36, LAST].map(|pos| key_of(0, pos));
        assert_eq!(keys, [1 << 24, 1 << 30, 1 << 36, 1 << 42]);
        assert_eq!(key_of(u64::MAX, LAST), (1 << 43) - 1);
        assert_eq!(
            [25, 30, 31, 36, 37, 42, 43, 48, 49, 128].map(level_of),
            [24, 24, 30, 30, 36, 36, 42, 42, 42, 42]
        );
    }
}
