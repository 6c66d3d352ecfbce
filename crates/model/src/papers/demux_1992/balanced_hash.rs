//! A hash that fills all chains equally, as the analysis of the paper assumes.

use std::hash::{BuildHasher, Hasher};

/// The sum of the 32-bit words of a key: consecutive addresses map to consecutive chains.
///
/// Collisions are trivial to construct, so this hash is for calculations only.
#[derive(Clone, Copy, Debug, Default)]
pub struct Balanced;

/// The state of [`Balanced`]: the sum of the words written.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum(u32);

impl BuildHasher for Balanced {
    type Hasher = Sum;

    fn build_hasher(&self) -> Sum {
        Sum::default()
    }
}

impl Hasher for Sum {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.wrapping_add(u32::from(*byte));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = self.0.wrapping_add((word >> 32) as u32).wrapping_add(word as u32);
    }

    fn write_u128(&mut self, words: u128) {
        self.write_u64((words >> 64) as u64);
        self.write_u64(words as u64);
    }

    fn finish(&self) -> u64 {
        self.0.into()
    }
}
