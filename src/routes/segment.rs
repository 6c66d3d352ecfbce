//! A segment of the hash table of levels: entries in slots that the pilots of buckets determine.
//!
//! An entry is in one slot only. If the slot of a new one is occupied, its bucket gets a pilot by
//! which all entries of the bucket have vacant slots; most buckets have one entry or two. A split
//! keeps the pilots: an entry has the same slot in either half.
#![allow(unsafe_code)]

use super::search::{NodeRoutes, RouteBits, RouteMatch, search};
use super::stride::COVERS;
use crate::raw::bit_ops::{BitOps, select};
use crate::raw::prefetch::prefetch;
use crate::table::Group;

/// The flag of an entry at the last level with longer routes below it.
pub(super) const DEEPER: u64 = 1;

/// The routes of a node at one of the levels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(32))]
pub(super) struct LevelEntry {
    /// A one, and the bits before the node; 0 in a vacant slot.
    pub(super) key: u64,
    /// Routes of levels 1 to 5 of the node, by prefix index; bit 0 is [`DEEPER`].
    pub(super) inner: u64,
    /// Routes of level 6 of the node, by slot.
    pub(super) outer: u64,
    /// The index of the value of the first outer route.
    pub(super) values: u32,
    /// The node, or where it was: see [`node`](Self::node).
    pub(super) id: u32,
}

impl LevelEntry {
    pub(super) const VACANT: Self = Self { key: 0, inner: 0, outer: 0, values: 0, id: 0 };

    /// Creates the entry of a node with these routes.
    pub(super) const fn new(key: u64, id: u32, bits: RouteBits, deeper: bool) -> Self {
        let RouteBits { inner, outer, values } = bits;
        Self { key, inner: inner | if deeper { DEEPER } else { 0 }, outer, values, id }
    }

    /// Returns where the node was, and its routes, if it has any. It is still there if the node
    /// there has the same routes: no two nodes have routes with the same values.
    #[inline]
    pub(super) fn node(&self) -> Option<NodeRoutes> {
        let (inner, outer, values) = (self.inner & !DEEPER, self.outer, self.values);
        let bits = RouteBits { inner, outer, values };
        if bits.is_empty() { None } else { Some(NodeRoutes { id: self.id, bits }) }
    }

    /// Sets the node and its routes.
    #[inline]
    fn set_node(&mut self, NodeRoutes { id, bits }: NodeRoutes) {
        self.id = id;
        self.inner = bits.inner | self.inner & DEEPER;
        (self.outer, self.values) = (bits.outer, bits.values);
    }

    /// Returns whether it has routes, or longer ones below it.
    pub(super) const fn is_needed(&self) -> bool {
        self.inner | self.outer != 0
    }

    /// Returns a word that is not zero if the entry has this key, and a route that covers `slot` or
    /// one of these flags.
    #[inline(always)]
    pub(super) fn matches(&self, key: u64, slot: u32, flags: u64) -> u64 {
        let inner = self.inner & (COVERS[slot as usize] | flags);
        select(self.key ^ key, 0, inner | self.outer >> slot & 1)
    }

    /// Returns the longest route that covers `slot`, which exists; its length only if `LEN`. The
    /// entry is not [`DEEPER`].
    #[inline(always)]
    pub(super) fn longest<const FAST: bool, const LEN: bool>(
        &self,
        ops: BitOps<FAST>,
        slot: u32,
        pos: u32,
    ) -> RouteMatch {
        let bits = RouteBits { inner: self.inner, outer: self.outer, values: self.values };
        search::<FAST, LEN, 0>(ops, bits, 0, pos, slot, None)
    }
}

/// Entries of a segment.
pub(super) const ENTRIES: usize = 128;

/// Buckets of a segment, each with a pilot.
const BUCKETS: usize = 128;

/// Limit of the entries of a bucket.
const MAX_MEMBERS: usize = 16;

