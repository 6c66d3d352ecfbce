//! Growing and shrinking, one segment at a time.
//!
//! ```text
//!     before   │ a b c │ d e f │                        two segments
//!     split    │ a   c │ d e f │ b     │                by the next bit of the hash
//!     split    │ a   c │ d   f │ b     │ e     │
//! ```
//!
//! A step collects the entries of the segments concerned and of the stash, with their hashes, and
//! inserts them again. So the stash becomes empty when hashes separate the entries. All hashes are
//! computed before anything changes.
//!
//! The hashes are in the records of the entries, which are not in the CPU's caches. So each of the
//! 64 insertions before a split prefetches the hashes of one line. In a cache of 1.2 million flows,
//! this takes the worst packet from 70 µs to 47: the slowest then allocate a chunk of records.

use core::ops::Range;

use super::Lines;
use super::line::Line;
use super::places::{Growing, Places};
use super::policy::{self, SEGMENT, SLOTS};
use crate::memory::{Allocator, Vec};
use crate::raw::prefetch::prefetch;
use crate::table::error::TryReserveError;

/// The entries of one segment, or of two that fit into one.
struct Entries {
    hashes: [u32; SLOTS],
    numbers: [u32; SLOTS],
    len: usize,
}

impl Lines {
    /// The bytes that [`shrink_step`](Self::shrink_step) allocates at most, before it frees more.
    pub(crate) const STEP: usize = 16 << 10;
}

impl<A: Allocator + Clone> Lines<A> {
    /// A table without memory, whose memory will be from `memory`.
    pub(crate) fn new_in(memory: A) -> Self {
        let (places, stash) = (Growing::new_in(memory.clone()), Vec::new_in(memory));
        Self { places, len: 0, stash }
    }

    /// A table with a line, and memory from `memory`.
    ///
    /// # Errors
    ///
    /// If memory cannot be allocated.
    pub(crate) fn with_line_in(memory: A) -> Result<Self, TryReserveError> {
        let mut lines = Self::new_in(memory);
        lines.grow(|_| 0)?;
        Ok(lines)
    }

    /// Whether hashes are not random: there are entries for which their segment has no slot, and
    /// not because there was no memory to grow.
    #[inline]
    pub(crate) fn is_flooded(&self) -> bool {
        !self.stash.is_empty() && !self.is_growth_due(0)
    }

    /// Whether there are lines.
    #[inline]
    pub(crate) fn has_lines(&self) -> bool {
        self.places.count() > 0
    }

    /// Inserts a number that is not in the table. Grows by a segment, if it is time: `hash_of`
    /// returns the hashes of the numbers in the table.
    ///
    /// # Errors
    ///
    /// If there is no slot, and memory cannot be allocated. The table is unchanged.
    #[inline]
    pub(crate) fn insert(
        &mut self,
        hash: u32,
        number: u32,
        hash_of: impl Fn(u32) -> u32,
    ) -> Result<(), TryReserveError> {
        if self.is_growth_due(0) {
            self.grow(hash_of)?;
        }
        self.insert_here(hash, number)
    }

    /// Makes room for an entry: if nothing changes but that an entry with the hash `instead` is
    /// removed, one with this hash is [inserted](Self::insert_reserved) without allocating. Grows
    /// by a segment, if that is overdue.
    ///
    /// # Errors
    ///
    /// If there is no slot, and memory cannot be allocated. The entries are unchanged.
    #[inline]
    pub(crate) fn reserve_place(
        &mut self,
        hash: u32,
        instead: Option<u32>,
        hash_of: impl Fn(u32) -> u32,
    ) -> Result<(), TryReserveError> {
        if self.is_growth_due(usize::from(instead.is_some())) {
            self.grow(hash_of)?;
        }
        let home = self.home(hash);
        let is_full = self.line(home).free().is_empty();
        if is_full { self.reserve_further(home, instead) } else { Ok(()) }
    }

    /// Reserves a place in the stash, unless another line of the segment has a free slot. The line
    /// `home` is full. An entry with the hash `instead` in this segment also counts as a free slot,
    /// as its removal precedes the insertion.
    #[inline(never)]
    fn reserve_further(
        &mut self,
        home: usize,
        instead: Option<u32>,
    ) -> Result<(), TryReserveError> {
        let segment = |line: usize| line & !self.wrap();
        if instead.is_some_and(|instead| segment(self.home(instead)) == segment(home)) {
            return Ok(());
        }
        let mut at = self.next(home);
        while at != home {
            if !self.line(at).free().is_empty() {
                return Ok(());
            }
            at = self.next(at);
        }
        self.reserve_stash()
    }

