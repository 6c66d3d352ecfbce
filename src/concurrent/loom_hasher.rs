//! The hasher of models for loom: all keys are in one shard.

use core::hash::{BuildHasher, Hasher};

use super::policy::{mix, shard_of};

/// The distribution of keys: over the first shard, or all with one home.
#[derive(Clone, Copy)]
pub(super) enum Spread {
    Apart,
    Together,
}

/// A hash of the first shard.
pub(super) struct FirstShard(Spread, u64);

impl BuildHasher for Spread {
    type Hasher = FirstShard;

    fn build_hasher(&self) -> FirstShard {
        FirstShard(*self, 0)
    }
}

impl Hasher for FirstShard {
    fn finish(&self) -> u64 {
        self.1
    }

    fn write(&mut self, _: &[u8]) {}

    fn write_u64(&mut self, id: u64) {
        let from = match self.0 {
            Spread::Apart => id << 40,
            Spread::Together => 1 << 40,
        };
        self.1 = (from..).find(|&hash| shard_of(mix(hash)) == 0).unwrap();
    }
}
