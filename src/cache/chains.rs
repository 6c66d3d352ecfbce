//! Hash chains of bounded length.
//!
//! ```text
//!     heads      0 │ 2      1 │ –      2 │ 0      3 │ –
//!     entries    0 │ f, next – │   1 │ a, next – │   2 │ b, next 1 │
//!     chains     ▸ 0: b, a         ▸ 2: f
//! ```
//!
//! Invariants: each entry is in the chain of its hash, once; no chain is longer than the
//! elasticity; there are at most as many entries as the capacity.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

use super::CacheError;
use crate::eviction::EntryStats;
use crate::invariant::{InvariantError, ensure};
use crate::raw::index::OptIndex;
use crate::raw::prefetch::prefetch;
use crate::raw::slab::Slab;
use crate::timestamp::Timestamp;

/// The default maximum length of chains, as in Linux.
const ELASTICITY: usize = 8;

/// The maximum capacity of a cache: all slots that eviction policies support.
const MAX_CAPACITY: usize = (1 << 30) - 1;

/// The maximum number of buckets.
const MAX_BUCKETS: usize = 1 << 30;

/// The capacity, number of buckets and maximum chain length of a
/// [`ChainedCache`](super::ChainedCache).
///
/// # Example
///
/// ```
/// use flowtable::cache::{CacheError, ChainedConfig};
///
/// let config = ChainedConfig::new(1000)?.with_buckets(300)?.with_elasticity(4)?;
/// assert_eq!((config.capacity(), config.buckets(), config.elasticity()), (1000, 512, 4));
/// assert_eq!(ChainedConfig::new(0), Err(CacheError::NoCapacity));
/// # Ok::<(), CacheError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct ChainedConfig {
    capacity: usize,
    buckets: usize,
    elasticity: usize,
}

impl ChainedConfig {
    /// Creates a configuration with this capacity, at least twice as many buckets, and chains of at
    /// most 8 entries.
    ///
    /// # Errors
    ///
    /// If the capacity is zero, or 2^30 or more.
    pub const fn new(capacity: usize) -> Result<Self, CacheError> {
        match capacity {
            0 => Err(CacheError::NoCapacity),
            1..=MAX_CAPACITY => Ok(Self {
                capacity,
                buckets: (2 * capacity).next_power_of_two(),
                elasticity: ELASTICITY,
            }),
            _ => Err(CacheError::TooLarge),
        }
    }

    /// Sets the number of buckets, rounded up to a power of two.
    ///
    /// # Errors
    ///
    /// If the number is zero, or above 2^30.
    pub const fn with_buckets(self, buckets: usize) -> Result<Self, CacheError> {
        match buckets {
            0 => Err(CacheError::NoBuckets),
            1..=MAX_BUCKETS => Ok(Self { buckets: buckets.next_power_of_two(), ..self }),
            _ => Err(CacheError::TooLarge),
        }
    }

    /// Sets the maximum length of chains: an insertion into a chain of this length evicts its least
    /// recently used entry. `usize::MAX` means no bound.
    ///
    /// # Errors
    ///
    /// If the length is zero.
    pub const fn with_elasticity(self, entries: usize) -> Result<Self, CacheError> {
        match entries {
            0 => Err(CacheError::NoElasticity),
            _ => Ok(Self { elasticity: entries, ..self }),
        }
    }

    /// Returns the maximum number of entries.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.capacity
    }

    /// Returns the number of buckets, a power of two.
    #[must_use]
    pub const fn buckets(&self) -> usize {
        self.buckets
    }

    /// Returns the maximum length of a chain.
    #[must_use]
    pub const fn elasticity(&self) -> usize {
        self.elasticity
    }
}

/// An entry of a chain.
#[derive(Clone, Debug)]
pub(super) struct Entry<K, V> {
    hash: u32,
    /// The next entry of the chain.
    next: OptIndex,
    pub(super) key: K,
    pub(super) value: V,
    /// The value of [`Chains::uses`] at the last use of this entry.
    last_use: u64,
    /// Whether the entry was used since a policy examined it last.
    used: bool,
}

/// Entries by hash, in chains.
#[derive(Clone, Debug)]
pub(super) struct Chains<K, V> {
    /// The first entry of each chain. The length is a power of two.
    heads: Box<[OptIndex]>,
    entries: Slab<Entry<K, V>>,
    elasticity: usize,
    /// The number of insertions and uses of entries: a clock for `last_use`.
    uses: u64,
}

impl<K, V> Chains<K, V> {
    pub(super) fn new(config: &ChainedConfig) -> Result<Self, CacheError> {
        let mut heads = Vec::new();
        heads.try_reserve_exact(config.buckets).map_err(|_| CacheError::NoMemory)?;
        heads.resize(config.buckets, OptIndex::NONE);
        let mut entries = Slab::new();
        if !entries.try_reserve_exact(config.capacity) {
            return Err(CacheError::NoMemory);
        }
        let heads = heads.into_boxed_slice();
        Ok(Self { heads, entries, elasticity: config.elasticity, uses: 0 })
    }

    pub(super) const fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn allocation_size(&self) -> usize {
        size_of_val(&*self.heads) + self.entries.allocation_size()
    }

