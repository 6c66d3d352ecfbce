//! Bounded caches for the results of slower lookups.
//!
//! ```text
//!     SourceHashCache: fixed sets                   BoundedCache: index lines and entries
//!
//!     index      sets, a cache line each            hash      lines, of 12 tags   entries
//!     ──▸ mod 4 ─▸ │ c* │ a  │ 2 ways               ──▸ mod 4 ─▸ │ · · ·┼────────▸ e
//!                  │ d  │    │                                   │      │
//!                  │    │    │     * most recent                 │ · ·  ┼────────▸ d
//!                  │ f  │ e* │                                   │ ·    │
//!
//!     an insertion evicts from its set              an insertion evicts from all entries if the
//!     if that is full                               cache is full
//! ```
//!
//! | | [`SourceHashCache`] | [`BoundedCache`] |
//! |---|---|---|
//! | located by | the [index] in the packet | a hash of the key |
//! | a hit reads | the set, one cache line or more | a line of the index, and an entry |
//! | victim | by [`Replacement`] within the set | a [policy]'s; of eight equal hashes the LRU one |
//! | full when | never as a whole: sets share no ways | at its capacity |
//! | hostile traffic | displaces one set per index | none with a keyed hash; else its own entries |
//!
//! [`ChainedCache`] is the historical structure that these are compared with: buckets with chains
//! of bounded length, as the papers and Linux until 2012 have them.
//!
//! [index]: crate::hash::source_index::SourceIndex
//! [policy]: crate::eviction
//!
//! Both compare whole keys: an index or a hash only locates candidates. Both count hits, misses,
//! insertions and evictions: [`Statistics`]. Neither allocates for entries after its construction;
//! a policy may. [`DuplicateFilter`] is an application of the second to remote procedure calls.
//!
//! # Why sets do not use the policies of [`eviction`](crate::eviction)
//!
//! Those choose among all entries of a cache, and store links for each. A set has a few entries in
//! one cache line: a policy's memory elsewhere would cost more cache misses than the whole lookup.
//! So the replacement order is stored in the tags.
//!
//! Papers: Chandranmenon and Varghese, *Trading packet headers for packet processing* (1995),
//! sections 3 and 3.4, for caches by index, and for tables as in Birrell and Nelson, *Implementing
//! remote procedure calls* (1984).

mod bounded;
mod chained;
mod duplicates;
mod entries;
mod iter;
mod set;
mod source_hash;
mod source_hash_iter;
mod tag;

use core::error::Error;
use core::fmt;

use crate::memory::ArrayError;
use crate::table::error::CapacityError;
pub use bounded::BoundedCache;
pub use chained::{ChainedCache, Chains};
pub use duplicates::{CallVerdict, DuplicateFilter};
pub use iter::{Iter, IterMut};
pub use set::Replacement;
pub use source_hash::SourceHashCache;
pub use source_hash_iter::{SourceHashIter, SourceHashIterMut};

/// Counters of lookups and insertions since the cache was created.
///
/// # Example
///
/// ```
/// use flowtable::hash::source_index::SourceIndex;
/// use flowtable::cache::{SourceHashCache, Statistics};
///
/// let mut cache: SourceHashCache<&str, u32> = SourceHashCache::new(1)?;
/// for key in ["a", "b", "b"] {
///     cache.get_or_insert_with(SourceIndex::ABSENT, key, |key| key.len() as u32);
/// }
/// let Statistics { hits, misses, insertions, evictions, .. } = cache.statistics();
/// assert_eq!((hits, misses, insertions, evictions), (1, 2, 2, 1));
/// # Ok::<(), flowtable::cache::CacheError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Statistics {
    /// Lookups that found their key.
    pub hits: u64,
    /// Lookups that did not find their key.
    pub misses: u64,
    /// Entries inserted, without replaced values.
    pub insertions: u64,
    /// Entries evicted by insertions.
    pub evictions: u64,
}

impl Statistics {
    /// Returns the fraction of lookups that were hits, or `None` if there were no lookups.
    ///
    /// # Example
    ///
    /// ```
    /// let mut cache: flowtable::BoundedCache<&str, u32> = flowtable::BoundedCache::new(100)?;
    /// for _ in 0..4 {
    ///     cache.get_or_insert_with(&"a", |_| 1);
    /// }
    /// assert_eq!(cache.statistics().hit_ratio(), Some(0.75));
    /// # Ok::<(), flowtable::cache::CacheError>(())
    /// ```
    #[must_use]
    pub fn hit_ratio(&self) -> Option<f64> {
        let lookups = self.hits + self.misses;
        (lookups > 0).then(|| self.hits as f64 / lookups as f64)
    }

    /// Counts a lookup.
    #[inline]
    fn count_lookup(&mut self, is_hit: bool) {
        match is_hit {
            true => self.hits += 1,
            false => self.misses += 1,
        }
    }

    /// Counts an inserted entry, and an eviction if the insertion evicted an entry.
    #[inline]
    fn count_insertion(&mut self, is_eviction: bool) {
        self.insertions += 1;
        self.evictions += u64::from(is_eviction);
    }
}

/// The result of an insertion: the previous value of the key, or the evicted entry.
///
/// # Example
///
/// ```
/// use flowtable::hash::source_index::SourceIndex;
/// use flowtable::cache::{Inserted, SourceHashCache};
///
/// let mut cache: SourceHashCache<char, u32> = SourceHashCache::new(4)?;
/// let index = SourceIndex::new(7);
/// assert_eq!(cache.insert(index, 'a', 1), Inserted { previous: None, evicted: None });
/// assert_eq!(cache.insert(index, 'a', 2).previous, Some(1));
/// assert_eq!(cache.insert(index, 'b', 3).evicted, Some(('a', 2)));
/// # Ok::<(), flowtable::cache::CacheError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "it may contain an evicted entry"]
pub struct Inserted<K, V> {
    /// The previous value of the key.
    pub previous: Option<V>,
    /// The entry that the insertion evicted.
    pub evicted: Option<(K, V)>,
}

/// An error in the construction of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CacheError {
    /// The capacity is zero.
    NoCapacity,
    /// The size exceeds the range of entry indices or addresses.
    TooLarge,
    /// The memory allocation failed.
    NoMemory,
}

impl fmt::Display for CacheError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoCapacity => "the capacity of a cache must be at least one entry",
            Self::TooLarge => "the cache is too large",
            Self::NoMemory => "memory allocation failed",
        })
    }
}

impl Error for CacheError {}

impl From<CapacityError> for CacheError {
    fn from(error: CapacityError) -> Self {
        match error {
            CapacityError::Zero => Self::NoCapacity,
            CapacityError::TooLarge => Self::TooLarge,
            CapacityError::NoMemory => Self::NoMemory,
        }
    }
}

impl From<ArrayError> for CacheError {
    fn from(error: ArrayError) -> Self {
        match error {
            ArrayError::TooLarge => Self::TooLarge,
            ArrayError::NoMemory => Self::NoMemory,
        }
    }
}
