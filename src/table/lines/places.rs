//! Where the lines of a table are, and which one is the home of a hash.
//!
//! ```text
//!     Growing     chunks of 512 lines        home: the low bits of the hash, as segments split
//!     Fixed       one array                  home: the hash times the lines, divided by 2^32
//! ```
//!
//! The second takes half of the instructions.
#![allow(unsafe_code)]

use super::chunks::Chunks;
use super::line::Line;
use super::policy;
use crate::invariant::{InvariantError, ensure};
use crate::memory::{Allocator, Vec};
use crate::table::error::{TryReserveError, reserve};

/// The lines of a table. There are 0, a power of two up to 64, or a multiple of 64.
pub(crate) trait Places {
    /// Lines in use.
    fn count(&self) -> usize;

    /// The home line of a hash; 0 without lines.
    fn home(&self, hash: u32) -> usize;

    /// A line that is in use. Without lines, line 0 is an empty one.
    fn line(&self, line: usize) -> &Line;

    /// A line that is in use.
    fn line_mut(&mut self, line: usize) -> &mut Line;

    /// Bytes allocated.
    fn allocation_size(&self) -> usize;

    /// Checks the number of lines, and those that are not in use.
    fn validate(&self) -> Result<(), InvariantError>;
}

/// The number of lines, and the masks that select a home line from a hash. A lookup loads each of
/// them as one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Size {
    lines: u32,
    /// The power of two that is not below the number of lines, less one.
    mask: u32,
    /// Half of the mask.
    unsplit: u32,
}

impl Size {
    /// The size of a table without lines.
    const ZERO: Self = Self { lines: 0, mask: 0, unsplit: 0 };

    /// The size of a table with this number of lines: fewer than 2^31, as numbers have 32 bits.
    fn new(lines: usize) -> Self {
        let mask = lines.next_power_of_two() as u32 - 1;
        Self { lines: lines as u32, mask, unsplit: mask >> 1 }
    }

    #[inline(always)]
    const fn lines(&self) -> usize {
        self.lines as usize
    }

    /// The home line of a hash; 0 without lines.
    #[inline(always)]
    const fn home(&self, hash: u32) -> usize {
        let (line, unsplit) = (hash & self.mask, hash & self.unsplit);
        // The segment of a line beyond the last has not split yet.
        let home = if line < self.lines { line } else { unsplit };
        home as usize
    }
}

/// Lines that split and merge by segments.
#[derive(Clone, Debug)]
pub(crate) struct Growing<A: Allocator + Clone> {
    pub(super) chunks: Chunks<A>,
    size: Size,
    /// The entries from which on the table grows.
    limit: usize,
}

impl<A: Allocator + Clone> Growing<A> {
    /// No lines.
    pub(super) const fn new_in(memory: A) -> Self {
        Self { chunks: Chunks::new_in(memory), size: Size::ZERO, limit: 0 }
    }

    /// Sets the number of lines in use, for which there is memory.
    pub(super) fn set_count(&mut self, lines: usize) {
        self.size = Size::new(lines);
        self.limit = policy::limit(lines);
    }

    /// The entries from which on the table grows.
    #[inline(always)]
    pub(super) const fn limit(&self) -> usize {
        self.limit
    }
}

impl<A: Allocator + Clone> Places for Growing<A> {
    #[inline(always)]
    fn count(&self) -> usize {
        self.size.lines()
    }

    #[inline(always)]
    fn home(&self, hash: u32) -> usize {
        self.size.home(hash)
    }

    #[inline(always)]
    fn line(&self, line: usize) -> &Line {
        debug_assert!(line < self.count().max(1), "L1");
        self.chunks.line(line)
    }

    #[inline(always)]
    fn line_mut(&mut self, line: usize) -> &mut Line {
        debug_assert!(line < self.count(), "L1");
        self.chunks.line_mut(line)
    }

    fn allocation_size(&self) -> usize {
        self.chunks.allocation_size()
    }

    fn validate(&self) -> Result<(), InvariantError> {
        let count = self.count();
        ensure(self.size == Size::new(count), || "the mask is not that of the lines")?;
        let has_limit = self.limit == policy::limit(count);
        ensure(has_limit, || "the limit is not that of the lines")?;
        let are_empty = self.chunks.spare(count).all(|line| *line == Line::EMPTY);
        ensure(are_empty, || "a line that is not in use has entries")
    }
}

/// A number of lines that stays the same.
#[derive(Clone, Debug)]
pub(crate) struct Fixed<A: Allocator>(Vec<Line, A>);

impl<A: Allocator> Fixed<A> {
    /// Lines for a number of entries, at least one.
    ///
    /// # Errors
    ///
    /// If memory cannot be allocated.
    pub(super) fn new_in(entries: usize, memory: A) -> Result<Self, TryReserveError> {
        let (count, mut lines) = (policy::fixed(entries), Vec::new_in(memory));
        reserve(&mut lines, count)?;
        lines.resize(count, Line::EMPTY);
        Ok(Self(lines))
    }

