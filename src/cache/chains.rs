//! Chains of entries, and how long they may be.
//!
//! ```text
//!     heads      0 │ 2      1 │ –      2 │ 0      3 │ –
//!     entries    0 │ f, next – │   1 │ a, next – │   2 │ b, next 1 │
//!     chains     ▸ 0: b, a         ▸ 2: f
//! ```
//!
//! What holds: each entry is in the chain of its hash, once; no chain is longer than the elasticity; there are no more
//! entries than the capacity.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::{Broken, CacheError};
use crate::eviction::EntryStats;
use crate::raw::prefetch::prefetch;
use crate::raw::slab::Slab;
use crate::timestamp::Timestamp;

/// No entry.
const NONE: u32 = u32::MAX;

/// Entries of a chain, unless somebody says otherwise: the number that Linux had.
const ELASTICITY: usize = 8;

/// The most entries of a cache: all that policies have slots for.
const MAX: usize = (1 << 30) - 1;

/// The most buckets that may be asked for.
const MAX_BUCKETS: usize = 1 << 30;

/// How large a [`ChainedCache`](super::ChainedCache) is.
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
    /// Room for so many entries, at least twice as many buckets, and chains of 8 entries at most.
    ///
    /// # Errors
    ///
    /// If the capacity is zero, or 2^30 or more.
    pub const fn new(capacity: usize) -> Result<Self, CacheError> {
        match capacity {
            0 => Err(CacheError::NoCapacity),
            1..=MAX => Ok(Self {
                capacity,
                buckets: (2 * capacity).next_power_of_two(),
                elasticity: ELASTICITY,
            }),
            _ => Err(CacheError::TooLarge),
        }
    }

    /// So many buckets, rounded up to a power of two.
    ///
    /// # Errors
    ///
    /// If there are none, or more than 2^30.
    pub const fn with_buckets(self, buckets: usize) -> Result<Self, CacheError> {
        match buckets {
            0 => Err(CacheError::NoBuckets),
            1..=MAX_BUCKETS => Ok(Self { buckets: buckets.next_power_of_two(), ..self }),
            _ => Err(CacheError::TooLarge),
        }
    }

    /// Chains of so many entries at most: one that comes to a chain that is as long displaces the one of it that was
    /// used longest ago. `usize::MAX` for no such bound.
    ///
    /// # Errors
    ///
    /// If a chain could have no entries.
    pub const fn with_elasticity(self, entries: usize) -> Result<Self, CacheError> {
        match entries {
            0 => Err(CacheError::NoElasticity),
            _ => Ok(Self { elasticity: entries, ..self }),
        }
    }

    /// The most entries that there are at once.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.capacity
    }

    /// The number of chains: a power of two.
    #[must_use]
    pub const fn buckets(&self) -> usize {
        self.buckets
    }

    /// The most entries of a chain.
    #[must_use]
    pub const fn elasticity(&self) -> usize {
        self.elasticity
    }
}

/// An entry of a chain.
#[derive(Clone, Debug)]
pub(super) struct Entry<K, V> {
    hash: u32,
    /// The next one of the chain, or [`NONE`].
    next: u32,
    pub(super) key: K,
    pub(super) value: V,
    /// How many uses of any entry there had been when this one was used last.
    last_use: u64,
    /// Whether it was used since a policy looked at it last.
    used: bool,
}

/// Entries by hash.
#[derive(Clone, Debug)]
pub(super) struct Chains<K, V> {
    /// The first entry of each chain, or [`NONE`]. A power of two.
    heads: Box<[u32]>,
    entries: Slab<Entry<K, V>>,
    elasticity: usize,
    uses: u64,
}

