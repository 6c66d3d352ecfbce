//! Bursts of keys that are looked up in `Records`: their cache misses overlap.

use core::iter::{Enumerate, Fuse};

use super::records::Records;
use crate::memory::Allocator;
use crate::raw::burst_vec::BurstVec;

/// A key of a batch: its index, its hash, and itself.
pub(crate) struct Hashed<Q> {
    pub(crate) index: usize,
    pub(crate) hash: u32,
    pub(crate) key: Q,
}

/// The keys of a batch, in bursts.
pub(crate) struct Bursts<I: Iterator> {
    keys: Fuse<Enumerate<I>>,
    burst: BurstVec<Hashed<I::Item>>,
}

impl<I: Iterator> Bursts<I> {
    #[inline(always)]
    pub(crate) fn new(keys: I) -> Self {
        Self { keys: keys.enumerate().fuse(), burst: BurstVec::new() }
    }

    /// Hashes the keys of the next burst, and prefetches the lines of `records` and the records
    /// that their lookups read. Returns none after the last burst.
    #[inline(always)]
    pub(crate) fn next<M, K, V, A: Allocator + Clone>(
        &mut self,
        records: &Records<M, K, V, A>,
        hash_of: impl Fn(&I::Item) -> u32,
    ) -> Option<&[Hashed<I::Item>]> {
        let hashed = self.keys.by_ref().map(|(index, key)| {
            let hash = hash_of(&key);
            records.prefetch_line(hash);
            Hashed { index, hash, key }
        });
        let burst = self.burst.fill(hashed);
        burst.iter().for_each(|hashed| records.prefetch_record(hashed.hash));
        (!burst.is_empty()).then_some(burst)
    }
}