    /// Grows by a segment, if that is overdue.
    ///
    /// # Errors
    ///
    /// If there is no slot, and memory cannot be allocated. The entries are unchanged.
    #[inline]
    pub(crate) fn grow_if_overdue(
        &mut self,
        hash_of: impl Fn(u32) -> u32,
    ) -> Result<(), TryReserveError> {
        if self.is_growth_due(1) { self.grow(hash_of) } else { Ok(()) }
    }

    /// Whether a [rehashed](Self::rehash) number needs no growth before, and none was stashed.
    #[inline]
    pub(crate) fn has_room_for_rehash(&self) -> bool {
        self.stash.is_empty() && self.len <= self.places.limit()
    }

    /// Passes numbers to `each` whose hashes the next split reads: one line of the segment with
    /// each of the last insertions before, for their records to be prefetched.
    #[inline]
    pub(crate) fn before_split(&self, each: impl FnMut(u32)) {
        let left = self.places.limit().saturating_sub(self.len);
        if left < SEGMENT && self.places.count() >= SEGMENT {
            self.for_line_of_split(left, each);
        }
    }

    /// Passes the numbers of a line of the segment that splits next to `each`. Prefetches the line
    /// before it, which is the next one.
    #[inline(never)]
    fn for_line_of_split(&self, line: usize, mut each: impl FnMut(u32)) {
        let first = Self::partner(policy::more(self.places.count()));
        self.line(first + line).entries().for_each(|(_, number)| each(number));
        prefetch(self.line(first + line.saturating_sub(1)));
    }

    /// Moves an entry that a lookup has found beyond its home line there, if that has a free slot
    /// by now, and if `is_its_hash` returns true: keys that violate the contract of `Hash` and `Eq`
    /// are found by other hashes, too.
    #[inline(never)]
    pub(crate) fn bring_home(
        &mut self,
        hash: u32,
        number: u32,
        is_its_hash: impl FnOnce() -> bool,
    ) {
        let home = self.home(hash);
        let is_full = self.line(home).free().is_empty();
        if !is_full && is_its_hash() && self.remove_further(home, hash, number) {
            self.insert_reserved(hash, number);
        }
    }

    /// Removes all entries, and frees the memory.
    pub(crate) fn clear(&mut self) {
        *self = Self::new_in(self.allocator().clone());
    }

    /// Whether an insertion grows the table after the removal of `removed` entries.
    #[inline]
    pub(super) fn is_growth_due(&self, removed: usize) -> bool {
        self.len.saturating_sub(removed) >= self.places.limit()
    }

    /// Grows by one step. Without memory, the table stays as it is if it has lines.
    #[cold]
    #[inline(never)]
    pub(super) fn grow(&mut self, hash_of: impl Fn(u32) -> u32) -> Result<(), TryReserveError> {
        let lines = policy::more(self.places.count());
        match self.places.chunks.resize(lines) {
            Err(error) if self.places.count() == 0 => return Err(error),
            Err(_) => return Ok(()),
            Ok(()) => {}
        }
        let first = Self::partner(lines);
        let mut entries = Entries::new();
        self.collect(&mut entries, first..self.places.count().min(first + SEGMENT), &hash_of);
        self.change_lines(lines, &entries);
        Ok(())
    }

    /// Makes a table smaller by one step, if it is due. Returns whether it has become smaller.
    #[inline]
    pub(crate) fn shrink_step(&mut self, hash_of: impl Fn(u32) -> u32) -> bool {
        policy::should_merge(self.len, self.places.count()) && self.shrink(&hash_of)
    }

