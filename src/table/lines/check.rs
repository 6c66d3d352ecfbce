//! Checks of the invariants.

use alloc::format;
use alloc::vec;

use super::LineTable;
use super::places::Places;
use super::policy::SEGMENT;
use super::tag;
use crate::invariant::{InvariantError, ensure};
use crate::memory::Allocator;

impl<P: Places, A: Allocator + Clone> LineTable<P, A> {
    /// Checks every invariant.
    pub(crate) fn validate(&self, hash_of: impl Fn(u32) -> u32) -> Result<(), InvariantError> {
        let count = self.places.count();
        let is_size = count <= SEGMENT && (count == 0 || count.is_power_of_two());
        ensure(is_size || count % SEGMENT == 0, || format!("there are {count} lines"))?;
        let mut passed = vec![0_usize; count];
        let mut len = self.stash.len();
        for at in 0..count {
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
        self.places.validate()?;
        ensure(len == self.len, || format!("{len} entries are counted as {}", self.len))
    }
}
