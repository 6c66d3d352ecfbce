//! Hashers: the keyed default, the hash of a network card, and keys that are random already.
//!
//! All structures accept any [`BuildHasher`]. The default is [`DefaultHashBuilder`], which is keyed
//! against collision attacks: [`ahash`](https://docs.rs/ahash), at about 3 ns for a flow key. Each
//! table has its own four words of seed.
//!
//! Without an operating system as source of randomness the seeds are an argument: see
//! [`with_seeds`](DefaultHashBuilder::with_seeds).
//!
//! [`Rss`] computes the hash of a network card, so that a table takes the one that the card has
//! delivered with a packet. [`IdHasher`] is for keys that are random already.

mod id;
mod query;
mod rss;
mod seed;
pub mod source_index;

use core::hash::BuildHasher;

use ahash::{AHasher, RandomState};

pub use id::{IdBytes, IdHasher};
pub use query::{Prehashed, Query};
pub use rss::{Rss, RssHasher};

/// The default [`BuildHasher`], which is keyed.
///
/// With the feature `std`, [`DefaultHashBuilder::new`] draws its seed from the operating system.
/// Without it there is no such source: `new` then mixes an address and a counter, which an attacker
/// may guess, so a kernel or firmware should call [`with_seeds`](Self::with_seeds) with a secret.
///
/// # Example
///
/// ```
/// use core::hash::BuildHasher;
/// use flowtable::DefaultHashBuilder;
///
/// let ours = DefaultHashBuilder::with_seed(1);
/// assert_eq!(ours.hash_one(42), ours.hash_one(42));
/// assert_ne!(ours.hash_one(42), DefaultHashBuilder::with_seed(2).hash_one(42));
/// ```
#[derive(Clone, Debug)]
pub struct DefaultHashBuilder(RandomState);

impl DefaultHashBuilder {
    /// Creates a hasher with a new random seed.
    #[must_use]
    pub fn new() -> Self {
        Self::with_seeds(seed::draw())
    }

    /// Creates a hasher with the given seed, for tests.
    ///
    /// Equal seeds give equal hashes, in one build of the program on one CPU. As a secret, 64 bits
    /// are few.
    #[must_use]
    pub fn with_seed(seed: u64) -> Self {
        Self::with_seeds([seed, !seed, seed.rotate_left(32), !seed.rotate_left(32)])
    }

    /// Creates a hasher with a seed of 256 bits.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{DefaultHashBuilder, TrashMap};
    ///
    /// // From a source of randomness.
    /// let secret = [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344];
    /// let mut flows = TrashMap::with_hasher(DefaultHashBuilder::with_seeds(secret));
    /// flows.insert(443, "https");
    /// assert_eq!(flows.get(&443), Some(&"https"));
    /// ```
    #[must_use]
    pub fn with_seeds([a, b, c, d]: [u64; 4]) -> Self {
        Self(RandomState::with_seeds(a, b, c, d))
    }

    /// A seed that is as hard to guess as the hash of a key, and as a seed of [`Self::new`], which
    /// without an operating system is not hard. For tables that replace the hash of their caller,
    /// whose hasher is given keys only: it may refuse all else.
    pub(crate) fn derived(hash_of_a_key: u64) -> Self {
        let drawn = Self::new();
        Self::with_seeds([0, 1, 2, 3].map(|word: u64| drawn.hash_one((word, hash_of_a_key))))
    }
}

impl Default for DefaultHashBuilder {
    fn default() -> Self {
        Self::new()
    }
}

impl BuildHasher for DefaultHashBuilder {
    type Hasher = AHasher;

    #[inline]
    fn build_hasher(&self) -> AHasher {
        self.0.build_hasher()
    }
}