/// Returns a hash: all bits of the key affect its high bits, which select segment and bucket, and
/// its low ones, which select the slot. Keys are consecutive or differ in single bits.
#[inline(always)]
pub(super) const fn hash(key: u64) -> u64 {
    let scrambled = key.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (scrambled ^ scrambled >> 32).wrapping_mul(0xD6E8_FEB8_6659_6593)
}

/// Returns the bucket of a hash.
#[inline(always)]
const fn bucket_of(hash: u64) -> usize {
    (hash >> 32) as usize % BUCKETS
}

/// Returns the slot of a hash with this pilot: the top bits of a product.
#[inline(always)]
fn slot_of(hash: u64, pilot: u8) -> usize {
    ((hash as u32).wrapping_mul(FACTORS[pilot as usize]) >> (u32::BITS - ENTRIES.ilog2())) as usize
}

/// A random odd number for each pilot: some of them separate any two hashes that differ.
static FACTORS: [u32; 256] = {
    let (mut factors, mut pilot, mut state) = ([0; 256], 0, 0x1234_5678_9ABC_DEF1_u64);
    while pilot < factors.len() {
        // xorshift64*
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        factors[pilot] = (state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32) as u32 | 1;
        pilot += 1;
    }
    factors
};

const _: () = assert!(core::mem::offset_of!(Segment, owners) % 16 == 0);

/// Entries whose hashes have their first `depth` bits in common. All zeros is an empty one.
#[repr(C, align(64))]
pub(super) struct Segment {
    /// A byte for each bucket, which determines the slots of its entries.
    pilots: [u8; BUCKETS],
    entries: [LevelEntry; ENTRIES],
    /// For each slot the bucket of its entry, plus one; 0 if it is vacant.
    owners: [u8; ENTRIES],
    pub(super) len: u32,
    pub(super) depth: u32,
}

impl Segment {
    #[inline(always)]
    pub(super) fn candidate(&self, hash: u64) -> &LevelEntry {
        // Below ENTRIES by construction.
        &self.entries[slot_of(hash, self.pilots[bucket_of(hash)]) % ENTRIES]
    }

    /// Prefetches the pilot of a hash.
    #[inline(always)]
    pub(super) fn prefetch_pilot(&self, hash: u64) {
        prefetch(&self.pilots[bucket_of(hash)]);
    }

    /// Prefetches the slot of a hash, whose pilot has been prefetched.
    #[inline(always)]
    pub(super) fn prefetch_slot(&self, hash: u64) {
        let slot = slot_of(hash, self.pilots[bucket_of(hash)]) % ENTRIES;
        prefetch(&self.entries[slot]);
        prefetch(&self.owners[slot]);
    }

    /// Replaces the entry with the same key.
    pub(super) fn replace(&mut self, hash: u64, entry: LevelEntry) -> bool {
        let old = &mut self.entries[slot_of(hash, self.pilots[bucket_of(hash)])];
        let found = old.key == entry.key;
        if found {
            *old = entry;
        }
        found
    }

    /// Sets the node and its routes in the entry with this key, if it exists. Returns whether an
    /// entry is needed.
    #[inline]
    pub(super) fn set_routes(&mut self, hash: u64, key: u64, node: NodeRoutes) -> bool {
        let entry = &mut self.entries[slot_of(hash, self.pilots[bucket_of(hash)])];
        if entry.key == key {
            entry.set_node(node);
        }
        entry.is_needed()
    }

    /// Inserts a new entry. Returns whether there is a pilot for its bucket.
    pub(super) fn insert(&mut self, hash: u64, entry: LevelEntry) -> bool {
        let slot = slot_of(hash, self.pilots[bucket_of(hash)]);
        let is_inserted = self.owners[slot] == 0 || self.move_bucket(bucket_of(hash), hash);
        if is_inserted {
            self.put(hash, entry);
            self.len += 1;
        }
        is_inserted
    }