    /// Removes the entries of all lines.
    pub(super) fn clear(&mut self) {
        self.0.fill(Line::EMPTY);
    }
}

impl<A: Allocator> Places for Fixed<A> {
    #[inline(always)]
    fn count(&self) -> usize {
        self.0.len()
    }

    #[inline(always)]
    fn home(&self, hash: u32) -> usize {
        // The upper bits of the hash are the tag, so those below them come first here.
        ((u64::from(hash.rotate_left(8)) * self.0.len() as u64) >> 32) as usize
    }

    #[inline(always)]
    fn line(&self, line: usize) -> &Line {
        debug_assert!(line < self.0.len(), "L1");
        // SAFETY: L1: a line in use is a line of the array.
        unsafe { self.0.get_unchecked(line) }
    }

    #[inline(always)]
    fn line_mut(&mut self, line: usize) -> &mut Line {
        debug_assert!(line < self.0.len(), "L1");
        // SAFETY: L1: a line in use is a line of the array.
        unsafe { self.0.get_unchecked_mut(line) }
    }

    fn allocation_size(&self) -> usize {
        self.0.capacity() * size_of::<Line>()
    }

    fn validate(&self) -> Result<(), InvariantError> {
        ensure(!self.0.is_empty(), || "there is no line")
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use crate::memory::Global;
    use crate::table::lines::{FixedLines, fold};

    const CAPACITY: usize = if cfg!(miri) { 60 } else { 1000 };
    const STEPS: usize = if cfg!(miri) { 6 } else { 40 };
    const MANY: usize = if cfg!(miri) { 150 } else { 100_000 };

    /// The hashes of numbers: random, alike in bits that the home or the tag depends on, equal.
    const HASHES: [fn(u32) -> u32; 5] = [
        |number| fold(u64::from(number) + 1),
        |number| fold(u64::from(number) + 1) & 0xff00_ffff,
        |number| fold(u64::from(number) + 1) & 0x00ff_ffff,
        |number| fold(u64::from(number) + 1) & 0x0003_0001,
        |_| 7,
    ];

    fn fixed() -> FixedLines {
        FixedLines::with_capacity_in(CAPACITY, Global).expect("there is memory")
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 100 }))]
        #[test]
        fn fixed_lines_have_the_numbers_of_a_set(
            kind in 0..HASHES.len(),
            ops in prop::collection::vec(
                (any::<bool>(), 0..CAPACITY as u32 * 6 / 5, 1..CAPACITY as u32 / 5),
                1..STEPS,
            ),
        ) {
            let (mut lines, mut model, hash) = (fixed(), BTreeSet::new(), HASHES[kind]);
            for (is_inserted, first, count) in ops {
                for number in first..first + count {
                    if !is_inserted {
                        prop_assert_eq!(lines.remove(hash(number), number), model.remove(&number));
                    } else if model.len() < CAPACITY && model.insert(number) {
                        prop_assert_eq!(lines.insert_here(hash(number), number), Ok(()));
                    }
                }
                lines.validate(hash).unwrap();
                lines.clone().validate(hash).unwrap();
                for number in first..first + count {
                    let found = lines.find(hash(number), |other| other == number);
                    prop_assert_eq!(found.is_some(), model.contains(&number));
                }
            }
            prop_assert_eq!(lines.len(), model.len());
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "no unsafe code, and long")]
    fn saturated_counts_last_until_the_lines_are_cleared() {
        let mut lines = fixed();
        for number in 0..CAPACITY as u32 {
            assert_eq!(lines.insert_here(7, number), Ok(()));
        }
        for number in 0..CAPACITY as u32 {
            assert!(lines.remove(7, number));
        }
        assert!(lines.len() == 0 && lines.home_line(7).has_overflowed());
        lines.insert_reserved(7, 1);
        lines.clear();
        assert!(lines.len() == 0 && !lines.home_line(7).has_overflowed());
        assert_eq!((lines.find(7, |_| true), lines.validate(|_| 7)), (None, Ok(())));
        assert!(lines.has_room_for(CAPACITY) && !lines.has_room_for(2 * CAPACITY));
    }

    #[test]
    fn fixed_lines_do_not_allocate_up_to_their_capacity() {
        for entries in [1, 9, 10, CAPACITY * 3 / 5, CAPACITY, MANY] {
            let mut lines = FixedLines::with_capacity_in(entries, Global).unwrap();
            let bytes = lines.allocation_size();
            let numbers: Vec<u32> = (0..entries as u32).collect();
            for number in &numbers {
                assert_eq!(lines.insert_here(HASHES[0](*number), *number), Ok(()));
            }
            lines.validate(HASHES[0]).unwrap();
            assert_eq!(lines.allocation_size(), bytes);
            assert!(lines.stashed().is_none() && bytes <= 64 * (entries / 6 + 65), "{bytes}");
        }
    }
}
