//! The hasher of models for loom.

use core::hash::{BuildHasher, Hasher};

use super::policy::{mix, root_of};

/// The distribution of keys.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Spread {
    /// In the first shard, with different homes.
    Apart,
    /// In the first shard, with one home.
    Together,
    /// Odd ones in the second shard.
    Shards,
}

/// The hash of a key.
pub(super) struct Hash(Spread, u64);

impl BuildHasher for Spread {
    type Hasher = Hash;

    fn build_hasher(&self) -> Hash {
        Hash(*self, 0)
    }
}

impl Hasher for Hash {
    fn finish(&self) -> u64 {
        self.1
    }

    fn write(&mut self, _: &[u8]) {}

    fn write_u64(&mut self, id: u64) {
        let (from, root) = match self.0 {
            Spread::Apart => (id << 40, 0),
            Spread::Together => (1 << 40, 0),
            Spread::Shards => (id << 40, id as usize % 2),
        };
        self.1 = (from..).find(|&hash| root_of(mix(hash)) == root).unwrap();
    }
}
