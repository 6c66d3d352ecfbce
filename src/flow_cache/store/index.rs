//! The index: from the keys of flows and aliases to their ids.
//!
//! ```text
//!     key ── hash ──▸ lines ──▸ id ──▸ record with the key and its hash
//!                        │ after a flood of equal hashes
//!                        └──▸ old lines, with the hash from before; emptied step by step
//! ```
//!
//! The keys are in the records only. A record stores its hash, so a removal neither hashes nor
//! compares, and cannot fail because of a key that violates the contract of `Hash` and `Eq`.
//!
//! If keys have equal hashes, a seed of the cache's own replaces the hasher. Records move to other
//! lines with each insertion, in the order of their slots; lookups that find nothing go on in the
//! old lines until then.

use core::hash::{BuildHasher, Hash};

use super::slots::{KeyId, Store};
use crate::hash::{Query, Reseed};
use crate::invariant::InvariantError;
use crate::memory::Allocator;
use crate::probes::Observer;
use crate::table::error::TryReserveError;
use crate::table::lines::{Lines, fold};

/// Slots whose flows move to other lines with each insertion.
const MOVED: u32 = 8;

/// The lines of a cache and their hash.
#[derive(Clone, Debug)]
pub(crate) struct Index<S, A: Allocator + Clone> {
    pub(crate) lines: Lines<A>,
    hasher: S,
    /// The hashes of `lines` and `old` after a flood.
    seeds: Option<Seeds>,
    /// Lines with a hash that is not random, until all keys have moved.
    old: Lines<A>,
    /// The keys of flows in slots before this one have moved.
    next: u32,
}

/// The hashes of an index that was reseeded.
#[derive(Clone, Debug)]
struct Seeds {
    /// Hashes all keys of the lines.
    current: Reseed,
    /// The seed of the old lines; none if their hash was the hasher's.
    old: Option<Reseed>,
    /// Number of reseedings.
    count: usize,
    /// With fewer keys no other seed is drawn: no seed helps against equal keys.
    again_at: usize,
}

impl<S, A: Allocator + Clone> Index<S, A> {
    /// An index without keys, whose memory will be from `memory`.
    pub(crate) fn new_in(hasher: S, memory: A) -> Self {
        let (lines, old) = (Lines::new_in(memory.clone()), Lines::new_in(memory));
        Self { lines, hasher, seeds: None, old, next: 0 }
    }

    /// Whether keys move to lines with another hash.
    #[inline]
    fn is_moving(&self) -> bool {
        self.old.has_lines()
    }

    /// Number of keys.
    pub(crate) fn len(&self) -> usize {
        self.lines.len() + self.old.len()
    }

    /// How often the hash was replaced.
    pub(crate) fn reseeds(&self) -> usize {
        self.seeds.as_ref().map_or(0, |seeds| seeds.count)
    }

    /// Whether keys have another hash than that by the hasher.
    #[inline(always)]
    pub(crate) const fn is_reseeded(&self) -> bool {
        self.seeds.is_some()
    }

    /// Returns the id with this hash for which `eq` returns true, unless it is in old lines.
    #[inline(always)]
    pub(crate) fn find_current(
        &self,
        hash: u32,
        mut eq: impl FnMut(KeyId) -> bool,
        observer: &mut impl Observer,
    ) -> Option<KeyId> {
        let found = self.lines.find_observed(hash, |bits| eq(KeyId::from_bits(bits)), observer);
        found.map(KeyId::from_bits)
    }

    /// Inserts an id whose key is not in the index.
    ///
    /// # Errors
    ///
    /// If memory cannot be allocated. The index is unchanged.
    #[inline]
    pub(crate) fn insert<K, V>(
        &mut self,
        hash: u32,
        id: KeyId,
        store: &Store<K, V, A>,
    ) -> Result<(), TryReserveError> {
        self.lines.insert(hash, id.bits(), store.hasher_of_bits())
    }

    /// Removes an id, given the hash in its record.
    #[inline]
    pub(crate) fn remove(&mut self, hash: u32, id: KeyId) {
        if !self.lines.remove(hash, id.bits()) {
            self.old.remove(hash, id.bits());
        }
    }

