//! Sequences of operations on a table and its reference model.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use proptest::prelude::*;

use super::{Lines, policy};
use crate::memory::Global;

/// The operation of a byte of a script on the numbers of a table.
enum Op {
    Insert(u32),
    Remove(u32),
    Find(u32),
    BringHome(u32),
    /// Replaces a number by a new number.
    Replace(u32),
    /// Inserts that many numbers more.
    Fill(u32),
    /// Removes that many numbers.
    Empty(u32),
    Shrink,
    Clear,
}

impl Op {
    fn of(code: u8, argument: u8) -> Self {
        let number = u32::from(argument);
        match code % 16 {
            0..4 => Self::Insert(number),
            4..8 => Self::Remove(number),
            8 => Self::Find(number),
            9 => Self::BringHome(number),
            10 => Self::Replace(number),
            11 | 12 => Self::Fill(number * 8),
            13 => Self::Empty(number * 8),
            14 => Self::Shrink,
            _ if number == 0 => Self::Clear,
            _ => Self::Find(number * 77),
        }
    }
}

/// The first of the numbers that are not the argument of an insertion.
const OTHERS: u32 = 256;

/// Numbers that are inserted if their hashes are alike.
const MOST_ALIKE: usize = 4096;

/// A table of numbers, and the hash of each number in it.
struct Checked {
    lines: Lines,
    model: BTreeMap<u32, u32>,
    /// How many bits of the hashes are equal for all numbers, from the lowest or the highest on.
    alike: u8,
    /// Greater than all numbers, and at least [`OTHERS`].
    next: u32,
}

impl Checked {
    /// The hash of a number: random, but for some bits.
    fn hash(&self, number: u32) -> u32 {
        let random = super::fold(u64::from(number) + 1);
        let bits = u32::from(self.alike % 33);
        match self.alike / 64 {
            0 => random,
            1 => random.checked_shl(bits).unwrap_or(0),
            2 => random.checked_shr(bits).unwrap_or(0),
            _ => random & 0xff00_0003,
        }
    }

    fn insert(&mut self, number: u32) {
        let hash = self.hash(number);
        if !self.model.contains_key(&number) {
            let model = &self.model;
            let is_inserted = self.lines.insert(hash, number, |other| model[&other]);
            assert!(is_inserted.is_ok(), "there is memory");
            self.model.insert(number, hash);
        }
    }

    fn remove(&mut self, number: u32) {
        let is_there = self.model.remove(&number).is_some();
        assert_eq!(self.lines.remove(self.hash(number), number), is_there, "{number}");
    }

    fn replace(&mut self, number: u32) {
        let (next, model) = (self.hash(self.next), &self.model);
        if let Some(instead) = model.get(&number) {
            let hash_of = |other| model[&other];
            let is_reserved = self.lines.reserve_place(next, Some(*instead), hash_of);
            assert!(is_reserved.is_ok(), "there is memory");
            self.remove(number);
            let bytes = self.lines.allocation_size();
            self.lines.insert_reserved(next, self.next);
            assert_eq!(self.lines.allocation_size(), bytes, "it allocates nothing");
            self.model.insert(self.next, next);
            self.next += 1;
        }
    }

    fn find(&self, number: u32) {
        let hash = self.hash(number);
        let found = self.lines.find(hash, |other| other == number);
        assert_eq!(found, self.model.get(&number).map(|_| number));
        if let Some(candidate) = self.lines.home_line(hash).candidate(hash) {
            assert!(self.model.contains_key(&candidate), "a candidate is in the table");
        }
        self.lines.prefetch(hash);
    }

    fn bring_home(&mut self, number: u32) {
        if let Some(&hash) = self.model.get(&number) {
            let bytes = self.lines.allocation_size();
            self.lines.bring_home(hash, number, || true);
            assert_eq!(self.lines.allocation_size(), bytes, "it allocates nothing");
            let line = self.lines.home_line(hash);
            let at_home = line.find_map(hash, |other| (other == number).then_some(()));
            let is_full = self.lines.line(self.lines.home(hash)).free().is_empty();
            assert!(is_full || at_home.is_some(), "it is at home");
        }
    }

    fn run(&mut self, op: Op) {
        match op {
            Op::Insert(number) => self.insert(number),
            Op::Remove(number) => self.remove(number),
            Op::Find(number) => self.find(number),
            Op::BringHome(number) => self.bring_home(number),
            Op::Replace(number) => self.replace(number),
            Op::Fill(count) => {
                // Numbers whose hashes are alike take quadratic time.
                let most = if self.alike < 64 { usize::MAX } else { MOST_ALIKE };
                let count = count.min(most.saturating_sub(self.model.len()) as u32);
                (self.next..self.next + count).for_each(|number| self.insert(number));
                self.next += count;
            }
            Op::Empty(count) => {
                let first = self.next.saturating_sub(count).max(OTHERS);
                (first..self.next).for_each(|number| self.remove(number));
                self.next = first;
            }
            Op::Shrink => {
                let Self { lines, model, .. } = self;
                while lines.shrink_step(|number| model[&number]) {}
            }
            Op::Clear => {
                self.lines.clear();
                self.model.clear();
            }
        }
        assert_eq!(self.lines.len(), self.model.len());
    }