impl<K, V> Chains<K, V> {
    pub(super) fn new(config: &ChainedConfig) -> Result<Self, CacheError> {
        let mut heads = Vec::new();
        heads.try_reserve_exact(config.buckets).map_err(|_| CacheError::NoMemory)?;
        heads.resize(config.buckets, NONE);
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

    /// The slots of a chain.
    #[inline]
    fn chain(&self, bucket: usize) -> impl Iterator<Item = u32> {
        let some = |slot| (slot != NONE).then_some(slot);
        core::iter::successors(some(self.heads[bucket]), move |&slot| some(self.entries[slot].next))
    }

    /// The slot of the entry with this hash whose key is the one that `is_it` knows.
    #[inline]
    pub(super) fn find(&self, hash: u32, is_it: impl Fn(&K) -> bool) -> Option<u32> {
        let mut slot = self.heads[self.bucket(hash)];
        while slot != NONE {
            let entry = &self.entries[slot];
            if entry.hash == hash && is_it(&entry.key) {
                return Some(slot);
            }
            slot = entry.next;
        }
        None
    }

    /// The value of an entry, which is used thereby.
    #[inline]
    pub(super) fn use_of(&mut self, slot: u32) -> &mut V {
        self.uses += 1;
        let entry = &mut self.entries[slot];
        (entry.used, entry.last_use) = (true, self.uses);
        &mut entry.value
    }

    /// How an entry stands, for a policy that looks at it.
    pub(super) fn look(&mut self, slot: u32) -> EntryStats {
        let entry = &mut self.entries[slot];
        let used = core::mem::take(&mut entry.used);
        EntryStats { used, last_use: Timestamp::from_nanos(entry.last_use) }
    }

    /// The entry that leaves for one with this hash, if its chain is as long as it may be: the one that was used
    /// longest ago.
    pub(super) fn displaced_by(&self, hash: u32) -> Option<u32> {
        let bucket = self.bucket(hash);
        self.chain(bucket).nth(self.elasticity - 1)?;
        self.chain(bucket).min_by_key(|&slot| self.entries[slot].last_use)
    }

    /// Puts an entry in front of its chain. There must be room, in the chain and in all.
    pub(super) fn push(&mut self, hash: u32, key: K, value: V) -> u32 {
        let bucket = self.bucket(hash);
        self.uses += 1;
        let next = self.heads[bucket];
        let (used, last_use) = (false, self.uses);
        let slot = self.entries.insert(Entry { hash, next, key, value, last_use, used });
        self.heads[bucket] = slot;
        slot
    }

    /// Takes an entry, which must be there, out of its chain.
    pub(super) fn take(&mut self, slot: u32) -> (K, V) {
        let bucket = self.bucket(self.entries[slot].hash);
        let next = self.entries[slot].next;
        match self.chain(bucket).take_while(|&other| other != slot).last() {
            Some(before) => self.entries[before].next = next,
            None => self.heads[bucket] = next,
        }
        let Entry { key, value, .. } = self.entries.remove(slot);
        (key, value)
    }

    /// The slots of all entries, chain by chain.
    pub(super) fn slots(&self) -> impl Iterator<Item = u32> {
        (0..self.heads.len()).flat_map(|bucket| self.chain(bucket))
    }

    /// The slots of the chain of a bucket, one after the other: the one behind `slot`, or the first one.
    pub(super) fn next(&self, bucket: usize, slot: Option<u32>) -> Option<u32> {
        let next = slot.map_or(self.heads[bucket], |slot| self.entries[slot].next);
        (next != NONE).then_some(next)
    }

    pub(super) const fn buckets(&self) -> usize {
        self.heads.len()
    }

    /// Entries of the longest chain.
    pub(super) fn longest(&self) -> usize {
        (0..self.heads.len()).map(|bucket| self.chain(bucket).count()).max().unwrap_or(0)
    }

    /// Asks for the head of the chain with this hash.
    #[inline]
    pub(super) fn prefetch_head(&self, hash: u32) {
        prefetch(&raw const self.heads[self.bucket(hash)]);
    }

    /// Asks for the first entry of the chain with this hash, whose head should be there already.
    #[inline]
    pub(super) fn prefetch_first(&self, hash: u32) {
        let first = self.heads[self.bucket(hash)];
        if first != NONE {
            prefetch(&raw const self.entries[first]);
        }
    }

    pub(super) fn validate(&self) -> Result<(), Broken> {
        let mut found = 0;
        for bucket in 0..self.heads.len() {
            for (length, slot) in self.chain(bucket).enumerate() {
                if length >= self.elasticity || self.bucket(self.entries[slot].hash) != bucket {
                    return Err(Broken::Chain(bucket));
                }
                found += 1;
                if found > self.len() {
                    return Err(Broken::Count { found, counted: self.len() });
                }
            }
        }
        if found == self.len() { Ok(()) } else { Err(Broken::Count { found, counted: self.len() }) }
    }
}
