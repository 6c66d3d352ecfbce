//! Bounded caches of what can be found elsewhere, but not as fast.
//!
//! ```text
//!     SourceHashCache: fixed places                 ChainedCache: chains of bounded length
//!
//!     index      sets, a line each                  hash      buckets   entries
//!     ──▸ mod 4 ─▸ │ c* │ a  │ 2 ways               ──▸ mod 4 ─▸ │ ·┼─▸ e ─▸ b ─▸ a        e came last
//!                  │ d  │    │                                   │  │
//!                  │    │    │     * used last                   │ ·┼─▸ d
//!                  │ f  │ e* │                                   │  │
//!     a new entry displaces one of its set          a new entry displaces one of its chain if that is as long as
//!                                                   chains may be, and of all if the cache is full
//! ```
//!
//! | | [`SourceHashCache`] | [`ChainedCache`] |
//! |---|---|---|
//! | finds an entry by | the [index](crate::hash::source_index::SourceIndex) that the packet has brought | a hash of the key |
//! | a hit touches | one line, or those of the set if it has more | the bucket, and a line or two of each entry of the chain up to it |
//! | who leaves | one of the set: the one that was used, or came, longest ago | one of the chain, or whom an [eviction policy](crate::eviction) gives up |
//! | full when | never as a whole: places of others are not taken | it has as many entries as it may |
//! | hostile traffic | spoils one set with each index | spoils nothing with the keyed hash; else, a chain of bounded length |
//!
//! Both compare whole keys: an index or a hash only says where to look. Both count what comes of it:
//! [`Statistics`]. Neither allocates for an entry after it was made; a policy may. [`DuplicateFilter`] is what remote procedure calls do
//! with the second.
//!
//! # Why the policies of [`evict`](crate::eviction) do not choose within a set
//!
//! They choose among all entries of a cache, and keep links for each. A set has a handful of entries in one line: to ask
//! somebody elsewhere would cost more lines than the whole look-up. So the order of use is in the bits of their tags.
//!
//! Papers: Chandranmenon and Varghese, *Trading packet headers for packet processing* (1995), sections 3 and 6, for
//! caches by index, and for chains in the way of Birrell and Nelson, *Implementing remote procedure calls* (1984). Chains
//! of bounded length are how Linux cached routes until version 3.6: its *elasticity*.

use core::error::Error;
use core::fmt;

mod chained;
mod chains;
mod duplicates;
mod lines;
mod set;
mod source_hash;

pub use chained::ChainedCache;
pub use chains::ChainedConfig;
pub use duplicates::{DuplicateFilter, Verdict};
pub use source_hash::{Replacement, SourceHashCache};

/// What came of look-ups and insertions, since the cache was made.
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
/// assert_eq!(cache.statistics(), Statistics { hits: 1, misses: 2, insertions: 2, evictions: 1 });
/// # Ok::<(), flowtable::cache::CacheError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Statistics {
    /// Look-ups that found their key.
    pub hits: u64,
    /// Look-ups that did not.
    pub misses: u64,
    /// Entries that came; not values that were replaced.
    pub insertions: u64,
    /// Entries that left for others.
    pub evictions: u64,
}

impl Statistics {
    /// The part of the look-ups that were hits, or `None` if there were none.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::cache::Statistics;
    ///
    /// let statistics = Statistics { hits: 3, misses: 1, ..Statistics::default() };
    /// assert_eq!(statistics.hit_ratio(), Some(0.75));
    /// ```
    #[must_use]
    pub fn hit_ratio(&self) -> Option<f64> {
        let lookups = self.hits + self.misses;
        (lookups > 0).then(|| self.hits as f64 / lookups as f64)
    }

    /// Counts a look-up.
    #[inline]
    fn count(&mut self, is_hit: bool) {
        match is_hit {
            true => self.hits += 1,
            false => self.misses += 1,
        }
    }

    /// Counts an entry that came, and whether another one left for it.
    #[inline]
    fn came(&mut self, is_eviction: bool) {
        self.insertions += 1;
        self.evictions += u64::from(is_eviction);
    }
}

/// What an insertion did.
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
#[must_use = "it may have an entry that is in the cache no more"]
pub struct Inserted<K, V> {
    /// The value that the key had.
    pub previous: Option<V>,
    /// The entry that left for it.
    pub evicted: Option<(K, V)>,
}

/// Why a cache is not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CacheError {
    /// It would have no entries.
    NoCapacity,
    /// It would have no buckets.
    NoBuckets,
    /// Its chains would have no entries.
    NoElasticity,
    /// It would have more entries than there are numbers or addresses for.
    TooLarge,
    /// The memory cannot be had.
    NoMemory,
}

impl fmt::Display for CacheError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoCapacity => "a cache needs a capacity of one entry at least",
            Self::NoBuckets => "a chained cache needs one bucket at least",
            Self::NoElasticity => "chains need room for one entry at least",
            Self::TooLarge => "so many entries are more than a cache can have",
            Self::NoMemory => "the memory cannot be had",
        })
    }
}

impl Error for CacheError {}

/// An invariant that does not hold. It never happens; tests ask after each step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Broken {
    /// A set has ways that its order of use does not have, or the other way round.
    Set(usize),
    /// There are other entries than are counted.
    Count {
        /// Entries that were found.
        found: usize,
        /// Entries that are counted.
        counted: usize,
    },
    /// A chain is not that of its bucket's entries, or longer than it may be.
    Chain(usize),
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Set(set) => write!(f, "the order of set {set} is not that of its entries"),
            Self::Count { found, counted } => write!(f, "{found} entries are counted as {counted}"),
            Self::Chain(bucket) => write!(f, "the chain of bucket {bucket} is broken"),
        }
    }
}

impl Error for Broken {}
