//! Not a map: something to do that takes as long every time, about as long as an insertion. What the
//! machine does beside it is all that there is to see.

use std::hash::BuildHasher;
use std::hint::black_box;

use flowtable::DefaultHashBuilder;

use super::Key;
use super::contestant::{Shared, View};

/// Hashes, each of the one before.
const STEPS: usize = 16;

pub(crate) struct Nothing {
    hasher: DefaultHashBuilder,
}

impl Nothing {
    pub(crate) fn new(hasher: DefaultHashBuilder) -> Self {
        Self { hasher }
    }
}

impl Shared for Nothing {
    type View<'a> = &'a Self;

    fn view(&self) -> &Self {
        self
    }
}

impl View for &Nothing {
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