    /// Makes room for a key with this hash: it is [inserted](Self::insert_reserved) without
    /// allocating if nothing changes before but that the key with the hash `instead` is removed.
    ///
    /// # Errors
    ///
    /// If memory cannot be allocated. The index is unchanged.
    #[inline]
    pub(crate) fn try_reserve<K, V>(
        &mut self,
        hash: u32,
        instead: Option<u32>,
        store: &Store<K, V, A>,
    ) -> Result<(), TryReserveError> {
        // It may be in the old lines.
        let instead = instead.filter(|_| !self.is_moving());
        self.lines.reserve_place(hash, instead, store.hasher_of_bits())
    }

    /// Prepares [`replace_key`](Self::replace_key) to a key with this hash.
    ///
    /// # Errors
    ///
    /// If memory cannot be allocated. The index is unchanged.
    #[inline]
    pub(crate) fn reserve_replacement<K, V>(
        &mut self,
        hash: u32,
        store: &Store<K, V, A>,
    ) -> Result<(), TryReserveError> {
        if self.is_moving() {
            return self.try_reserve(hash, None, store);
        }
        self.lines.grow_if_overdue(store.hasher_of_bits())
    }

    /// Gives an id the key of another hash, instead of that with the hash `before`, after
    /// [`reserve_replacement`](Self::reserve_replacement).
    ///
    /// # Errors
    ///
    /// If memory cannot be allocated. The index is unchanged.
    #[inline]
    pub(crate) fn replace_key(
        &mut self,
        (before, hash): (u32, u32),
        id: KeyId,
    ) -> Result<(), TryReserveError> {
        if self.is_moving() {
            self.remove(before, id);
            self.insert_reserved(hash, id);
            return Ok(());
        }
        self.lines.rehash((before, hash), id.bits())
    }

    /// Whether a new key instead of a removed one needs a [rehashing](Lines::rehash) only: no
    /// growth, and no step of a replacement of the seed.
    #[inline(always)]
    pub(crate) fn can_rehash(&self) -> bool {
        self.seeds.is_none() && self.lines.has_room_for_rehash()
    }

    /// Inserts an id for which there is [room](Self::try_reserve).
    #[inline]
    pub(crate) fn insert_reserved(&mut self, hash: u32, id: KeyId) {
        self.lines.insert_reserved(hash, id.bits());
    }

    /// Prefetches some of the hashes that the next growth reads, after an insertion.
    #[inline]
    pub(crate) fn prefetch_growth<K, V>(&self, store: &Store<K, V, A>) {
        self.lines.before_split(|bits| store.prefetch_hash(KeyId::from_bits(bits)));
    }

    /// Makes the lines smaller by one step, if it is due.
    #[inline]
    pub(crate) fn shrink_step<K, V>(&mut self, store: &Store<K, V, A>) {
        self.lines.shrink_step(store.hasher_of_bits());
    }

    /// Whether the index is flooded, or is still moving keys to the new hash.
    #[inline]
    pub(crate) fn needs_reseeding(&self) -> bool {
        self.lines.is_flooded() || self.is_moving()
    }

    /// Removes all ids, and frees the memory.
    pub(crate) fn clear(&mut self) {
        self.lines.clear();
        self.old.clear();
    }

    /// Checks that each key is in the lines that its hash belongs to.
    pub(crate) fn validate<K, V>(&self, store: &Store<K, V, A>) -> Result<(), InvariantError> {
        let hash_of = store.hasher_of_bits();
        self.lines.validate(hash_of)?;
        self.old.validate(hash_of)
    }

    pub(crate) fn allocation_size(&self) -> usize {
        self.lines.allocation_size() + self.old.allocation_size()
    }
}

impl<S: BuildHasher, A: Allocator + Clone> Index<S, A> {
    /// The hash of a query, given its normalised key: by the caller, or by the hasher.
    #[inline(always)]
    pub(crate) fn hash<K: Hash>(&self, query: impl Query<K>, key: &K) -> u32 {
        fold(query.hash_with(&Normalised { hasher: &self.hasher, key }))
    }

    /// The hash of a key in the current lines, given its [hash](Self::hash), which a reseeding
    /// replaces.
    #[inline]
    pub(crate) fn current_hash<K: Hash>(&self, hash: u32, key: &K) -> u32 {
        self.seeds.as_ref().map_or(hash, |seeds| fold(seeds.current.hash_one(key)))
    }

