//! Constant work without a map, about as long as an insertion: it shows the interruptions by other
//! work of the machine.

use std::hash::BuildHasher;
use std::hint::black_box;

use flowtable::DefaultHashBuilder;

use super::Key;
use super::shared_map::{SharedMap, View};

/// The number of hashes, each of the last one.
const STEPS: usize = 16;

pub(crate) struct NoMap {
    hasher: DefaultHashBuilder,
}

impl NoMap {
    pub(crate) fn new(hasher: DefaultHashBuilder) -> Self {
        Self { hasher }
    }
}

impl SharedMap for NoMap {
    type View<'a> = &'a Self;

    fn view(&self) -> &Self {
        self
    }
}

impl View for &NoMap {
    #[inline]
    fn get(&self, key: &Key) -> Option<u64> {
        let first = self.hasher.hash_one(key);
        Some((1..STEPS).fold(first, |hash, _| self.hasher.hash_one(hash)))
    }

    #[inline]
    fn insert(&mut self, key: Key, _: u64) {
        black_box(self.get(&key));
    }
}