    /// Checks the table, and finds some of its numbers, others in each step: the time of all of
    /// them would be quadratic where hashes are equal.
    fn check(&self, step: usize) {
        self.lines.validate(|number| self.model[&number]).expect("invariant");
        let each = 1 + self.model.len() / 128;
        self.model.keys().skip(step % each).step_by(each).for_each(|number| self.find(*number));
        if self.lines.len() == 0 {
            return;
        }
        // Tables that are not shrunk keep their memory.
        let copy = self.lines.clone();
        assert_eq!(copy.len(), self.lines.len());
        copy.validate(|number| self.model[&number]).expect("invariant of a clone");
    }
}

/// Runs a script: the first byte is the kind of hashes, then each pair of bytes is an operation.
///
/// # Panics
///
/// If the table and its model differ, or an invariant is violated.
fn run(script: &[u8]) {
    let Some((&alike, ops)) = script.split_first() else { return };
    let (lines, model) = (Lines::new_in(Global), BTreeMap::new());
    let mut checked = Checked { lines, model, alike, next: OTHERS };
    for (step, op) in ops.chunks_exact(2).enumerate() {
        // Operations of many numbers take long.
        checked.run(Op::of(op[0], op[1]));
        if step % 8 == 0 {
            checked.check(step);
        }
    }
    checked.check(0);
}

const STEPS: usize = 200;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    #[test]
    #[cfg_attr(miri, ignore = "slow: a step inserts up to thousands of entries")]
    fn any_script(script in prop::collection::vec(any::<u8>(), 1..STEPS)) {
        run(&script);
    }
}

fn table(len: u32, hash: impl Fn(u32) -> u32 + Copy) -> Lines {
    let mut lines = Lines::new_in(Global);
    for number in 0..len {
        assert_eq!(lines.insert(hash(number), number, hash), Ok(()));
    }
    lines
}

fn random(number: u32) -> u32 {
    crate::table::lines::fold(u64::from(number))
}

const MANY: u32 = if cfg!(miri) { 600 } else { 100_000 };
const CHECKS: u32 = if cfg!(miri) { 1 } else { 16 };

#[test]
fn growth_keeps_all_entries_and_shrinking_returns_the_memory() {
    let mut lines = table(MANY, random);
    lines.validate(random).expect("invariant");
    assert!(!lines.is_flooded());
    assert!(
        (0..MANY)
            .all(|number| { lines.find(random(number), |other| other == number) == Some(number) })
    );
    assert_eq!(lines.find(random(MANY), |other| other == MANY), None);
    for number in 0..MANY {
        assert!(lines.remove(random(number), number));
        lines.shrink_step(random);
        if number % (MANY / CHECKS) == 0 {
            lines.validate(random).expect("invariant");
        }
    }
    while lines.shrink_step(random) {}
    assert_eq!((lines.len(), lines.allocation_size()), (0, 0));
}

#[test]
#[cfg_attr(miri, ignore = "slow, and other tests insert as many entries")]
fn an_insertion_rehashes_one_segment_at_most() {
    let mut lines = Lines::new_in(Global);
    let (rehashed, mut most) = (core::cell::Cell::new(0_u32), 0);
    for number in 0..MANY {
        rehashed.set(0);
        let hash_of = |other| {
            rehashed.set(rehashed.get() + 1);
            random(other)
        };
        assert_eq!(lines.insert(random(number), number, hash_of), Ok(()));
        most = most.max(rehashed.get());
    }
    assert!(most <= policy::SLOTS as u32, "{most} entries");
}

#[test]
fn numbers_may_get_other_hashes() {
    let mut lines = table(MANY / 10, random);
    let other = |number| random(number + MANY);
    for number in 0..MANY / 10 {
        let hash_of = |of| if of < number { other(of) } else { random(of) };
        assert_eq!(lines.grow_if_overdue(hash_of), Ok(()));
        assert_eq!(lines.rehash((random(number), other(number)), number), Ok(()));
    }
    assert_eq!(lines.len() as u32, MANY / 10);
    lines.validate(other).expect("invariant");
}

#[test]
#[cfg_attr(miri, ignore = "only counts bytes")]
fn bytes_for_an_entry() {
    let mut lines = Lines::new_in(Global);
    let mut most = 0;
    for number in 0..MANY {
        assert_eq!(lines.insert(random(number), number, random), Ok(()));
        // Beyond the first chunks.
        if number > MANY / 2 {
            most = most.max(lines.allocation_size() / lines.len());
        }
    }
    assert!(most <= 13, "{most} bytes");
}

#[test]
#[cfg_attr(miri, ignore = "searches through whole segments take minutes")]
fn equal_hashes_are_found_and_flood() {
    let mut lines = table(2000, |_| 7);
    assert!(lines.is_flooded());
    lines.validate(|_| 7).expect("invariant");
    let numbers: Vec<_> = (0..2000).filter(|n| lines.find(7, |m| m == *n).is_some()).collect();
    assert_eq!(numbers.len(), 2000);
    assert!((0..2000).rev().all(|number| lines.remove(7, number)));
    assert!(!lines.remove(7, 0) && !lines.is_flooded());
}