    /// Returns the id of a key that is not in the current lines, given its hash.
    #[cold]
    #[inline(never)]
    pub(crate) fn find_old<K: Hash>(
        &self,
        hash: u32,
        key: &K,
        mut eq: impl FnMut(KeyId) -> bool,
        observer: &mut impl Observer,
    ) -> Option<KeyId> {
        if !self.is_moving() {
            return None;
        }
        let seed = self.seeds.as_ref()?.old.as_ref();
        let hash = seed.map_or(hash, |seed| fold(seed.hash_one(key)));
        let found = self.old.find_observed(hash, |bits| eq(KeyId::from_bits(bits)), observer);
        found.map(KeyId::from_bits)
    }

    /// Moves an id that was found beyond its home line by a hash there, if there is a free
    /// slot by now.
    #[inline]
    pub(crate) fn bring_home<K, V>(&mut self, hash: u32, id: KeyId, store: &Store<K, V, A>) {
        if self.seeds.is_none() {
            let is_its_hash = || store.try_hash_of(id) == Some(hash);
            self.lines.bring_home(hash, id.bits(), is_its_hash);
        }
    }

    /// Draws a seed, if hashes are equal, and moves some flows to lines with that hash.
    /// `has_memory` returns whether the index may have as many bytes.
    #[cold]
    #[inline(never)]
    pub(crate) fn reseed<K: Hash, V>(
        &mut self,
        key: &K,
        store: &mut Store<K, V, A>,
        has_memory: impl Fn(usize) -> bool,
    ) {
        if !self.is_moving() {
            self.begin_reseeding(key, &has_memory);
        }
        for _ in 0..MOVED {
            if self.next >= store.flows.slot_count() || self.old.len() == 0 {
                return self.old.clear();
            }
            let mut id = Some(KeyId::slot(self.next));
            while let Some(at) = id {
                let bytes = self.allocation_size() + self.lines.growth(0);
                if !has_memory(bytes) || self.move_entry(at, store).is_err() {
                    return;
                }
                id = store.next_key(at);
            }
            self.next += 1;
        }
    }

    fn begin_reseeding<K: Hash>(&mut self, key: &K, has_memory: impl Fn(usize) -> bool) {
        if self.seeds.as_ref().is_some_and(|seeds| self.len() < seeds.again_at) {
            return;
        }
        let memory = self.lines.allocator().clone();
        if !has_memory(self.allocation_size() + Lines::new_in(memory.clone()).growth(0)) {
            return;
        }
        // Without memory, the hash stays for now.
        let Ok(lines) = Lines::with_line_in(memory) else { return };
        let current = Reseed::new(self.hasher.hash_one(key));
        self.old = core::mem::replace(&mut self.lines, lines);
        let (count, again_at) = (self.reseeds() + 1, 2 * self.len());
        let old = self.seeds.take().map(|seeds| seeds.current);
        (self.seeds, self.next) = (Some(Seeds { current, old, count, again_at }), 0);
    }

    /// Moves an id from old lines, if it is there.
    fn move_entry<K: Hash, V>(
        &mut self,
        id: KeyId,
        store: &mut Store<K, V, A>,
    ) -> Result<(), TryReserveError> {
        let Some((before, key)) = store.try_hash_of(id).zip(store.key_of(id)) else {
            return Ok(());
        };
        let hash = self.current_hash(before, key);
        if self.old.remove(before, id.bits()) {
            if let Err(error) = self.insert(hash, id, store) {
                self.old.insert_reserved(before, id.bits());
                return Err(error);
            }
            store.set_hash(id, hash);
        }
        Ok(())
    }
}

/// Hashes the normalised form of each key. A [`Query`] with its hash does not use it.
struct Normalised<'a, S, K> {
    hasher: &'a S,
    key: &'a K,
}

impl<S: BuildHasher, K: Hash> BuildHasher for Normalised<'_, S, K> {
    type Hasher = S::Hasher;

    fn build_hasher(&self) -> S::Hasher {
        self.hasher.build_hasher()
    }

    #[inline(always)]
    fn hash_one<T: Hash>(&self, _: T) -> u64 {
        self.hasher.hash_one(self.key)
    }
}
