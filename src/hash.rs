//! The default hasher: keyed, so that nobody outside can choose keys that collide.
//!
//! Any [`BuildHasher`] serves where the crate takes one; this is the one that it takes when none is
//! named. It is [`ahash`](https://docs.rs/ahash), which costs about 3 ns for a flow key; its four
//! words of seed belong to one table and are not shared.
//!
//! Seeds are an argument where there is no operating system to ask: see
//! [`with_seed`](DefaultHashBuilder::with_seed).

use core::hash::BuildHasher;

use ahash::{AHasher, RandomState};

/// Builds the default keyed hasher.
///
/// With the feature `std`, [`DefaultHashBuilder::new`] draws its seed from the operating system.
/// Without it there is no such source: `new` then mixes an address and a counter, which an
/// attacker may guess, so a kernel or firmware should call [`with_seed`](Self::with_seed) with a
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
    /// program on one machine.
    #[must_use]
    pub fn with_seed(seed: u64) -> Self {
        // Odd multipliers spread one word over four; the words need only differ, `ahash` mixes them.
        let word = |odd: u64| seed.wrapping_add(1).wrapping_mul(odd);
        Self(RandomState::with_seeds(
            word(0x9e37_79b9_7f4a_7c15),
            word(0xbf58_476d_1ce4_e5b9),
            word(0x94d0_49bb_1331_11eb),
            word(0xd6e8_feb8_6659_fd93),
        ))
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
