//! The default hash: one multiplication for 128 bits of a key, with secret words in both factors.
//!
//! ```text
//!     words of the key    │ 64 bits │ 64 bits │   │ 64 bits │ 64 bits │   …
//!                           ^ key 0   ^ key 1     ^ hash    ^ key 1
//!                           └── × ────┘           └── × ────┘
//!     128 bits of product   upper ^ lower = hash ─┘ upper ^ lower = hash
//! ```
//!
//! - **Both factors are secret.** A sender does not know the word of a key that makes a factor
//!   zero, and with it the product. foldhash has a constant in one of the factors.
//! - **Words are packed**, so that a tuple of small fields takes one multiplication. The second
//!   factor depends on the number of bits in the block: `0_u8` and `(0_u8, 0_u8)` have different
//!   hashes.
//! - **Byte strings** are hashed by ahash, to one word of the key. Strings of 4, 8 and 16 bytes, as
//!   of addresses, are such a word themselves.
//!
//! The halves are not added: modulo 2^64 - 1 their sum is the product of the factors, so a key and
//! its complement would have the same hash with every second seed.
//!
//! Price of a single multiplication: it maps a progression of keys, such as sequential ports, to a
//! progression of products, and some bits of these are uneven under one seed of seven. Under up to
//! two seeds of a hundred (foldhash: one), a table that detects floods notices it, and reseeds
//! once: reseeded tables have ahash. Elsewhere it costs a few comparisons more. Two ways out were
//! measured, each with its price: `hash + hash.rotate_right(13)` has three more instructions in
//! each lookup, and the lower word in both factors leaves the flips of some bits uneven.

use core::hash::{BuildHasher, Hasher};

use ahash::{AHasher, RandomState};

use crate::raw::splitmix::{GOLDEN_GAMMA, mix};

/// Bits of a block, which takes one multiplication.
const BLOCK: u32 = u128::BITS;

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
#[derive(Clone)]
pub struct DefaultHashBuilder {
    /// Words that are mixed from the seed. The first is in the first factor of the first block, the
    /// others are in the second factor of blocks with 128, with 64 and with other numbers of bits.
    /// Byte strings are hashed with all of them.
    keys: [u64; 4],
}

impl DefaultHashBuilder {
    /// Creates a hasher with a new random seed.
    #[must_use]
    pub fn new() -> Self {
        Self::with_seeds(draw_seed())
    }

    /// Creates a hasher with the given seed, for tests.
    ///
    /// Equal seeds give equal hashes, in one build of the program on one CPU. As a secret, 64 bits
    /// are few.
    #[must_use]
    pub const fn with_seed(seed: u64) -> Self {
        Self::with_seeds([seed, 0, 0, 0])
    }

    /// Creates a hasher with a seed of 256 bits.
    ///
    /// The words are mixed: small or equal ones are as good as others, if they are secret.
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
    pub const fn with_seeds(seeds: [u64; 4]) -> Self {
        // There and back, so that each word depends on all: a bijection of 256 bits.
        let (mut keys, mut word, mut step) = (seeds, GOLDEN_GAMMA, 0);
        while step < 7 {
            let at = if step < 4 { step } else { 6 - step };
            word = mix((keys[at] ^ word).wrapping_add(GOLDEN_GAMMA));
            keys[at] = word;
            step += 1;
        }
        Self { keys }
    }
}

impl Default for DefaultHashBuilder {
    fn default() -> Self {
        Self::new()
    }
}

/// Without the seed, which is a secret.
impl core::fmt::Debug for DefaultHashBuilder {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("DefaultHashBuilder").finish_non_exhaustive()
    }
}

impl BuildHasher for DefaultHashBuilder {
    type Hasher = DefaultHasher;

    #[inline(always)]
    fn build_hasher(&self) -> DefaultHasher {
        DefaultHasher { keys: self.keys, hash: self.keys[0], block: 0, filled: 0 }
    }
}

/// The [`Hasher`] of a [`DefaultHashBuilder`].
#[derive(Clone)]
pub struct DefaultHasher {
    keys: [u64; 4],
    /// The hash of the blocks before the current one.
    hash: u64,
    /// Words of the key, from the lowest bit on.
    block: u128,
    /// Bits of the block that have words.
    filled: u32,
}

impl DefaultHasher {
    /// Adds a word to the block, or begins another block. All conditions are constant for a key
    /// that always writes the same types.
    #[inline(always)]
    fn push(&mut self, word: u128, bits: u32) {
        if self.filled + bits > BLOCK {
            self.hash = self.folded();
            (self.block, self.filled) = (word, bits);
        } else {
            self.block |= word << self.filled;
            self.filled += bits;
        }
    }

