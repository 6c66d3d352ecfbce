//! Stores that are more or less full, and what look-ups examine in them.

use std::time::Duration;

use flowtable::ephemeral::{EphemeralStore, Heads};
use flowtable::{DefaultHashBuilder, Probes, Timestamp};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// Whatever is random is so by this.
pub const SEED: u64 = 2002;

/// Room for so many bindings.
pub const ENTRIES: usize = 65_536;

/// When everything happens.
pub const NOW: Timestamp = Timestamp::ZERO;

/// Heads for an entry, and how many these are.
pub const HEADS: [(Heads, f64); 3] =
    [(Heads::Half, 0.5), (Heads::Equal, 1.0), (Heads::Double, 2.0)];

/// Entries that are examined on average for a tag that is not there, in chains of this length on average.
///
/// The paper examines all. Here a chain is walked if the tag's bit, one of 32, is that of one of its tags.
pub fn absent(length: f64) -> f64 {
    length * (1.0 - 31.0 / 32.0 * (-length / 32.0).exp())
}

/// A store with room for `entries`, its tags in the order in which they came.
pub struct Filled {
    pub store: EphemeralStore,
    pub tags: Vec<u64>,
    rng: StdRng,
    /// Where others come from, so that whoever asks for these changes nothing.
    others: StdRng,
}

/// Entries that look-ups examined.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Examined {
    /// On average, for tags that are there.
    pub present: f64,
    /// For as many that are not.
    pub absent: f64,
    /// The longest chain.
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

    /// Random tags come until there are so many.
    pub fn fill_to(&mut self, bindings: usize) {
        while self.tags.len() < bindings {
            let tag = self.rng.random();
            let bound = self.store.find_or_create(tag, NOW, || 0).expect("there is room");
            if bound.is_new {
                self.tags.push(tag);
            }
        }
    }

    /// The same with what part of its room this is; one at least.
    pub fn fill_to_part(&mut self, part: f64) {
        self.fill_to(((self.store.capacity() as f64 * part).round() as usize).max(1));
    }

    /// So many tags that are there, at random.
    pub fn present(&mut self, count: usize) -> Vec<u64> {
        let tags = &self.tags;
        (0..count).map(|_| tags[self.others.random_range(0..tags.len())]).collect()
    }

    /// So many random tags. That one of them is there is not to be expected before the sun is cold.
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