    /// Writes an entry to its slot, which is vacant.
    fn put(&mut self, hash: u64, entry: LevelEntry) {
        let (bucket, pilot) = (bucket_of(hash), self.pilots[bucket_of(hash)]);
        self.entries[slot_of(hash, pilot)] = entry;
        self.owners[slot_of(hash, pilot)] = bucket as u8 + 1;
    }

    /// Returns the slots of the entries of a bucket as a bitmap.
    fn members(&self, bucket: usize) -> u128 {
        const AT_ONCE: usize = 16;
        let (mut members, tag) = (0, bucket as u8 + 1);
        for (first, owners) in (0..).step_by(AT_ONCE).zip(self.owners.chunks_exact(AT_ONCE)) {
            // SAFETY: 16 bytes; the offset of the owners in a segment is divisible by that.
            let group = unsafe { Group::load(owners.as_ptr()) };
            for slot in group.matches(tag) {
                members |= 1 << (first + slot);
            }
        }
        members
    }

    /// Moves the entries of a bucket by a pilot that leaves a slot for one more.
    fn move_bucket(&mut self, bucket: usize, new: u64) -> bool {
        let mut members = [0; MAX_MEMBERS];
        let (mut count, old_slots) = (0, self.members(bucket));
        let mut rest = old_slots;
        while rest != 0 {
            let Some(member) = members.get_mut(count) else { return false };
            *member = hash(self.entries[rest.trailing_zeros() as usize].key);
            count += 1;
            rest &= rest - 1;
        }
        let (members, tag) = (&members[..count], bucket as u8 + 1);
        let is_free = |hash: u64, pilot: u8| {
            let owner = self.owners[slot_of(hash, pilot)];
            owner == 0 || owner == tag
        };
        let are_distinct = |pilot: u8| {
            let mut taken = 1_u128 << slot_of(new, pilot);
            members.iter().all(|&hash| {
                let slot = 1 << slot_of(hash, pilot);
                let is_free = taken & slot == 0;
                taken |= slot;
                is_free
            })
        };
        let fits = |&pilot: &u8| {
            is_free(new, pilot)
                && members.iter().all(|&hash| is_free(hash, pilot))
                && are_distinct(pilot)
        };
        let Some(pilot) = (0..=u8::MAX).find(fits) else { return false };
        if count == 0 {
            self.pilots[bucket] = pilot;
            return true;
        }
        let mut moved = [LevelEntry::VACANT; MAX_MEMBERS];
        for (hash, entry) in members.iter().zip(&mut moved) {
            let slot = slot_of(*hash, self.pilots[bucket]);
            *entry = self.entries[slot];
            self.vacate(slot);
        }
        self.pilots[bucket] = pilot;
        members.iter().zip(&moved).for_each(|(hash, entry)| self.put(*hash, *entry));
        true
    }

    /// Moves the entries whose hashes have a one at the last of `depth` bits to an empty segment.
    /// With the same pilots all entries have the same slots there.
    pub(super) fn split_to(&mut self, high: &mut Self, depth: u32) {
        (self.depth, high.depth, high.pilots) = (depth, depth, self.pilots);
        for slot in 0..ENTRIES {
            let entry = self.entries[slot];
            if entry.key != 0 && hash(entry.key) >> (64 - depth) & 1 != 0 {
                (high.entries[slot], high.owners[slot]) = (entry, self.owners[slot]);
                self.vacate(slot);
                (self.len, high.len) = (self.len - 1, high.len + 1);
            }
        }
    }

    fn vacate(&mut self, slot: usize) {
        self.entries[slot] = LevelEntry::VACANT;
        self.owners[slot] = 0;
    }

    /// Removes the entry with this key. Returns whether it existed.
    pub(super) fn remove(&mut self, hash: u64, key: u64) -> bool {
        let slot = slot_of(hash, self.pilots[bucket_of(hash)]);
        let found = self.entries[slot].key == key;
        if found {
            self.vacate(slot);
            self.len -= 1;
        }
        found
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = LevelEntry> {
        self.entries.iter().copied().filter(|entry| entry.key != 0)
    }
}