    fn hash_string(&self, bytes: &[u8]) -> u64 {
        let [a, b, c, d] = self.keys;
        let mut hasher = RandomState::with_seeds(a, b, c, d).build_hasher();
        hasher.write(bytes);
        hasher.finish()
    }

    /// The hash of the blocks so far, with the current one.
    #[inline(always)]
    fn folded(&self) -> u64 {
        let [_, full, half, other] = self.keys;
        // Blocks that differ in the number of their bits have different factors.
        let key = match self.filled {
            128 => full,
            64 => half,
            bits => other.rotate_left(bits / 2),
        };
        let (low, high) = (self.block as u64, (self.block >> 64) as u64);
        let product = u128::from(low ^ self.hash) * u128::from(high ^ key);
        product as u64 ^ (product >> 64) as u64
    }
}

/// Without the seed, which is a secret.
impl core::fmt::Debug for DefaultHasher {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("DefaultHasher").finish_non_exhaustive()
    }
}

impl Hasher for DefaultHasher {
    #[inline(always)]
    fn finish(&self) -> u64 {
        self.folded()
    }

    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        // Arrays of integers, and so addresses, are written as bytes. Their length is constant.
        let (word, bits) = if let Ok(word) = bytes.try_into() {
            (u32::from_ne_bytes(word).into(), u32::BITS)
        } else if let Ok(word) = bytes.try_into() {
            (u64::from_ne_bytes(word).into(), u64::BITS)
        } else if let Ok(word) = bytes.try_into() {
            (u128::from_ne_bytes(word), u128::BITS)
        } else {
            (self.hash_string(bytes).into(), u64::BITS)
        };
        self.push(word, bits);
    }

    #[inline(always)]
    fn write_u8(&mut self, word: u8) {
        self.push(word.into(), u8::BITS);
    }

    #[inline(always)]
    fn write_u16(&mut self, word: u16) {
        self.push(word.into(), u16::BITS);
    }

    #[inline(always)]
    fn write_u32(&mut self, word: u32) {
        self.push(word.into(), u32::BITS);
    }

    #[inline(always)]
    fn write_u64(&mut self, word: u64) {
        self.push(word.into(), u64::BITS);
    }

    #[inline(always)]
    fn write_u128(&mut self, word: u128) {
        self.push(word, u128::BITS);
    }

    #[inline(always)]
    fn write_usize(&mut self, word: usize) {
        self.push(word as u128, usize::BITS);
    }
}

/// The hash of a table that has reseeded, in place of the hash of its caller: ahash. It has two
/// multiplications, and takes no progression of keys for a flood, so that a table which reseeds
/// without an attack does so once.
#[derive(Clone)]
pub(crate) struct Reseed(RandomState);

impl Reseed {
    /// A seed that is as hard to guess as the hash of a key, and as a seed of
    /// [`DefaultHashBuilder::new`], which without an operating system is not hard. The hasher of
    /// the caller is given keys only: it may refuse all else.
    pub(crate) fn new(hash_of_a_key: u64) -> Self {
        let [a, b, c, d] = draw_seed();
        let [a, b, c, d] = DefaultHashBuilder::with_seeds([a ^ hash_of_a_key, b, c, d]).keys;
        Self(RandomState::with_seeds(a, b, c, d))
    }
}

impl BuildHasher for Reseed {
    type Hasher = AHasher;

    #[inline]
    fn build_hasher(&self) -> AHasher {
        self.0.build_hasher()
    }
}

/// Without the seed, which is a secret.
impl core::fmt::Debug for Reseed {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Reseed").finish_non_exhaustive()
    }
}

/// Draws a seed: the standard library has a key of the operating system for each thread, and counts
/// the draws.
#[cfg(feature = "std")]
fn draw_seed() -> [u64; 4] {
    use core::hash::BuildHasher;

    let drawn = std::hash::RandomState::new();
    [0, 1, 2, 3].map(|word: u64| drawn.hash_one(word))
}

/// Two addresses and a counter: without an operating system there is no source of randomness.
#[cfg(not(feature = "std"))]
fn draw_seed() -> [u64; 4] {
    use core::ptr::from_ref;
    use core::sync::atomic::{AtomicUsize, Ordering};

    static COUNT: AtomicUsize = AtomicUsize::new(0);
    // Not one operation, as some CPUs have none. Threads that read the same count have different
    // stacks.
    let count = COUNT.load(Ordering::Relaxed);
    COUNT.store(count.wrapping_add(1), Ordering::Relaxed);
    [count, from_ref(&count).addr(), from_ref(&COUNT).addr(), 0].map(|word| word as u64)
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::draw_seed;

    #[test]
    fn seeds_differ() {
        let mut seeds: Vec<[u64; 4]> = (0..100).map(|_| draw_seed()).collect();
        seeds.sort_unstable();
        seeds.dedup();
        assert_eq!(seeds.len(), 100);
    }
}
