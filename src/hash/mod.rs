//! Hashers: the keyed default, the hash of a network card, and keys that are random already.
//!
//! All structures accept any [`BuildHasher`]. The default is [`DefaultHashBuilder`]:
//! [`ahash`](https://docs.rs/ahash) with four secret words of seed for each table, at about 3 ns
//! for a flow key.
//!
//! Without an operating system as source of randomness the seeds are an argument: see
//! [`with_seeds`](DefaultHashBuilder::with_seeds).
//!
//! # Hostile keys
//!
//! The default hash resists senders who choose keys, but see neither hashes nor the order of the
//! entries of a table, and do not time single lookups to nanoseconds. It is not cryptographic, so
//! tables with untrusted keys should not reveal the order of their entries.
//!
//! Some structures detect floods of keys with similar hashes, under any hash:
//!
//! - [`TrashMap`], [`TrashSet`], [`FlowCache`], [`TrashDemux`] and [`SocketTable`] draw a new seed
//!   and rehash, some entries with each insertion;
//! - [`TrashTable`], whose caller hashes, reports the flood;
//! - [`ChainedCache`], [`BoundedCache`], [`DuplicateFilter`], [`EphemeralStore`], [`Sequent`] and
//!   the structures for several threads do *not* detect it.
//!
//! If senders may learn hashes, give the structure a cryptographic hash by its parameter `S`, such
//! as SipHash, at several times the cost:
//!
//! ```
//! use flowtable::{FlowKey, TrashMap};
//! use std::hash::RandomState; // SipHash 1-3
//!
//! let mut flows: TrashMap<FlowKey, u64, RandomState> = TrashMap::default();
//! let key = FlowKey::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), 40_000, 443, 6).unwrap();
//! flows.insert(key, 1500);
//! assert_eq!(flows.get(&key), Some(&1500));
//! ```
//!
//! # Other hashers
//!
//! [`Rss`] computes the hash of a network card, so that a table takes the one that the card has
//! delivered with a packet. [`IdHasher`] is for keys that are random already.
//!
//! [`TrashMap`]: crate::TrashMap
//! [`TrashSet`]: crate::TrashSet
//! [`TrashTable`]: crate::TrashTable
//! [`FlowCache`]: crate::FlowCache
//! [`TrashDemux`]: crate::demux::TrashDemux
//! [`SocketTable`]: crate::SocketTable
//! [`ChainedCache`]: crate::ChainedCache
//! [`BoundedCache`]: crate::BoundedCache
//! [`DuplicateFilter`]: crate::DuplicateFilter
//! [`EphemeralStore`]: crate::EphemeralStore
//! [`Sequent`]: crate::demux::Sequent

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
