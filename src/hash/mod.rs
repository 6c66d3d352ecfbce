//! The default hasher: keyed, so that nobody outside can choose keys that collide. And the classic ones, which are not.
//!
//! Any [`BuildHasher`] serves where the crate takes one; this is the one that it takes when none is
//! named. It is [`ahash`](https://docs.rs/ahash), which costs about 3 ns for a flow key; its four
//! words of seed belong to one table and are not shared.
//!
//! Seeds are an argument where there is no operating system to ask: see
//! [`with_seeds`](DefaultHashBuilder::with_seeds).
//!
//! # Hashes without a key
//!
//! The others are what routers have hashed the names of flows with, to compare with and to agree with others on.
//! `BuildHasherDefault<Crc32>` is a [`BuildHasher`], and so with each of them.
//!
//! | | bits | weak at | one takes it |
//! |---|--:|---|---|
//! | [`XorFold8`], [`XorFold16`] | 8, 16 | fields that count together: they cancel out | where names are few and random |
//! | [`Fletcher16`] | 16 | short names of small numbers: sums stay small | where it is computed anyway |
//! | [`Crc8Pair`] | 16 | names whose bytes past the first six, or before, are all alike: 256 places | as the paper did |
//! | [`Crc16`] | 16 | fields that count together: it is linear | where 16 bits are enough |
//! | [`Crc32`] | 32 | the same, less | where many have to agree on a function |
//!
//! - **They are not keyed.** Everybody can compute as many names with one hash as he likes, and a table that chains
//!   them is a list then. Where names come from the packets of strangers, take the default.
//! - **Only the low bits say something**, as many as the table above has. A table that looks at the upper
//!   bits of a hash, as Swiss tables do, needs another hash.
//! - **What is portable is `write(&[u8])`**, and `of`, which is the same. It does not matter where the bytes of a
//!   name are cut into several writes. A [`Hash`](core::hash::Hash) of integers writes them in the order of the
//!   machine, and one of slices and arrays writes their length first: a name that shall have one hash
//!   everywhere writes its bytes itself.
//!
//! Papers: Jain, *A comparison of hashing schemes for address lookup in computer networks* (1992); Chandranmenon and
//! Varghese, *Trading packet headers for packet processing* (1995), section 6.

mod crc;
mod fletcher;
pub mod source_index;
mod xor_fold;

use core::hash::BuildHasher;

use ahash::{AHasher, RandomState};

pub use crc::{Crc8Pair, Crc16, Crc32};
pub use fletcher::Fletcher16;
pub use xor_fold::{XorFold8, XorFold16};

/// Builds the default keyed hasher.
///
/// With the feature `std`, [`DefaultHashBuilder::new`] draws its seed from the operating system.
/// Without it there is no such source: `new` then mixes an address and a counter, which an
/// attacker may guess, so a kernel or firmware should call [`with_seeds`](Self::with_seeds) with a
/// secret of its own.
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
    /// A hasher with a seed of its own.
    #[must_use]
    pub fn new() -> Self {
        Self(RandomState::new())
    }

    /// A hasher with the given seed: the same seed gives the same hashes, in one build of the
    /// program on one machine. Good for tests; a secret of 64 bits is a short one.
    #[must_use]
    pub fn with_seed(seed: u64) -> Self {
        Self::with_seeds([seed, !seed, seed.rotate_left(32), !seed.rotate_left(32)])
    }

    /// A hasher with a secret of 256 bits.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{DefaultHashBuilder, TrashMap};
    ///
    /// let secret = [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344]; // from a source of randomness
    /// let mut flows = TrashMap::with_hasher(DefaultHashBuilder::with_seeds(secret));
    /// flows.insert(443, "https");
    /// assert_eq!(flows.get(&443), Some(&"https"));
    /// ```
    #[must_use]
    pub fn with_seeds([a, b, c, d]: [u64; 4]) -> Self {
        Self(RandomState::with_seeds(a, b, c, d))
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
