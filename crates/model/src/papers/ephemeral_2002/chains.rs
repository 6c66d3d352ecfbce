//! Stores at several load factors, and the entries that lookups examine in them.

use std::time::Duration;

use flowtable::ephemeral::{EphemeralStore, Heads};
use flowtable::probes::Probes;
use flowtable::{DefaultHashBuilder, Timestamp};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// Seed of all random numbers.
pub const SEED: u64 = 2002;

/// Capacity of a store, in bindings.
pub const ENTRIES: usize = 65_536;

/// The time of all operations.
pub const NOW: Timestamp = Timestamp::ZERO;

/// Chain heads per entry, as a setting and as a ratio.
pub const HEADS: [(Heads, f64); 3] =
    [(Heads::Half, 0.5), (Heads::Equal, 1.0), (Heads::Double, 2.0)];

/// Expected number of entries examined for an absent tag, given the mean chain length.
///
/// The paper examines the whole chain. The crate walks a chain only if two bits derived from the
/// tag, each one of 32, are set for tags in the chain: one in 32 tags has the same bit twice.
pub fn absent(length: f64) -> f64 {
    // The sum over the lengths of chains, times the chance that none of `bits` bits is set, for
    // each tag twice.
    let without = |bits: f64| {
        let missed = (1.0 - bits / 32.0).powi(2);
        length * missed * (length * (missed - 1.0)).exp()
    };
    let (one, two) = (length - without(1.0), length - 2.0 * without(1.0) + without(2.0));
    one / 32.0 + two * 31.0 / 32.0
}

/// A partially filled store, with its tags in the order of insertion.
pub struct Filled {
    pub store: EphemeralStore,
    pub tags: Vec<u64>,
    rng: StdRng,
    /// A second generator, so that sampling does not change the tags inserted later.
    others: StdRng,
}

/// Entries examined by lookups.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Examined {
    /// Mean over the tags present.
    pub present: f64,
    /// Mean over as many absent tags.
    pub absent: f64,
    /// Length of the longest chain.
    pub longest: u32,
}

impl Filled {
    pub fn new(entries: usize, heads: Heads, seed: u64) -> Self {
        let (hasher, lifetime) = (DefaultHashBuilder::with_seed(seed), Duration::from_secs(10));
        let store = EphemeralStore::with_parts(entries, lifetime, heads, hasher);
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
            let bound = self.store.find_or_create(tag, NOW, || 0).expect("there is room");
            if bound.is_new {
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

    pub fn examined(&mut self) -> Examined {
        let absent = self.absent(ENTRIES);
        let examined = |tag: &u64, is_there: bool| {
            let mut probes = Probes::default();
            assert_eq!(self.store.find_observed(tag, NOW, &mut probes).is_some(), is_there);
            probes.entries
        };
        let present: Vec<u32> = self.tags.iter().map(|tag| examined(tag, true)).collect();
        let absent: u32 = absent.iter().map(|tag| examined(tag, false)).sum();
        Examined {
            present: f64::from(present.iter().sum::<u32>()) / present.len() as f64,
            absent: f64::from(absent) / ENTRIES as f64,
            longest: present.into_iter().max().unwrap_or(0),
        }
    }
}
