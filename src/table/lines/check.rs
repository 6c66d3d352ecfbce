//! Checks of the invariants.

use alloc::format;
use alloc::vec;

use super::Lines;
use super::line::Line;
use super::policy::{self, SEGMENT};
use super::tag;
use crate::invariant::{InvariantError, ensure};
use crate::memory::Allocator;

impl<A: Allocator + Clone> Lines<A> {
    /// Checks every invariant.
    pub(crate) fn validate(&self, hash_of: impl Fn(u32) -> u32) -> Result<(), InvariantError> {
        let is_size = self.count <= SEGMENT && (self.count == 0 || self.count.is_power_of_two());
        let is_whole = is_size || self.count % SEGMENT == 0;
        let has_mask = self.mask == self.count.next_power_of_two() - 1;
        ensure(is_whole && has_mask, || format!("there are {} lines", self.count))?;
        ensure(self.limit == policy::limit(self.count), || "the limit is of other lines")?;
        let mut passed = vec![0_usize; self.count];
        let mut len = self.stash.len();
        for at in 0..self.count {
            for (with, number) in self.line(at).entries() {
                let hash = hash_of(number);
                let mut home = self.home(hash);
                let is_there = with == tag(hash) && (home ^ at) & !self.wrap() == 0;
                ensure(is_there, || format!("number {number} is not in its segment, but in {at}"))?;
                while home != at {
                    passed[home] += 1;
                    home = self.next(home);
                }
                len += 1;
            }
        }
        for (hash, number) in &self.stash {
            ensure(hash_of(*number) == *hash, || "a hash in the stash is another one")?;
            let first = self.home(*hash) & !self.wrap();
            passed[first..=first + self.wrap()].iter_mut().for_each(|count| *count += 1);
        }
        for (at, passed) in passed.into_iter().enumerate() {
            let overflow = usize::from(self.line(at).overflow());
            let is_counted = overflow == usize::from(u8::MAX) || overflow == passed;
            ensure(is_counted, || format!("line {at} counts {overflow} of {passed}"))?;
        }
        let are_empty = self.chunks.spare(self.count).all(|line| *line == Line::EMPTY);
        ensure(are_empty, || "a line that is not in use has entries")?;
        ensure(len == self.len, || format!("{len} entries are counted as {}", self.len))
    }
}
