//! Invariants of a concurrent table.

use alloc::vec::Vec;
use core::hash::{BuildHasher, Hash};

use bytemuck::NoUninit;

use super::ConcurrentTable;
use super::group::{Group, Shape};
use super::segment::{Segment, SegmentPtr};
use super::shard::Writer;
use crate::concurrent::policy::{self, SHARDS, mix, shard_of};
use crate::invariant::{InvariantError, ensure};

impl<K: NoUninit + Hash, V: NoUninit, S: BuildHasher> ConcurrentTable<K, V, S> {
    /// Checks all invariants. O(slots): for tests.
    ///
    /// # Errors
    ///
    /// If an invariant is violated.
    ///
    /// # Example
    ///
    /// ```
    /// let mut table = flowtable::ConcurrentTable::from([(1_u32, 10_u32)]);
    /// assert_eq!(table.validate(), Ok(()));
    /// ```
    #[doc(hidden)]
    pub fn validate(&mut self) -> Result<(), InvariantError> {
        (0..SHARDS).try_for_each(|nth| Writer::new(self, nth).validate())
    }
}

impl<K: NoUninit + Hash, V: NoUninit, S: BuildHasher> Writer<'_, K, V, S> {
    fn validate(&self) -> Result<(), InvariantError> {
        let directory = self.directory();
        let entries: Vec<SegmentPtr> = directory.entries().collect();
        let (mut len, mut bytes, mut first) = (0, directory.ptr().allocation_size(), 0);
        for segment in directory.segments() {
            let span = 1 << (directory.depth() - segment.depth());
            let is_prefix = first % span == 0
                && entries[first..first + span].iter().all(|at| *at == segment.ptr());
            ensure(is_prefix, || "the directory entries of a segment are not a prefix")?;
            self.validate_segment(segment, first / span)?;
            len += segment.load().live;
            bytes += segment.ptr().allocation_size::<K, V>();
            first += span;
        }
        ensure(len == self.shard().len(), || "a shard has miscounted its entries")?;
        ensure(bytes == self.shard().allocation_size(), || "a shard has miscounted its bytes")
    }

    fn validate_segment(
        &self,
        segment: Segment<'_, K, V>,
        prefix: usize,
    ) -> Result<(), InvariantError> {
        let groups: Vec<Group<'_, K, V>> = segment.groups().collect();
        let mut overflow = alloc::vec![0_usize; groups.len()];
        let (mut live, mut used) = (0, 0);
        for (at, group) in groups.iter().enumerate() {
            used += Shape::<K, V>::SLOTS - group.header().free().count();
            for slot in group.header().occupied() {
                let hash = self.table.hasher.hash_one(group.key(slot));
                let mixed = mix(hash);
                let own = mixed.checked_shr(64 - segment.depth()).unwrap_or(0);
                let is_here = shard_of(mixed) == self.nth && own == prefix as u64;
                ensure(is_here, || "an entry is in a wrong segment")?;
                let found = segment.locate(hash, mixed, &group.key(slot));
                ensure(found.is_some(), || "an entry is not found")?;
                let home = policy::home(mixed, groups.len());
                let distance = (at + groups.len() - home) % groups.len();
                (0..distance).for_each(|nth| overflow[(home + nth) % groups.len()] += 1);
                live += 1;
            }
        }
        let is_counted = |(group, &overflow): (&Group<'_, K, V>, &usize)| {
            let counted = usize::from(group.header().overflow());
            counted == overflow || counted == 255
        };
        let is_exact = groups.iter().zip(&overflow).all(is_counted);
        ensure(is_exact, || "an overflow count is wrong")?;
        let load = segment.load();
        ensure((load.live, load.used) == (live, used), || "a segment has miscounted its slots")
    }
}
