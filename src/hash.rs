//! The default hasher: keyed, so that nobody outside can choose keys that collide.
//!
//! Any [`BuildHasher`] serves where the crate takes one; this is the one that it takes when none is
//! named. It is [`ahash`](https://docs.rs/ahash), which costs about 3 ns for a flow key; its four
//! words of seed belong to one table and are not shared.
//!
//! Seeds are an argument where there is no operating system to ask: see
//! [`with_seeds`](DefaultHashBuilder::with_seeds).

use core::hash::BuildHasher;

use ahash::{AHasher, RandomState};

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