    #[cold]
    #[inline(never)]
    fn shrink(&mut self, hash_of: &impl Fn(u32) -> u32) -> bool {
        let lines = policy::fewer(self.places.count());
        if lines == 0 && self.len > 0 {
            return false;
        }
        let (first, last) = (Self::partner(self.places.count()), lines..self.places.count());
        let remaining = first..lines.min(first + SEGMENT);
        let used = |lines: &Range<usize>| {
            lines.clone().map(|line| self.line(line).entries().count()).sum::<usize>()
        };
        // Two segments of hashes that are not random may have too many entries for one.
        if used(&remaining) + used(&last) > policy::limit(SEGMENT) {
            return false;
        }
        let mut entries = Entries::new();
        self.collect(&mut entries, remaining, hash_of);
        self.collect(&mut entries, last, hash_of);
        self.change_lines(lines, &entries);
        // Without memory for a smaller first chunk, the larger one stays.
        _ = self.places.chunks.resize(lines);
        true
    }

    /// The first line of the segment whose split creates the last segment of `more` lines. The
    /// last segment merges with this segment.
    fn partner(more: usize) -> usize {
        if more <= SEGMENT { 0 } else { (more - SEGMENT) - (1 << (more - SEGMENT).ilog2()) }
    }

    /// Adds the entries of some lines.
    fn collect(&self, entries: &mut Entries, lines: Range<usize>, hash_of: &impl Fn(u32) -> u32) {
        let first = entries.len;
        for line in lines {
            for (_, number) in self.line(line).entries() {
                entries.numbers[entries.len] = number;
                entries.len += 1;
            }
        }
        // A loop of its own: the cache misses of the records overlap.
        for entry in first..entries.len {
            entries.hashes[entry] = hash_of(entries.numbers[entry]);
        }
    }

    /// Changes the number of lines, for which there is memory, and inserts the entries of the
    /// segments concerned again, which fit.
    fn change_lines(&mut self, lines: usize, entries: &Entries) {
        let (before, most) = (self.places.count(), self.places.count().max(lines));
        let first = Self::partner(most);
        let last = policy::fewer(most);
        let concerned = first..first + SEGMENT;
        for line in (first..before.min(first + SEGMENT)).chain(last.min(before)..before) {
            *self.line_mut(line) = Line::EMPTY;
        }
        self.places.set_count(lines);
        for entry in 0..entries.len {
            let is_placed = self.place(entries.hashes[entry], entries.numbers[entry]);
            debug_assert!(is_placed, "the entries of one segment fit into one or two");
        }
        for at in (0..self.stash.len()).rev() {
            let (hash, number) = self.stash[at];
            let home = self.home(hash);
            if !concerned.contains(&home) && home < last {
                continue;
            }
            if self.place(hash, number) {
                self.stash.swap_remove(at);
            } else {
                self.pass_all(home, Line::increment);
            }
        }
        if self.stash.is_empty() {
            self.stash = Vec::new_in(self.allocator().clone());
        }
    }

    /// An upper bound of the bytes that an insertion allocates before it frees any, after the
    /// removal of `removed` entries.
    pub(crate) fn growth(&self, removed: usize) -> usize {
        let count = self.places.count();
        let is_due = self.is_growth_due(removed);
        let lines = if is_due { self.places.chunks.growth(policy::more(count)) } else { 0 };
        lines + 2 * self.stash.capacity().max(2) * size_of::<(u32, u32)>()
    }
}

impl Entries {
    const fn new() -> Self {
        Self { hashes: [0; SLOTS], numbers: [0; SLOTS], len: 0 }
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;

    use super::*;
    use crate::memory::Global;
    use crate::table::lines::fold;

    #[test]
    fn the_insertions_before_a_split_announce_the_numbers_whose_hashes_it_reads() {
        let hash = |number| fold(u64::from(number) + 1);
        let (mut lines, mut announced, mut splits) = (Lines::new_in(Global), BTreeSet::new(), 0);
        let most: u32 = if cfg!(miri) { 800 } else { 20_000 };
        for number in 0..most {
            let before = lines.places.count();
            assert_eq!(lines.insert(hash(number), number, hash), Ok(()));
            if before >= SEGMENT && lines.places.count() > before {
                let moved = (before..lines.places.count()).flat_map(|it| lines.line(it).entries());
                let mut old = moved.map(|(_, moved)| moved).filter(|it| it + 65 < number);
                assert!(old.all(|moved| announced.contains(&moved)), "{before} lines");
                announced.clear();
                splits += 1;
            }
            lines.before_split(|number| _ = announced.insert(number));
        }
        assert!(splits >= if cfg!(miri) { 1 } else { 20 }, "{splits} splits");
    }
}
