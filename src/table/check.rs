//! Checks of the invariants.

use alloc::{format, vec};

use super::policy;
use super::segment::{Boxed, Segment};
use super::tags::{GROUP, tag};
use super::{STASHED, Table};
use crate::invariant::{InvariantError, ensure};
use crate::memory::Allocator;

impl<T, A: Allocator + Clone> Table<T, A> {
    /// Checks every invariant.
    pub(crate) fn validate(&self, hasher: &impl Fn(&T) -> u64) -> Result<(), InvariantError> {
        let (mut segments, mut len) = (0, self.stash.len());
        for (number, segment) in self.directory.numbers(self.mask) {
            len += self.validate_segment(number, segment, hasher)?;
            segments += 1;
        }
        self.validate_directory()?;
        let is_stashed = |(hash, entry): &(u64, Boxed<T>)| hasher(entry) == *hash;
        ensure(self.stash.iter().all(is_stashed), || "an entry of the stash has another hash")?;
        let has_sizes = segments < 2 || self.mask + GROUP == policy::SLOTS;
        let is_counted = (segments, len) == (self.segments, self.len);
        ensure(is_counted && has_sizes, || {
            format!("there are {len} entries in {segments} segments")
        })?;
        let is_found = |entry: &T| {
            let is_it = |other: &T| core::ptr::eq(entry, other);
            size_of::<T>() == 0 || self.find(hasher(entry), is_it).is_some()
        };
        ensure(self.iter().all(is_found), || "an entry cannot be found")
    }

    /// Checks that each index has the segment of its low bits, and the sizes of segments.
    fn validate_directory(&self) -> Result<(), InvariantError> {
        let slots = if self.segments > 1 { policy::SLOTS } else { self.slots() };
        for index in 0..self.directory.len() {
            let segment = self.directory.segment(index as u64);
            let header = segment.header(self.mask);
            let number = index & ((1 << header.depth) - 1);
            let is_shared = header.depth <= self.directory.depth()
                && self.directory.segment(number as u64) == segment;
            ensure(is_shared, || format!("index {index} has not the segment {number}"))?;
            let has_size = header.slots as usize == slots
                && (slots.div_ceil(GROUP).max(1) - 1) * GROUP == self.mask;
            ensure(has_size, || format!("segment {number} has {} slots", header.slots))?;
        }
        let is_stashed = self.extras & STASHED > 0;
        ensure(is_stashed != self.stash.is_empty(), || "the stash is marked wrongly")
    }

    /// Checks one segment; returns how many entries it has.
    fn validate_segment(
        &self,
        number: usize,
        segment: Segment<T>,
        hasher: &impl Fn(&T) -> u64,
    ) -> Result<usize, InvariantError> {
        let mask = self.mask;
        let header = segment.header(mask);
        let mut is_passed = vec![false; mask / GROUP + 1];
        let mut len = 0;
        for (_, slot) in segment.slots(mask) {
            let hash = hasher(segment.get(slot));
            let has_tag = segment.tag(slot) == tag(hash) && slot < header.slots as usize;
            ensure(has_tag, || format!("slot {slot} of segment {number} has a wrong tag"))?;
            let is_in_segment = (hash as usize ^ number) & ((1 << header.depth) - 1) == 0;
            ensure(is_in_segment, || {
                format!("slot {slot} belongs to another segment than {number}")
            })?;
            let mut group = self.home(hash);
            let is_displaced = group != slot & !(GROUP - 1);
            ensure(segment.is_displaced(mask, slot) == is_displaced, || {
                format!("slot {slot} of segment {number} is marked wrongly as displaced")
            })?;
            while group != slot & !(GROUP - 1) {
                is_passed[group / GROUP] = true;
                group = self.next(group);
            }
            len += 1;
        }
        for (group, &is_passed) in is_passed.iter().enumerate() {
            let offset = group * GROUP;
            ensure(!is_passed || segment.is_group_full(offset), || {
                format!("an entry has passed group {group} of segment {number}, which is not full")
            })?;
            let mut free = segment.group(offset).free();
            ensure(free.all(|slot| !segment.is_displaced(mask, offset + slot)), || {
                format!("group {group} of segment {number} has a free slot marked as displaced")
            })?;
        }
        let is_counted = len == segment.len(mask)
            && len <= policy::most(header.slots as usize)
            && header.limit as usize <= policy::most(header.slots as usize).max(len);
        ensure(is_counted, || format!("segment {number} counts its {len} entries wrongly"))?;
        Ok(len)
    }

    /// Counts the entries by their distance from home, in groups. The last place of `distances`
    /// counts all greater distances too, and the stash.
    pub(crate) fn count_distances(&self, distances: &mut [usize], hasher: &impl Fn(&T) -> u64) {
        let last = distances.len() - 1;
        for (_, segment) in self.directory.numbers(self.mask) {
            for (_, slot) in segment.slots(self.mask) {
                let home = self.home(hasher(segment.get(slot)));
                let distance = ((slot & !(GROUP - 1)).wrapping_sub(home) & self.mask) / GROUP;
                distances[distance.min(last)] += 1;
            }
        }
        distances[last] += self.stash.len();
    }
}
