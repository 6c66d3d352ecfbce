//! Invariants of a concurrent table.

use alloc::vec::Vec;

use super::Engine;
use super::group::Group;
use super::segment::{Segment, SegmentPtr, Slot};
use super::shard::Writer;
use super::storage::Storage;
use crate::concurrent::collector;
use crate::concurrent::policy::{path, roots_of};
use crate::invariant::{InvariantError, ensure};

impl<C: Storage> Engine<C> {
    /// Checks all invariants; `hash_of` returns the hash of the entry in a slot, or `None` if the
    /// hash belongs to another slot.
    pub(in crate::concurrent) fn validate(
        &self,
        hash_of: impl Fn(Slot<'_, C>) -> Option<u64>,
    ) -> Result<(), InvariantError> {
        let (pin, mut len) = (collector::pin(), 0);
        for nth in self.open_shards() {
            len += Writer::new(self, nth, &pin).validate(&hash_of)?;
        }
        ensure(len == self.len(), || "the shards have miscounted their entries")
    }
}

impl<C: Storage> Writer<'_, C> {
    /// Returns the number of entries.
    fn validate(
        &self,
        hash_of: impl Fn(Slot<'_, C>) -> Option<u64>,
    ) -> Result<usize, InvariantError> {
        let directory = self.directory();
        let entries: Vec<SegmentPtr> = directory.entries().collect();
        let (mut len, mut bytes, mut first) = (0, directory.ptr().allocation_size(), 0);
        for segment in directory.segments() {
            let span = directory.span(segment.depth());
            let is_prefix = first % span == 0
                && entries[first..first + span].iter().all(|at| *at == segment.ptr());
            ensure(is_prefix, || "the directory entries of a segment are not a prefix")?;
            let mixed = (first as u64) << (64 - directory.depth()) | self.nth as u64;
            let is_shared = roots_of(mixed, segment.depth()).all(|root| {
                let mixed = mixed | root as u64;
                self.engine.segment(mixed, self.pin).ptr() == segment.ptr()
                    && self.engine.shard_of(mixed) == self.nth
            });
            ensure(is_shared, || "the roots of a segment are not those of its shard")?;
            self.validate_segment(segment, mixed, &hash_of)?;
            len += segment.load().live;
            bytes += segment.ptr().allocation_size::<C>();
            first += span;
        }
        ensure(bytes == self.shard().allocation_size(), || "a shard has miscounted its bytes")?;
        Ok(len)
    }

    fn validate_segment(
        &self,
        segment: Segment<'_, C>,
        first: u64,
        hash_of: impl Fn(Slot<'_, C>) -> Option<u64>,
    ) -> Result<(), InvariantError> {
        let groups: Vec<Group<'_, C>> = segment.groups().collect();
        let mut overflow = alloc::vec![0_usize; groups.len()];
        let mut live = 0;
        for slot in segment.entries() {
            let hash = hash_of(slot);
            ensure(hash.is_some(), || "the note of an entry is wrong")?;
            let hash = hash.unwrap_or(0);
            let mixed = C::mix(hash);
            let differs = (path(mixed) ^ path(first)).checked_shr(64 - segment.depth());
            ensure(differs.unwrap_or(0) == 0, || "an entry is in a wrong segment")?;
            let (group, nth) = slot.place();
            let found = segment.locate(hash, mixed, |other, slot| other.is(group) && slot == nth);
            ensure(found.is_some(), || "an entry is not found")?;
            let home = C::home(mixed, C::code(groups.len()));
            let passed = (home..).take(found.map_or(0, |at| at.distance));
            passed.for_each(|index| overflow[index % groups.len()] += 1);
            live += 1;
        }
        let free: usize = groups.iter().map(|group| group.header().free().count()).sum();
        let used = groups.len() * C::SLOTS - free;
        let is_counted = |(group, &overflow): (&Group<'_, C>, &usize)| {
            let counted = usize::from(group.header().overflow());
            counted == overflow || counted == 255
        };
        let is_exact = groups.iter().zip(&overflow).all(is_counted);
        ensure(is_exact, || "an overflow count is wrong")?;
        let load = segment.load();
        ensure((load.live, load.used) == (live, used), || "a segment has miscounted its slots")
    }
}