    #[inline]
    fn bucket(&self, hash: u32) -> usize {
        hash as usize & (self.heads.len() - 1)
    }

    #[inline]
    pub(super) fn entry(&self, slot: u32) -> &Entry<K, V> {
        &self.entries[slot]
    }

    #[inline]
    pub(super) fn entry_mut(&mut self, slot: u32) -> &mut Entry<K, V> {
        &mut self.entries[slot]
    }

    /// Iterates over the slots of a chain.
    #[inline]
    fn chain(&self, bucket: usize) -> impl Iterator<Item = u32> {
        self.heads[bucket].list(|slot| self.entries[slot].next)
    }

    /// Returns the slot of the entry with this hash for whose key `eq` returns true.
    #[inline]
    pub(super) fn find(&self, hash: u32, eq: impl Fn(&K) -> bool) -> Option<u32> {
        let mut next = self.heads[self.bucket(hash)];
        while let Some(slot) = next.get() {
            let entry = &self.entries[slot];
            if entry.hash == hash && eq(&entry.key) {
                return Some(slot);
            }
            next = entry.next;
        }
        None
    }

    /// Records a use of an entry, and returns a mutable reference to its value.
    #[inline]
    pub(super) fn record_use(&mut self, slot: u32) -> &mut V {
        self.uses += 1;
        let entry = &mut self.entries[slot];
        (entry.used, entry.last_use) = (true, self.uses);
        &mut entry.value
    }

    /// Returns the use of an entry to a policy, and clears its mark of use.
    pub(super) fn examine(&mut self, slot: u32) -> EntryStats {
        let entry = &mut self.entries[slot];
        let used = core::mem::take(&mut entry.used);
        EntryStats { used, last_use: Timestamp::from_nanos(entry.last_use) }
    }

    /// Returns the least recently used entry of the chain with this hash, if the chain has the
    /// maximum length.
    pub(super) fn victim_in_chain(&self, hash: u32) -> Option<u32> {
        let bucket = self.bucket(hash);
        self.chain(bucket).nth(self.elasticity - 1)?;
        self.chain(bucket).min_by_key(|&slot| self.entries[slot].last_use)
    }

    /// Inserts an entry at the head of its chain. Neither the chain nor the cache may be full.
    pub(super) fn insert(&mut self, hash: u32, key: K, value: V) -> u32 {
        let bucket = self.bucket(hash);
        self.uses += 1;
        let next = self.heads[bucket];
        let (used, last_use) = (false, self.uses);
        let slot = self.entries.insert(Entry { hash, next, key, value, last_use, used });
        self.heads[bucket] = OptIndex::some(slot);
        slot
    }

    /// Removes the entry at a slot, which must be occupied.
    pub(super) fn remove(&mut self, slot: u32) -> (K, V) {
        let bucket = self.bucket(self.entries[slot].hash);
        let next = self.entries[slot].next;
        match self.chain(bucket).take_while(|&other| other != slot).last() {
            Some(before) => self.entries[before].next = next,
            None => self.heads[bucket] = next,
        }
        let Entry { key, value, .. } = self.entries.remove(slot);
        (key, value)
    }

    /// Iterates over the slots of all entries, chain by chain.
    pub(super) fn slots(&self) -> impl Iterator<Item = u32> {
        (0..self.heads.len()).flat_map(|bucket| self.chain(bucket))
    }

    /// Returns the slot after `slot` in the chain of a bucket, or the first one.
    pub(super) fn next_in_chain(&self, bucket: usize, slot: Option<u32>) -> Option<u32> {
        slot.map_or(self.heads[bucket], |slot| self.entries[slot].next).get()
    }

    pub(super) const fn buckets(&self) -> usize {
        self.heads.len()
    }

    /// Returns the length of the longest chain.
    pub(super) fn longest_chain(&self) -> usize {
        (0..self.heads.len()).map(|bucket| self.chain(bucket).count()).max().unwrap_or(0)
    }

    /// Prefetches the head of the chain with this hash.
    #[inline]
    pub(super) fn prefetch_head(&self, hash: u32) {
        prefetch(&raw const self.heads[self.bucket(hash)]);
    }

    /// Prefetches the first entry of the chain with this hash, whose head should be cached already.
    #[inline]
    pub(super) fn prefetch_first(&self, hash: u32) {
        if let Some(first) = self.heads[self.bucket(hash)].get() {
            prefetch(&raw const self.entries[first]);
        }
    }

    pub(super) fn validate(&self) -> Result<(), InvariantError> {
        let mut count = 0;
        for bucket in 0..self.heads.len() {
            for (length, slot) in self.chain(bucket).enumerate() {
                ensure(length < self.elasticity, || {
                    format!("the chain of bucket {bucket} is too long")
                })?;
                ensure(self.bucket(self.entries[slot].hash) == bucket, || {
                    format!("the chain of bucket {bucket} has an entry of another bucket")
                })?;
                count += 1;
                ensure(count <= self.len(), || {
                    format!("the chains have more entries than the {} counted", self.len())
                })?;
            }
        }
        ensure(count == self.len(), || format!("{count} entries are counted as {}", self.len()))
    }
}
