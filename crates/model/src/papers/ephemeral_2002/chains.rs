//! Stores at several load factors, and a model of the chains of the paper, which the store does not
//! have.

use std::time::Duration;

use flowtable::{DefaultHashBuilder, EphemeralStore, Timestamp};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// Seed of all random numbers.
pub const SEED: u64 = 2002;

/// Capacity of a store, in bindings.
pub const ENTRIES: usize = 65_536;

/// The time of all operations.
pub const NOW: Timestamp = Timestamp::ZERO;

/// Chain heads per entry.
pub const HEADS: [f64; 3] = [0.5, 1.0, 2.0];

/// A partially filled store, with its tags in the order of insertion.
pub struct Filled {
    pub store: EphemeralStore,
    pub tags: Vec<u64>,
    rng: StdRng,
    /// A second generator, so that sampling does not change the tags inserted later.
    others: StdRng,
}

impl Filled {
    pub fn new(entries: usize, seed: u64) -> Self {
        let (hasher, lifetime) = (DefaultHashBuilder::with_seed(seed), Duration::from_secs(10));
        let store = EphemeralStore::with_parts(entries, lifetime, hasher);
        let store = store.expect("there is memory");
        Self {
            store,
            tags: vec![],
            rng: StdRng::seed_from_u64(seed),
            others: StdRng::seed_from_u64(!seed),
        }
    }

    /// Inserts random tags until there are `bindings`.
    pub fn fill_to(&mut self, bindings: usize) {
        while self.tags.len() < bindings {
            let tag = self.rng.random();
            if self.store.get(&tag, NOW).is_none() {
                self.store.get_or_insert_with(&tag, NOW, || 0).expect("there is room");
                self.tags.push(tag);
            }
        }
    }

    /// Fills a fraction of the capacity, at least one entry.
    pub fn fill_to_part(&mut self, part: f64) {
        self.fill_to(((self.store.capacity() as f64 * part).round() as usize).max(1));
    }

    /// Draws `count` tags that are present.
    pub fn present(&mut self, count: usize) -> Vec<u64> {
        let tags = &self.tags;
        (0..count).map(|_| tags[self.others.random_range(0..tags.len())]).collect()
    }

    /// Draws `count` random tags, which are absent with near certainty.
    pub fn absent(&mut self, count: usize) -> Vec<u64> {
        (0..count).map(|_| self.others.random()).collect()
    }
}

/// Entries examined by lookups in chains.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Examined {
    /// Mean over the tags present.
    pub present: f64,
    /// Mean over absent tags: the mean length of a chain.
    pub absent: f64,
    /// Length of the longest chain.
    pub longest: u32,
}

/// The chains of the paper: the number of entries of each. New ones are inserted at the head.
pub struct Chains {
    lengths: Vec<u32>,
    entries: usize,
    /// Entries examined by the lookups of all tags.
    examined: u64,
    rng: StdRng,
}

impl Chains {
    /// Chains for a store of [`ENTRIES`], with this number of heads for an entry.
    pub fn new(heads: f64, seed: u64) -> Self {
        let lengths = vec![0; (ENTRIES as f64 * heads) as usize];
        Self { lengths, entries: 0, examined: 0, rng: StdRng::seed_from_u64(seed) }
    }

    /// Inserts random tags until there are `entries`.
    pub fn fill_to(&mut self, entries: usize) {
        while self.entries < entries {
            let chain = self.rng.random_range(0..self.lengths.len());
            self.lengths[chain] += 1;
            // The others of the chain are one further from the head now.
            self.examined += u64::from(self.lengths[chain]);
            self.entries += 1;
        }
    }

    /// Fills a fraction of the capacity, at least one entry.
    pub fn fill_to_part(&mut self, part: f64) {
        self.fill_to(((ENTRIES as f64 * part).round() as usize).max(1));
    }

    pub fn examined(&self) -> Examined {
        Examined {
            present: self.examined as f64 / self.entries as f64,
            absent: self.entries as f64 / self.lengths.len() as f64,
            longest: self.lengths.iter().copied().max().unwrap_or(0),
        }
    }
}
